from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.peers.expectations import PEERS
from bench.peers.expectations.npm import promptfoo
from bench.peers.expectations.peer import Peer
from bench.peers.expectations.verdicts import rows, said

import spanscore.config

VECTORS = Path(__file__).parent


class Counts(NamedTuple):
    """How many rows a file has."""

    version: str
    equal: int
    different: int


COUNTS = {
    "promptfoo": Counts("0.123.1", 1040, 38),
    "mastra": Counts("1.10.2", 1022, 31),
    "webmcp": Counts("0.0.3", 765, 21),
    "google_adk": Counts("2.13.0", 419, 4),
    "openevals": Counts("0.2.2", 571, 5),
    "pydantic_evals": Counts("2.62.0", 455, 1),
    "deepeval": Counts("4.3.1", 302, 1),
    "mlflow": Counts("3.17.2", 160, 1),
}

each_peer = pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.file)


@cache
def read(file: str) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """The head and the rows of a file."""
    head, found = rows(VECTORS / f"{file}.jsonl.gz")
    return head, tuple(found)


def vectors(peer: Peer) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """The head and the rows of a peer's vectors."""
    return read(peer.file)


def told(peer: Peer, found: Iterator[dict[str, Any]]) -> list[str]:
    """The first rows, each with what spanscore says."""
    return [f"{json.dumps(row)}\nhere: {peer.said(row)}" for row, _ in zip(found, range(3), strict=False)]


@each_peer
def test_what_the_peer_expects_is_said_here_with_the_same_verdict(peer: Peer) -> None:
    """And with the same value, where it is on the same scale."""
    assert [] == told(peer, (row for row in vectors(peer)[1] if "kind" not in row and peer.differs(row)))


@each_peer
def test_what_differs_differs_for_a_reason(peer: Peer) -> None:
    """Each difference is of a kind that is explained, and each kind is seen."""
    found = [row for row in vectors(peer)[1] if "kind" in row]

    assert [] == told(peer, (row for row in found if not peer.differs(row)))
    assert set(peer.differences) == {row["kind"] for row in found}


@each_peer
def test_nothing_is_left_out(peer: Peer) -> None:
    """The file has as many rows as its head says, and as many of each sort as are known here."""
    head, found = vectors(peer)
    different = sum("kind" in row for row in found)

    assert {"peer": peer.name, "version": COUNTS[peer.file].version, "rows": len(found)} == head
    assert COUNTS[peer.file] == Counts(head["version"], len(found) - different, different)


def test_the_documentation_has_the_figures() -> None:
    """Its table is what the files hold."""
    page = (VECTORS.parents[1] / "docs" / "conformance.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (\S+) (\S+) \| ([\d,]+) \| (\d+) \|$", page, re.MULTILINE)
    lines = [(name, version, int(equal.replace(",", "")), int(different)) for name, version, equal, different in told]

    assert [(peer.name, *COUNTS[peer.file]) for peer in PEERS] == lines
    assert f"{sum(counts.equal for counts in COUNTS.values()):,} expectations of other tools" in page


@each_peer
def test_every_sort_of_expectation_is_met_and_missed(peer: Peer) -> None:
    """What never passes, or always, would say nothing."""
    seen = Counter((row["family"], row["verdict"]) for row in vectors(peer)[1] if "kind" not in row)

    assert [] == [family for family, _ in seen for verdict in (True, False) if seen[family, verdict] < 5]


@each_peer
def test_translations_are_configurations(peer: Peer) -> None:
    """They can be put into a file as they are, equal ones once, but for what is refused on purpose."""
    translated = [
        configuration
        for row in vectors(peer)[1]
        if row.get("kind") not in {"unknown constraint", "beyond RE2", "other steps"}
        for configuration in peer.translated(row["expectation"])
    ]
    for traces in ({}, {"unit": "agent"}):
        found = {
            json.dumps([name, entry])
            for configuration in translated
            if configuration.get("traces", {}) == traces
            for name, entry in configuration["evaluators"].items()
        }
        if found:
            evaluators = {f"{number}_{name}": entry for number, (name, entry) in enumerate(map(json.loads, found))}
            text = json.dumps({"traces": traces, "evaluators": evaluators})
            assert len(found) == len(spanscore.config.loads(text, "translated", Path()).evaluators)


def test_names_in_any_case() -> None:
    """Where names are to match in any case as in promptfoo, they can."""
    peer = next(each for each in PEERS if each.file == "promptfoo")
    found = [row for row in vectors(peer)[1] if row.get("kind") == "case of names"]
    verdicts = [
        said(promptfoo.translated(row["expectation"], any_case=True), peer.trajectory(row["run"])).verdict
        for row in found
    ]

    assert [row["verdict"] for row in found] == verdicts
