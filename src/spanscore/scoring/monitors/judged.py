"""Which runs a monitor counts, and which of them are bad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from spanscore.messages.nearest import suggestion
from spanscore.messages.plural import plural
from spanscore.messages.printable import label
from spanscore.model import Attributes, AttributeValue, Evaluation, Report, Score
from spanscore.scoring.monitors.settings import MonitoredRuns

Evaluations: TypeAlias = Mapping[str, Evaluation]
"""The evaluations of a run by name."""
Judge: TypeAlias = Callable[[Report, Evaluations], bool | None]
"""Returns whether a run is bad; None if it does not count."""

_LABELS: Final = {"pass": False, "fail": True}


def is_counted(report: Report) -> bool:
    """Return whether monitors count a report: the first one of a run that does not pause."""
    return (
        report.trajectory.recognised
        and report.conversation is None
        and not report.trajectory.completeness.paused
        and (not report.revision or report.paused_before or report.resumed)
    )


def judge_of(watched: MonitoredRuns) -> Judge:
    """Return the function that judges the runs of a monitor."""
    if (evaluator := watched.evaluator) is not None:
        return lambda _, evaluations: _failed(evaluations.get(evaluator))
    if (score := watched.score) is not None:
        return lambda _, evaluations: _is_below(evaluations.get(score), watched.below or 0.0)
    if (tool := watched.tool) is not None:
        return lambda report, _: _tool_failed(report, tool)
    return lambda report, _: _LABELS.get(report.verdict)


def _failed(evaluation: Evaluation | None) -> bool | None:
    return None if evaluation is None else _LABELS.get(evaluation.label or "")


def _is_below(evaluation: Evaluation | None, least: float) -> bool | None:
    if evaluation is None or not isinstance(evaluation.outcome, Score):
        return None
    return evaluation.outcome.value < least


def _tool_failed(report: Report, tool: str) -> bool | None:
    if tool not in report.trajectory.names:
        return None
    return any(call.name == tool and call.error is not None for call in report.trajectory.calls)


def values_of(attributes: Attributes, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the values of attributes as text, as `match` compares them; empty if there is none."""
    return tuple(label(_text(attributes.get(key))) for key in keys)


def absent_sentence(key: str, runs: int, known: Iterable[str]) -> str:
    """Return that no run has an attribute by which a monitor is split, and the known one with the nearest name."""
    return f"{key} is on none of {plural(runs, 'run')}{suggestion(key, (each for each in known if each != key))}"


def _text(value: AttributeValue) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            return ", ".join(filter(None, (_text(item) for item in value if not isinstance(item, list))))
        case _:
            return ""
