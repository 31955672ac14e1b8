"""Recorded runs that pause, each as if its framework had continued in the trace that paused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from corpora import CORPUS, NAMES, recorded
from receivers.otlp_requests import corpus_lines
from spanscore.model import Span

APPROVALS: Final = [name for name in NAMES if any(word in name for word in ("approval", "confirmation", "interrupt"))]


class PausedRun(NamedTuple):
    """A run in two parts."""

    scenario: str
    refunded: bool
    """Whether its second part makes the refund that the first one asks for."""
    trace_id: str
    """Of both parts here, and of the first one in the recording."""
    other_id: str
    """Of the second part in the recording."""
    first: list[Span]
    second: list[Span]

    def requests(self, name: str) -> tuple[list[bytes], list[bytes]]:
        """Return the spans of both parts, each in a request as JSON."""
        return [*_requests(name, self.trace_id, self.trace_id)], [*_requests(name, self.other_id, self.trace_id)]


def paused_runs(name: str) -> list[PausedRun]:
    """Return the runs of a recording that pause and continue."""
    truth = json.loads((CORPUS / f"{name}.truth.json").read_text())["traces"]
    by_scenario = {trace["scenario"]: trace for trace in truth}
    found = []
    for scenario, asks in by_scenario.items():
        resumed = by_scenario.get(scenario.replace("-asks", "-resumed"))
        if resumed is None or resumed is asks:
            continue
        (trace_id,), (other_id,) = asks["trace_ids"], resumed["trace_ids"]
        first = recorded(name)[trace_id]
        found.append(
            PausedRun(
                scenario=scenario.removesuffix("-asks"),
                refunded=any(call["name"] == "issue_refund" for call in resumed["tool_calls"]),
                trace_id=trace_id,
                other_id=other_id,
                first=first,
                second=[span._replace(trace_id=first[0].trace_id) for span in recorded(name)[other_id]],
            )
        )
    return found


def counted_runs(page: str) -> dict[str, int]:
    """Return the metrics of runs that are not 0, from a page for Prometheus; those of `runs` by verdict."""
    found = re.findall(r'^spanscore_(runs\w*)_total\{.*?(?:outcome="(\w+)")?\} ([0-9.]+)', page, re.MULTILINE)
    return {
        " ".join(filter(None, (name, verdict))): int(float(count)) for name, verdict, count in found if float(count)
    }


def counted_reasons(page: str) -> dict[str, int]:
    """Return the failing runs by reason, from a page for Prometheus."""
    found = re.findall(
        r'^spanscore_fail_reasons_total\{.*spanscore_fail_reason="(.*?)".*\} ([0-9.]+)', page, re.MULTILINE
    )
    return {reason: int(float(count)) for reason, count in found}


def _requests(name: str, trace_id: str, as_id: str) -> Iterator[bytes]:
    for line in corpus_lines(name):
        for resource in json.loads(line)["resourceSpans"]:
            for scoped in resource["scopeSpans"]:
                for span in scoped["spans"]:
                    if span["traceId"] == trace_id:
                        one = {**scoped, "spans": [{**span, "traceId": as_id}]}
                        yield json.dumps({"resourceSpans": [{**resource, "scopeSpans": [one]}]}).encode()
