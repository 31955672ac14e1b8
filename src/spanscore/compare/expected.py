"""What evaluators expect, and when a trajectory does not hold enough to be compared with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spanscore.compare.names import Normalise, listed
from spanscore.model import NOT_RECORDED, NotRecorded, Skipped, ToolCall, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A call in a parameter. Data only: subclass it and add what is expected of the call."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

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


def unrecorded_arguments(trajectory: Trajectory, normalise: Normalise, tools: Container[str]) -> Skipped | None:
    """Return the reason to skip, if the spans lack the arguments of a call of one of these tools."""
    lacking = [call for call in trajectory.without_arguments() if normalise(call.name) in tools]
    return _not_recorded("arguments", lacking, trajectory) if lacking else None


def unrecorded_results(trajectory: Trajectory, normalise: Normalise, tools: Container[str]) -> Skipped | None:
    """Return the reason to skip, if the spans lack the result of a call of one of these tools that did not fail."""
    if trajectory.completeness.results_recorded:
        return None
    lacking = [
        call
        for call in trajectory.calls
        if call.result is NOT_RECORDED and call.error is None and normalise(call.name) in tools
    ]
    return _not_recorded("results", lacking, trajectory) if lacking else None


def cut_off(trajectory: Trajectory, missing: int) -> Skipped | None:
    """Return the reason to skip, if calls that are missing may be in the part of the trace that was not received."""
    if not missing or not trajectory.completeness.truncated:
        return None
    return Skipped(f"the trace was cut off by a limit; what is missing ({missing}) may be in the part not received")


def _not_recorded(what: str, calls: list[ToolCall], trajectory: Trajectory) -> Skipped:
    tools = listed(dict.fromkeys(call.name for call in calls))
    lacking = f"{what} of {len(calls)} {'call' if len(calls) == 1 else 'calls'} of {tools}"
    if trajectory.completeness.content_elsewhere:
        return Skipped(f"content elsewhere: {lacking} are kept outside the telemetry, which only refers to them")
    return Skipped(f"{lacking} were not recorded")
