"""Expected calls, and checks that a trajectory has recorded enough to be compared with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from spanscore.compare.names import Normalise, listed
from spanscore.model import NOT_RECORDED, Lack, NotRecorded, ToolCall, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A call in a parameter. Data only: subclass it and add the expectations of the call."""

    name: str
    """The tool's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCall(ExpectedCall):
    """A call of the reference."""

    arguments: Any = field(default_factory=dict)
    """The arguments; none without it."""


def not_recorded() -> NotRecorded:
    """Return the default of a field whose absence differs from null."""
    return NOT_RECORDED


def numbered(names: Iterable[str]) -> Iterator[str]:
    """Yield a key for each name: `a_0`, `b_0`, `a_1`."""
    seen: Counter[str] = Counter()
    for name in names:
        yield f"{name}_{seen[name]}"
        seen[name] += 1


class UnrecordedError(Exception):
    """A trajectory has not recorded enough to be scored. The message is the reason to skip it."""

    def __init__(self, message: str, *lacks: Lack) -> None:
        super().__init__(message)
        self.lacks: Final = lacks


def need_arguments(trajectory: Trajectory, normalise: Normalise, tools: Container[str]) -> None:
    """Raise UnrecordedError if the spans lack the arguments of a call of one of these tools."""
    if lacking := trajectory.without_arguments():
        _need("arguments", lacking, trajectory, normalise, tools)


def need_results(trajectory: Trajectory, normalise: Normalise, tools: Container[str]) -> None:
    """Raise UnrecordedError if the spans lack the result of a call of one of these tools that did not fail."""
    if not trajectory.completeness.results_recorded:
        lacking = [call for call in trajectory.calls if call.result is NOT_RECORDED and call.error is None]
        _need("results", lacking, trajectory, normalise, tools)


def need_missing(trajectory: Trajectory, missing: int) -> None:
    """Raise UnrecordedError if calls that are missing may be in a part of the trace that was not received."""
    if missing and trajectory.completeness.truncated:
        message = f"the trace was cut off by a limit; missing calls ({missing}) may be in the part not received"
        raise UnrecordedError(message)


def _need(
    what: Lack, unrecorded: Iterable[ToolCall], trajectory: Trajectory, normalise: Normalise, tools: Container[str]
) -> None:
    lacking = [call.name for call in unrecorded if normalise(call.name) in tools]
    if not lacking:
        return
    message = f"{what} of {len(lacking)} {'call' if len(lacking) == 1 else 'calls'} of {listed(dict.fromkeys(lacking))}"
    if trajectory.completeness.content_elsewhere:
        message = f"content elsewhere: {message} are kept outside the telemetry, which only refers to them"
        raise UnrecordedError(message, what)
    message += " were masked, or not recorded" if trajectory.completeness.masked else " were not recorded"
    raise UnrecordedError(message, what)
