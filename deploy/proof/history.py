"""An hour of made-up history, always the same: ten agents, six evaluators and fifteen tools, some of which fail.

Written as spanscore's own page for Prometheus, scrape after scrape, so that names and labels are the product's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Final

from spanscore.contracts.instruments.instrument import (
    AGENT_TOOL_CALLS,
    CONSECUTIVE_SAME,
    EVALUATIONS,
    FAIL_REASONS,
    RUNS,
    RUNS_PAUSED,
    RUNS_RESUMED,
    SCORE,
    TOOL_DURATION,
    Instrument,
)
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.metrics.accumulation import Accumulation
from spanscore.metrics.exposition import Exposition
from spanscore.scoring.monitors.e_detector import Evidence, Objective

END_S: Final = 1_767_267_600
"""2026-01-01 11:40 UTC: where the history ends, and queries of it."""
MINUTES: Final = 70
"""Longer than the boards show: a window before their first moment is not empty."""
SCRAPE_S: Final = 30

AGENTS: Final = (
    *("approvals", "billing", "catalogue", "disputes", "invoices"),
    *("onboarding", "refunds", "search", "shipping", "support"),
)
EVALUATORS: Final = ("arguments", "budget", "health", "order", "policy", "trajectory")
TOOLS: Final = tuple(
    f"{verb}_{noun}" for noun in ("customer", "order", "parcel") for verb in ("find", "get", "set", "list", "close")
)

_OPENMETRICS: Final = "application/openmetrics-text"
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_TARGET: Final = 'instance="spanscore:9464",job="spanscore"'
_OWN: Final = {each.name: each for each in OWN_INSTRUMENTS}
_TYPICAL_S: Final = 0.4
_MONITOR: Final = "failing_runs"
_OBJECTIVE: Final = Objective(0.2)
_ALARM: Final = 30 * 24 * 60 * len(AGENTS)
"""The evidence of an alarm, with one false one per 30 days."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that fails."""

    agent: str
    at_s: int


class History:
    """The hour: what a Prometheus has of it, and which runs fail in it."""

    def __init__(self) -> None:
        self.failures: Final[list[Failure]] = []
        self._random = random.Random(5)  # noqa: S311 - a history, not a secret
        self._page: Final = Exposition()
        self._spans = 0
        self._evidence: Final = dict.fromkeys(AGENTS, Evidence())
        """Of a monitor, by agent; each scrape is a minute for it."""

    def write(self, path: Path) -> None:
        """Write every scrape of it, for `promtool tsdb create-blocks-from openmetrics`."""
        start_s = END_S - 60 * MINUTES
        with path.open("w", encoding="utf-8") as file:
            for at_s in range(start_s, END_S + 1, SCRAPE_S):
                if at_s > start_s:
                    self._pass(at_s)
                file.writelines(f"{line} {at_s}\n" for line in self._scraped())
            file.write("# EOF\n")

    def _scraped(self) -> Iterator[str]:
        yield f"up{{{_TARGET}}} 1"
        _, body = self._page.page(_OPENMETRICS)
        for name, labels, value in _SAMPLE.findall(body.decode()):
            yield f"{name}{{{labels and labels + ','}{_TARGET}}} {value}"

    def _pass(self, at_s: int) -> None:
        """Let the seconds of one scrape pass: each agent has a run in every other one."""
        for index, agent in enumerate(AGENTS):
            if self._random.random() < 1 / 2:
                self._run(agent, _service(agent), at_s, trouble=0.03 + 0.07 * (index % 4 == 0))
        self._own(at_s)

    def _run(self, agent: str, service: str, at_s: int, trouble: float) -> None:
        # An incident: for ten minutes, half of the runs of one agent fail.
        trouble = 0.5 if agent == "refunds" and 1500 < END_S - at_s < 2100 else trouble  # noqa: PLR2004 - see above
        failing = self._random.random() < trouble
        if failing:
            self.failures.append(Failure(agent, at_s))
        self._watch(f"{service} / {agent}", agent, at_s, failing=failing)
        word = "fail" if failing else "none" if self._random.random() < trouble / 4 else "pass"
        self._page.record(RUNS, 1, (word, agent, service))
        if agent == "approvals":  # most are answered
            self._page.record(RUNS_PAUSED, 1, (agent, service))
            self._page.record(RUNS_RESUMED, int(at_s % 240 > 0), (agent, service))
        guilty = self._random.sample(EVALUATORS, k=self._random.choice((1, 1, 2))) if failing else ()
        for name in guilty:
            self._page.record(FAIL_REASONS, 1, (f"{name}: {_reason(name, agent)}", agent, service))
        for name in EVALUATORS:
            self._evaluate(name, agent, service, "fail" if name in guilty else "skipped" if word == "none" else "pass")
        self._call(agent, service, trouble)

    def _watch(self, series: str, agent: str, at_s: int, *, failing: bool) -> None:
        found = self._evidence[agent] = _OBJECTIVE.after(self._evidence[agent], at_s // SCRAPE_S, failing, 1, _ALARM)
        labels = (_MONITOR, series)
        self._page.record(_OWN["spanscore.monitor.runs"], 1, labels)
        self._page.record(_OWN["spanscore.monitor.runs.bad"], int(failing), labels)
        shares = {(_MONITOR, f"{_service(each)} / {each}"): its.value / _ALARM for each, its in self._evidence.items()}
        logarithms = {each: log10(share) for each, share in shares.items() if share}
        self._page.observe(_OWN["spanscore.monitor.evidence"], lambda: logarithms)
        self._page.observe(_OWN["spanscore.monitor.objective"], lambda: {(_MONITOR,): _OBJECTIVE.at_most})
        self._page.observe(_OWN["spanscore.monitor.alarm"], lambda: {labels: int(found.is_alarm)})

    def _evaluate(self, name: str, agent: str, service: str, outcome: str) -> None:
        odd = outcome == "pass" and self._random.random() < 1 / 40
        outcome = self._random.choice(("skipped", "failed")) if odd else outcome
        self._page.record(EVALUATIONS, 1, (name, outcome, agent, service))
        if outcome in {"pass", "fail"}:
            value = self._random.uniform(0, 0.7) if outcome == "fail" else self._random.choice((0.85, 0.93, 1.0, 1.0))
            self._page.record(SCORE, value, (name, agent, service))
        elif outcome == "failed":
            self._page.record(_OWN["spanscore.evaluation.errors"], 1, (name, "ValueError"))

    def _call(self, agent: str, service: str, trouble: float) -> None:
        first, count = 3 * AGENTS.index(agent), self._random.randint(2, 6)
        for _ in range(count):
            tool = TOOLS[(first + self._random.randrange(3)) % len(TOOLS)]
            error = self._random.choice(("timeout", "HTTPError")) if self._random.random() < trouble else None
            self._page.record(
                TOOL_DURATION, self._random.expovariate(1 / _TYPICAL_S), (tool, "function", error, agent, service)
            )
        self._page.record(AGENT_TOOL_CALLS, count, (agent, service))
        repeated = self._random.choice((0, 0, 0, 1, 2)) if self._random.random() > trouble else 6
        self._page.record(CONSECUTIVE_SAME, repeated, ("trajectory", agent, service))
        self._spans += count + 1

    def _own(self, at_s: int) -> None:
        """Record what spanscore says of itself, some of it gone wrong."""
        page, own = self._page, _OWN
        page.record(own["spanscore.spans.received"], self._spans + 1)
        page.record(own["spanscore.spans.closed"], self._spans)
        page.record(own["spanscore.traces.closed"], 5, ("root_ended",))
        page.record(own["spanscore.traces.revised"], at_s % 4 == 0)
        page.record(own["spanscore.score.latency"], self._random.uniform(2, 4))
        page.record(own["spanscore.evaluation.duration"], self._random.uniform(0.001, 0.02))
        for rule, decision, traces in (("failing", "kept", 1), ("good", "kept", 1), ("good", "dropped", 3)):
            page.record(own["spanscore.keep.traces"], traces, (rule, decision))
            page.record(own["spanscore.keep.spans"], 6 * traces, (decision,))
        self._spans = 0
        if self._random.random() < 1 / 15:
            page.record(own["spanscore.traces.closed"], 1, ("timed_out",))
            page.record(own["spanscore.spans.late"], 2, ("after_close",))
            page.record(own["spanscore.spans.dropped"], 1, ("duplicate",))
            page.record(own["spanscore.spans.refused"], 1, ("malformed",))
            page.record(own["spanscore.export.failures"], 1, ("otlp", "unavailable"))
            page.record(own["spanscore.requests.refused"], 1, ("too_large",))
            page.record(own["spanscore.runs.revised"], 1, ("pass", "fail"))
            page.record(own["spanscore.keep.undecided"], 1, ("max_bytes",))
        for name, values, number in _GAUGES:
            _observe(page, own[name], values, number + self._random.randrange(5))


def _service(agent: str) -> str:
    return "shop" if AGENTS.index(agent) % 2 else "desk"


def _reason(evaluator: str, agent: str) -> str:
    """Return why runs of an agent fail an evaluator."""
    tool, before = (TOOLS[(3 * AGENTS.index(agent) + place) % len(TOOLS)] for place in (0, 1))
    return {
        "arguments": f"{tool}.customer_id: other value",
        "budget": "exceeds duration_s",
        "health": f"{tool} failed: HTTPError",
        "order": f"{tool} was called out of order",
        "policy": f"{tool} breaks must_precede: {before}, {tool}",
        "trajectory": f"{tool} was not called",
    }[evaluator]


_GAUGES: Final = (
    ("spanscore.traces.open", (), 7),
    ("spanscore.spans.live", (), 40),
    ("spanscore.memory.held", (), 5_000_000),
    ("spanscore.export.delay", ("otlp",), 0),
    ("spanscore.queue.size", ("requests",), 12),
    ("spanscore.queue.capacity", ("requests",), 1000),
    ("spanscore.storage.size", (), 3_000_000),
    ("spanscore.storage.capacity", (), 1_000_000_000),
)


def _observe(page: Accumulation, instrument: Instrument, values: tuple[str, ...], number: float) -> None:
    page.observe(instrument, lambda: {values: number})
