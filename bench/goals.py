"""What is to be reached, and whether a figure reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

MISSED: Final = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One goal, and the better figure that would be welcome."""

    what: str
    reach: float
    stretch: float | None = None
    at_least: bool = False
    """A larger figure is the better one."""
    unit: str = "x"

    def verdict(self, value: float) -> str:
        """Say how far a figure gets."""
        if self.stretch is not None and self._holds(value, self.stretch):
            return "reached, stretch too"
        return "reached" if self._holds(value, self.reach) else MISSED

    @property
    def wanted(self) -> str:
        """What to reach, as text."""
        sign = "≥" if self.at_least else "≤"
        stretch = "" if self.stretch is None else f" (stretch {self.stretch:g})"
        return f"{sign} {self.reach:g} {self.unit}{stretch}"

    def _holds(self, value: float, limit: float) -> bool:
        return value >= limit if self.at_least else value <= limit


GOALS: Final = {
    "F1": Goal(what="as shipped, against as small as possible", reach=1.7, stretch=1.4),
    "F2": Goal(what="recordings as sent, against `tail_sampling`", reach=2.2, stretch=1.5),
    "F3 HTTP": Goal(what="10 spans a request, against `tail_sampling`", reach=1.3, stretch=1.0),
    "F3 gRPC": Goal(what="10 spans a request, against `tail_sampling`", reach=1.8, stretch=1.0),
    "F4 HTTP": Goal(what="512 spans a request, against `groupbytrace`", reach=1.0, stretch=0.8),
    "F4 gRPC": Goal(what="512 spans a request, against `groupbytrace`", reach=1.3, stretch=0.8),
    "F5 log": Goal(what="a score as an OTLP log event", reach=25, stretch=15, unit="µs"),
    "F5 span": Goal(what="a score as an event of its root span", reach=20, stretch=15, unit="µs"),
    "F6": Goal(what="request to score beyond `decision_delay`, p99 at half load", reach=25, stretch=10, unit="ms"),
    "F7 version": Goal(what="`spanscore --version`", reach=120, stretch=80, unit="ms"),
    "F7 score": Goal(what="`spanscore score` of one small recording", reach=400, stretch=250, unit="ms"),
    "F8 memory": Goal(what="`spanscore score`, peak memory", reach=200, unit="MB"),
    "F8 speed": Goal(what="`spanscore score`, speed", reach=20, at_least=True, unit="MB/s"),
    "F9 load": Goal(what="memory an open span", reach=1200, unit="B"),
    "F9 recordings": Goal(what="memory an open span, recordings", reach=1300, unit="B"),
    "P5": Goal(what="OTLP/gRPC, one span a request", reach=1.7, stretch=1.5),
    "P6": Goal(what="on_end, in the agent's thread", reach=0.6, stretch=0.5),
    "P10": Goal(what="against the fastest peer", reach=1, stretch=5, at_least=True),
    "P11": Goal(what="growth: cost of 10 times the calls", reach=12),
    "P11 LCS": Goal(what="growth: cost of 10 times the calls, LCS", reach=32),
    "P11 traces": Goal(what="growth: cost a span of more open traces", reach=1.1),
    "P12": Goal(what="forwarding and scoring, against scoring", reach=1.3, stretch=1.2),
    "P13": Goal(what="durability `crash`, against `none`", reach=1.1),
    "P14": Goal(what="import spanscore", reach=30, unit="ms"),
    "P15": Goal(what="`expected_trajectory`", reach=50, stretch=10, unit="ms"),
    "P16": Goal(what="expectations made to be slow", reach=2_000, stretch=1_000, unit="ms"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the benchmarks are run."""

    quick: bool = False
    """With less load and fewer rounds: figures swing more."""
    write: bool = False
    """What they find goes into the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    goal: str
    """The goal's number; empty where a figure is there to be compared only."""
    what: str
    figure: str
    yardstick: str = ""
    ratio: str = ""
    reach: str = ""
    verdict: str = ""


class Cell(NamedTuple):
    """One figure of the table for users."""

    row: str
    """The name of the row."""
    column: str
    text: str


def judged(number: str, value: float, *, figure: str, yardstick: str = "", what: str = "") -> Row:
    """Return the row of a goal.

    Args:
        number: of the goal.
        value: what is compared with what to reach.
        figure: what was measured.
        yardstick: what it is measured against.
        what: which part of the goal, where it has several.
    """
    goal = GOALS[number]
    ratio = f"{value:.2f}x" if goal.unit == "x" else ""
    about = f"{goal.what}: {what}" if what else goal.what
    return Row(
        goal=number.split(maxsplit=1)[0],
        what=about,
        figure=figure,
        yardstick=yardstick,
        ratio=ratio,
        reach=goal.wanted,
        verdict=goal.verdict(value),
    )


def unavailable(number: str, why: str, what: str = "") -> Row:
    """Return the row of a goal that cannot be measured here."""
    goal = GOALS[number]
    about = f"{goal.what}: {what}" if what else goal.what
    return Row(
        goal=number.split(maxsplit=1)[0], what=about, figure="", reach=goal.wanted, verdict=f"not available: {why}"
    )
