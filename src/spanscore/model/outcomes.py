"""Outcomes of evaluators, and the reasons for which an outcome cannot be used."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

MAX_MESSAGE_CHARS: Final = 256

Lack: TypeAlias = Literal[
    "arguments",
    "results",
    "tool calls",
    "tool definitions",
    "user messages",
    "model requests",
    "model names",
    "tokens",
    "durations",
    "run duration",
    "conversation id",
]
"""A kind of data that evaluators may need and the telemetry of a run may lack."""


class MendedBy(enum.IntFlag):
    """Whether further calls of the run could turn the failure into a pass."""

    NOTHING = 0
    EARLIER = enum.auto()
    """Before the known calls."""
    BETWEEN = enum.auto()
    LATER = enum.auto()
    """After the known calls."""
    ANY = EARLIER | BETWEEN | LATER


class Words(NamedTuple):
    """The texts of a score, as in `Score`."""

    explanation: str
    without_content: str | None = None


class Told(NamedTuple):
    """The details of a score, as in `Score`, and its texts."""

    details: Mapping[str, Any]
    words: Callable[[], Words]
    """Returns the texts; called on first use of one of them, as metrics read details only."""


@dataclass(frozen=True, slots=True)
class Score:
    """A trajectory was evaluated.

    Args:
        value: finite, from 0 to 1.
        passed: whether the value reached the threshold and every gate held.
        explanation: one sentence from which the value can be recomputed by hand, and what deviates, down to the
            argument: `issue_refund.amount: expected 40, got 400`.
        details: JSON that says the same to a program.
        without_content: the explanation without arguments and results, for where those may not go; None where the
            explanation holds none.
        mended_by: where the run could have further calls that would make it pass. Read of a run that did not pass and
            of which some calls may be unknown: its failure is certain where no further call could mend it.
    """

    value: float
    passed: bool
    explanation: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    without_content: str | None = None
    mended_by: MendedBy = field(default=MendedBy.ANY, repr=False, compare=False)
    _tell: Callable[[], Told] | None = field(default=None, init=False, repr=False, compare=False)
    _words: Callable[[], Words] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def told_later(
        cls,
        value: float,
        passed: bool,  # noqa: FBT001 - as when made at once
        tell: Callable[[], Told],
        mended_by: MendedBy = MendedBy.ANY,
    ) -> Self:
        """Return a score whose details and texts are made on first use, as they take longer than the value.

        Args:
            value: as above.
            passed: as above.
            tell: returns the rest. It must not fail, and must not depend on the time of the call.
            mended_by: as above.
        """
        score = cls.__new__(cls)
        object.__setattr__(score, "value", value)
        object.__setattr__(score, "passed", passed)
        object.__setattr__(score, "mended_by", mended_by)
        object.__setattr__(score, "_tell", tell)
        object.__setattr__(score, "_words", None)
        return score

    if not TYPE_CHECKING:  # which would take any attribute for one of these

        def __getattr__(self, name: str) -> Any:
            """Make the details or the texts on first use: Python calls this for missing attributes."""
            is_text = name in Words._fields
            if (is_text or name == "details") and (tell := self._tell) is not None:
                details, words = tell()
                object.__setattr__(self, "details", details)
                object.__setattr__(self, "_words", words)
                object.__setattr__(self, "_tell", None)
            if is_text and (words := self._words) is not None:
                explanation, without_content = words()
                object.__setattr__(self, "explanation", explanation)
                object.__setattr__(self, "without_content", without_content)
                object.__setattr__(self, "_words", None)
            return object.__getattribute__(self, name)


@dataclass(frozen=True, slots=True)
class Skipped:
    """There was nothing to evaluate, or not enough was recorded; never a score of 0."""

    reason: str
    lacks: tuple[Lack, ...] = field(default=(), compare=False)
    """The kinds of data whose lack is the reason; empty if the reason is another, or not known."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of an evaluator that had an error: an exception, a time-out, or no valid outcome."""

    error_type: str
    message: str


Outcome: TypeAlias = Score | Skipped | Failed


def checked(outcome: object) -> Outcome:
    """Return the outcome of an evaluator, or a failure if it is invalid."""
    if isinstance(outcome, Score):
        value: object = outcome.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return Failed(
                "InvalidResult", f"the score's value must be a finite number, not {value!r}"[:MAX_MESSAGE_CHARS]
            )
        if not 0 <= value <= 1:
            return Failed("InvalidResult", f"the score's value must be from 0 to 1, not {value!r}")
        return outcome
    if isinstance(outcome, (Skipped, Failed)):
        return outcome
    kind = type(outcome).__name__
    return Failed("InvalidResult", f"an evaluator answers Score, Skipped or Failed, not {kind!r}")


def failure(error: BaseException) -> Failed:
    """Return the outcome for an evaluator that raised."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException as second:  # noqa: BLE001 - the plug-in's own code converts its error to text
        message = f"its message cannot be read: {type(second).__name__}"
    return Failed(kind, message[:MAX_MESSAGE_CHARS])
