"""What is to be reached, and whether a figure reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
    "P1": Goal(what="decode and group, spans/s of raw parse's", reach=0.25, stretch=0.35, at_least=True),
    "P2": Goal(what="the same and four evaluators", reach=0.07, stretch=0.12, at_least=True),
    "P3": Goal(what="OTLP/HTTP, 512 spans a request", reach=4.5, stretch=3.5),
    "P3 plain": Goal(what="OTLP/HTTP, 512 spans a request", reach=6.5),
    "P3 peer": Goal(what="OTLP/HTTP, 512 spans a request, beside a peer", reach=1.0, stretch=0.8),
    "P3 plain peer": Goal(what="OTLP/HTTP, 512 spans a request, beside a peer", reach=1.5),
    "P4": Goal(what="OTLP/gRPC, 512 spans a request", reach=6.0, stretch=4.0),
    "P4 plain": Goal(what="OTLP/gRPC, 512 spans a request", reach=10.0),
    "P4 peer": Goal(what="OTLP/gRPC, 512 spans a request, beside a peer", reach=1.0, stretch=0.8),
    "P4 plain peer": Goal(what="OTLP/gRPC, 512 spans a request, beside a peer", reach=1.5),
    "P5": Goal(what="OTLP/gRPC, one span a request", reach=1.7, stretch=1.5),
    "P6": Goal(what="on_end, in the agent's thread", reach=0.6, stretch=0.5),
    "P7": Goal(what="memory an open span", reach=1300, stretch=750, unit="B"),
    "P8": Goal(what="request received to score emitted, p99 at 15 % load", reach=15, stretch=5, unit="ms"),
    "P8 small": Goal(what="the same, 32 spans a request", reach=4, stretch=2, unit="ms"),
    "P9": Goal(what="in-process, root end to score, p99, idle agent", reach=1, stretch=0.1, unit="ms"),
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
