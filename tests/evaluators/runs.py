"""Trajectories for tests of evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanscore.model import Completeness, Score, ToolCall, Trajectory

CUT_OFF = Completeness(truncated=True)
NO_ARGUMENTS = Completeness(arguments_recorded=False)
NO_RESULTS = Completeness(results_recorded=False)


def called(*names: str, **parts: Any) -> Trajectory:
    """A run that called these tools."""
    return Trajectory(calls=tuple(ToolCall(name=name) for name in names), **parts)


def made(*calls: tuple[str, Any], **parts: Any) -> Trajectory:
    """A run that called these tools with these arguments."""
    return Trajectory(calls=tuple(ToolCall(name=name, arguments=arguments) for name, arguments in calls), **parts)


def returned(*calls: tuple[str, Any], **parts: Any) -> Trajectory:
    """A run that called these tools and got these results."""
    return Trajectory(calls=tuple(ToolCall(name=name, result=result) for name, result in calls), **parts)


def value_of(outcome: object) -> float:
    """The value of what has to be a score."""
    assert isinstance(outcome, Score), outcome
    return outcome.value


def details_of(outcome: object) -> Mapping[str, Any]:
    """The details of what has to be a score."""
    assert isinstance(outcome, Score), outcome
    return outcome.details


def aligned(outcome: object) -> list[tuple[str | None, str | None, str]]:
    """What stands beside what in the alignment of what has to be a score."""
    return [(entry["expected"], entry["actual"], entry["status"]) for entry in details_of(outcome)["alignment"]]
