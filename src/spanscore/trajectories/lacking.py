"""The data that the telemetry of a run lacks, and the settings of instrumentations that record it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from spanscore.contracts import CaptureSetting, Dialect, Precedence, TellsCaptureSettings
from spanscore.model import NOT_RECORDED, Lack, Trace, Trajectory
from spanscore.trajectories.reader import DialectReader

CONTENT: Final[frozenset[Lack]] = frozenset({"arguments", "results", "user messages", "tool calls"})
"""Kinds of data that may be kept outside the telemetry."""
_OF_TOOLS: Final[frozenset[Lack]] = frozenset({"arguments", "results", "durations"})
"""Kinds of data in spans of tools; all other kinds are in spans of models."""

_ATTRIBUTES: Final[Mapping[Lack, str]] = {
    "arguments": "gen_ai.tool.call.arguments",
    "results": "gen_ai.tool.call.result",
    "tool calls": "gen_ai.output.messages",
    "tool definitions": "gen_ai.tool.definitions",
    "user messages": "gen_ai.input.messages",
    "model requests": "a span for each request to a model",
    "model names": "gen_ai.request.model",
    "tokens": "gen_ai.usage.input_tokens, gen_ai.usage.output_tokens",
    "durations": "a span for each tool call",
    "run duration": "the end of the root span",
    "conversation id": "gen_ai.conversation.id",
}
"""The attribute that each is read from, shown if no setting is known."""


class Shortfall(NamedTuple):
    """How much is not recorded."""

    missing: int
    total: int
    unit: str
    """What is counted; empty if it is about the run as a whole."""


def shortfall(run: Trajectory, lack: Lack) -> Shortfall:
    """Return how many of the run's calls or requests to models lack something."""
    calls, requests = run.calls, run.model_calls
    match lack:
        case "arguments":
            return Shortfall(len(run.without_arguments()), len(calls), "call")
        case "results":
            due = [call.result for call in calls if call.error is None]
            return Shortfall(due.count(NOT_RECORDED), len(due), "call")
        case "durations":
            return Shortfall(sum(not call.was_timed for call in calls), len(calls), "call")
        case "tokens":
            missing = sum(each.tokens is None for each in requests)
            return Shortfall(missing, len(requests), "model request")
        case "model names":
            return Shortfall(sum(each.model is None for each in requests), len(requests), "model request")
    return Shortfall(1, 1, "")


class _Instrumentation(NamedTuple):
    name: str
    """Its instrumentation scope, or without one the name of the first dialect."""
    settings: tuple[CaptureSetting, ...]


@dataclass(frozen=True, slots=True)
class Instrumentations:
    """The instrumentations that wrote a trace."""

    tools: tuple[_Instrumentation, ...]
    models: tuple[_Instrumentation, ...]
    others: tuple[_Instrumentation, ...]
    """Of spans that are read, and are no call and no request to a model; if no span is read, of all."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those that wrote calls or requests to models; if none did, of all."""
        return tuple(sorted({each.name for each in (self.tools + self.models) or self.others}))

    def remedies(self, lack: Lack, run: Trajectory) -> tuple[str, ...]:
        """Return the settings with which something is recorded; if none is known, a text with what it is read from.

        A setting is left out if it is on: the run then holds something else that it gives.
        """
        first, second = (self.tools, self.models) if lack in _OF_TOOLS else (self.models, self.tools)
        known = [
            each.setting
            for instrumentation in first or second or self.others
            for each in instrumentation.settings
            if lack in each.gives and self._recorded(instrumentation, run).isdisjoint(each.gives)
        ]
        return tuple(dict.fromkeys(known)) or (f"no known setting, would be read from {_ATTRIBUTES.get(lack, lack)}",)

    def _recorded(self, instrumentation: _Instrumentation, run: Trajectory) -> set[Lack]:
        """Return the content that a run holds of an instrumentation."""
        held: dict[Lack, bool] = {
            "arguments": instrumentation in self.tools
            and any(call.arguments is not NOT_RECORDED for call in run.calls),
            "results": instrumentation in self.tools and any(call.result is not NOT_RECORDED for call in run.calls),
            "user messages": instrumentation in self.models and bool(run.user_text),
        }
        return {lack for lack, is_held in held.items() if is_held}


def instrumentations(trace: Trace, reader: DialectReader) -> Instrumentations:
    """Return the instrumentations of a trace; `reader` is the one that read it."""
    tools: dict[_Instrumentation, None] = {}
    models: dict[_Instrumentation, None] = {}
    others: dict[_Instrumentation, None] = {}
    unread: dict[_Instrumentation, None] = {}
    for span in trace.spans:
        reading, dialects = reader.read(span), reader.reading(span)
        if reading is None:
            unread[_Instrumentation(span.scope or "-", ())] = None
            continue
        instrumentation = _Instrumentation(
            span.scope or reader.knowing(span)[0], tuple(_settings(dialects, span.scope))
        )
        is_call = reading.call is not None and not reading.not_a_call
        (tools if is_call else models if reading.is_model else others)[instrumentation] = None
    return Instrumentations(tuple(tools), tuple(models), tuple(others if tools or models or others else unread))


def _settings(dialects: Iterable[Dialect], scope: str) -> Iterator[CaptureSetting]:
    """Yield the settings for a scope. Of shared conventions the first that knows some counts."""
    for dialect in dialects:
        found = [each for each in _declared(dialect) if scope.startswith(each.scopes)]
        yield from found
        if found and dialect.precedence >= Precedence.CONVENTION:
            return


def _declared(dialect: Dialect) -> Iterable[CaptureSetting]:
    """Return the settings that a dialect declares, without those of plug-ins that are malformed."""
    try:
        settings: Iterable[Any] = dialect.capture_settings if isinstance(dialect, TellsCaptureSettings) else ()
        return [each for each in settings if isinstance(each, CaptureSetting) and _is_well_formed(each)]
    except Exception:  # noqa: BLE001 - a plug-in's own code runs
        return ()


def _is_well_formed(setting: CaptureSetting) -> bool:
    values: tuple[Any, ...] = setting
    return isinstance(values[0], str) and all(
        isinstance(each, tuple) and all(isinstance(text, str) for text in each) for each in values[1:]
    )
