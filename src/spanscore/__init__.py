"""Scores the tool calls of LLM agents from their OpenTelemetry spans."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spanscore.contracts import Evaluator
    from spanscore.errors import ConfigError, InputError, PluginError, SpanscoreError
    from spanscore.in_process.exporter import ScoringSpanExporter
    from spanscore.in_process.log_record_processor import ScoringLogRecordProcessor
    from spanscore.in_process.processor import ScoringSpanProcessor
    from spanscore.model import NOT_RECORDED, Failed, Report, Score, Skipped, ToolCall, Trajectory
    from spanscore.runs.golden_runs import assert_trajectory
    from spanscore.runs.recorded_runs import Runs, read, recording, score

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 - in the order of sorted(), which a test can state
    "ConfigError",
    "Failed",
    "InputError",
    "NOT_RECORDED",
    "PluginError",
    "Report",
    "Runs",
    "Score",
    "ScoringLogRecordProcessor",
    "ScoringSpanExporter",
    "ScoringSpanProcessor",
    "Skipped",
    "SpanscoreError",
    "ToolCall",
    "Trajectory",
    "assert_trajectory",
    "evaluator",
    "read",
    "recording",
    "score",
]

_LATER: Final = {
    **dict.fromkeys(("ConfigError", "InputError", "PluginError", "SpanscoreError"), "spanscore.errors"),
    **dict.fromkeys(
        ("NOT_RECORDED", "Failed", "Report", "Score", "Skipped", "ToolCall", "Trajectory"), "spanscore.model"
    ),
    **dict.fromkeys(("Runs", "read", "recording", "score"), "spanscore.runs.recorded_runs"),
    "ScoringLogRecordProcessor": "spanscore.in_process.log_record_processor",
    "ScoringSpanExporter": "spanscore.in_process.exporter",
    "ScoringSpanProcessor": "spanscore.in_process.processor",
    "assert_trajectory": "spanscore.runs.golden_runs",
}


def evaluator(type: str, params: Mapping[str, Any] | None = None) -> Evaluator:  # noqa: A002 - the configuration's word
    """Build an evaluator, the way the configuration does.

    Args:
        type: what `spanscore list evaluators` lists.
        params: its parameters, as `spanscore describe TYPE` documents them.

    Raises:
        ConfigError: there is no such type, or parameters are wrong; the message has a line for every error.
    """
    from spanscore.config import build_evaluator  # noqa: PLC0415 - an agent that only scores needs no YAML or pydantic

    return build_evaluator(type, params or {})


def __getattr__(name: str) -> Any:
    """Import what is first used: pytest loads our plug-in in every run, and scoring by hand does without the SDK."""
    if name in _LATER:
        return globals().setdefault(name, getattr(import_module(_LATER[name]), name))
    raise AttributeError(f"module 'spanscore' has no attribute {name!r}")
