from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.peers.expectations.npm import PEERS, Peer, promptfoo
from bench.peers.expectations.npm.differences import DIFFERENCES
from bench.peers.expectations.npm.verdicts import rows, said

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
}

each_peer = pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.file)


@cache
def vectors(peer: Peer) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """The head and the rows of a peer's vectors."""
    head, read = rows(VECTORS / f"{peer.file}.jsonl.gz")
    return head, tuple(read)


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
    assert set(DIFFERENCES[peer.name]) == {row["kind"] for row in found}


@each_peer
def test_nothing_is_left_out(peer: Peer) -> None:
    """The file has as many rows as its head says, and as many of each sort as are known here."""
    head, read = vectors(peer)
    different = sum("kind" in row for row in read)

    assert {"peer": peer.name, "version": COUNTS[peer.file].version, "rows": len(read)} == head
    assert COUNTS[peer.file] == Counts(head["version"], len(read) - different, different)


@each_peer
def test_every_sort_of_expectation_is_met_and_missed(peer: Peer) -> None:
    """What never passes, or always, would say nothing."""
    seen = Counter((row["family"], row["verdict"]) for row in vectors(peer)[1] if "kind" not in row)

    assert [] == [family for family, _ in seen for verdict in (True, False) if seen[family, verdict] < 5]


@each_peer
def test_translations_are_configurations(peer: Peer) -> None:
    """They can be put into a file as they are, but for what is refused on purpose."""
    for traces in ({}, {"unit": "agent"}):
        evaluators = {
            f"{number}_{name}": entry
            for number, row in enumerate(vectors(peer)[1])
            if row.get("kind") not in {"unknown constraint", "beyond RE2", "other steps"}
            for configuration in peer.translated(row["expectation"])
            if configuration.get("traces", {}) == traces
            for name, entry in configuration["evaluators"].items()
        }
        if evaluators:
            text = json.dumps({"traces": traces, "evaluators": evaluators})
            assert len(evaluators) == len(spanscore.config.loads(text, "translated", Path()).evaluators)


def test_names_in_any_case() -> None:
    """Where names are to match in any case as in promptfoo, they can."""
    peer = next(each for each in PEERS if each.file == "promptfoo")
    found = [row for row in vectors(peer)[1] if row.get("kind") == "case of names"]
    verdicts = [
        said(promptfoo.translated(row["expectation"], any_case=True), peer.trajectory(row["run"])).verdict
        for row in found
    ]

    assert [row["verdict"] for row in found] == verdicts
