"""Trajectories for tests of evaluators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
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


def around_its_value(evaluator: Any, run: Trajectory) -> tuple[float, list[bool]]:
    """The value, and whether it passes with the threshold next below it, with that value, and with the next above."""
    value = value_of(evaluator.evaluate(run))
    thresholds = (math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf))
    return value, [passed_with(evaluator, threshold, run) for threshold in thresholds]


def passed_with(evaluator: Any, threshold: float, run: Trajectory) -> bool:
    """Whether the run passes with a threshold."""
    outcome = replace(evaluator, threshold=threshold).evaluate(run)
    assert isinstance(outcome, Score), outcome
    return outcome.passed


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
