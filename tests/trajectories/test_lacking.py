"""What a run's telemetry lacks, and how its instrumentations would record it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import TRACE_ID, built_in_reader, span
from spanscore.contracts import CallReading, CaptureSetting, Markers, ModelReading, Precedence, Reading
from spanscore.model import CloseReason, Completeness, Lack, ModelCall, Span, ToolCall, Trace, Trajectory
from spanscore.trajectories.lacking import Instrumentations, Shortfall, instrumentations, shortfall
from spanscore.trajectories.reader import DialectReader
from traces import PARIS, agent, model, tool

NOTHING = Trajectory(calls=(ToolCall(name="book"),), completeness=Completeness(arguments_recorded=False))
NONE = "no known setting, would be read from"
OPT_IN = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
)


class Acme:
    """A dialect of a plug-in that knows no settings."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({"acme.tool"}))
    reads: frozenset[str] = frozenset()

    def read(self, span: Span) -> Reading | None:
        """Read a call."""
        return Reading(call=CallReading(name=str(span.attributes["acme.tool"])))

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing."""


class Telling(Acme):
    """A dialect of a plug-in that knows one."""

    capture_settings = (CaptureSetting("ACME_CONTENT=1", ("arguments",), ("acme.",)),)


class Models(Telling):
    """A dialect of a plug-in that reads requests to models."""

    markers = Markers(attributes=frozenset({"acme.model"}))
    capture_settings = (CaptureSetting("ON", ("arguments", "results", "user messages")),)

    def read(self, span: Span) -> Reading | None:
        """Read a request to a model."""
        return Reading(is_model=True)


def wrote(*spans: Span, reader: DialectReader | None = None) -> Instrumentations:
    """The instrumentations of a trace."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return instrumentations(trace, reader or built_in_reader())


def test_how_much_is_missing() -> None:
    """Calls and requests are counted; a call that failed needs no result."""
    run = Trajectory(
        calls=(
            ToolCall(name="book"),
            ToolCall(name="book", error="declined"),
            ToolCall(name="pay", arguments={}, result=1, span_id=bytes(8), end_ns=1),
        ),
        model_calls=(ModelCall(model="m", input_tokens=1), *[ModelCall(input_tokens=1, output_tokens=1)] * 2),
        completeness=Completeness(arguments_recorded=False, results_recorded=False),
    )
    lacks: tuple[Lack, ...] = ("arguments", "results", "durations", "tokens", "model names", "user messages")

    assert [(2, 3, "call"), (1, 2, "call"), (2, 3, "call")] == [shortfall(run, lack) for lack in lacks[:3]]
    assert [(1, 3, "model request"), (2, 3, "model request")] == [shortfall(run, lack) for lack in lacks[3:5]]
    assert Shortfall(1, 1, "") == shortfall(run, lacks[5])


@pytest.mark.parametrize(
    ("scope", "remedy"),
    [
        ("opentelemetry.instrumentation.genai.langchain", OPT_IN),
        ("agent_framework", "ENABLE_SENSITIVE_DATA=true"),
        ("my-app", f"{NONE} gen_ai.tool.call.arguments"),
    ],
)
def test_the_setting_is_that_of_the_scope(scope: str, remedy: str) -> None:
    """Instrumentations share a convention, and have settings of their own; for others the attribute is named."""
    found = wrote(agent(1, scope=scope), tool(2, "book", parent=1, scope=scope))

    assert ((scope,), (remedy,)) == (found.names, found.remedies("arguments", NOTHING))


def test_tools_and_models_of_two_instrumentations() -> None:
    """Each lack is one of those whose spans would have it."""
    models = "opentelemetry.instrumentation.genai.openai"
    found = wrote(agent(1), model(2, parent=1, scope=models), tool(3, "book", parent=1, scope="agent_framework"))

    assert ("agent_framework", models) == found.names
    assert ("ENABLE_SENSITIVE_DATA=true",) == found.remedies("results", NOTHING)
    assert (OPT_IN,) == found.remedies("user messages", NOTHING)
    assert (f"{NONE} gen_ai.usage.input_tokens, gen_ai.usage.output_tokens",) == found.remedies("tokens", NOTHING)


def test_a_setting_that_is_on() -> None:
    """It would not help: its instrumentation wrote other content."""
    found = wrote(tool(1, "book", PARIS, scope="agent_framework"))
    run = Trajectory(calls=(ToolCall(name="book", arguments=PARIS),))

    assert (f"{NONE} gen_ai.tool.call.result",) == found.remedies("results", run)


def test_dialects_of_plug_ins() -> None:
    """Settings are optional; without a scope, an instrumentation has the name of its dialect."""
    spans = span(1, "book", {"acme.tool": "book"}), span(2, "pay", {"acme.tool": "pay"}, scope="acme.sdk")

    unknown = wrote(spans[0], reader=DialectReader([Acme()]))
    assert (("Acme",), (f"{NONE} gen_ai.tool.call.arguments",)) == (
        unknown.names,
        unknown.remedies("arguments", NOTHING),
    )
    telling = wrote(*spans, reader=DialectReader([Telling()]))
    assert (("Telling", "acme.sdk"), ("ACME_CONTENT=1",)) == (telling.names, telling.remedies("arguments", NOTHING))
    assert (f"{NONE} gen_ai.tool.call.result",) == telling.remedies("results", NOTHING)


def test_spans_that_nothing_reads() -> None:
    """Their scopes are named."""
    assert ("http",) == wrote(span(1, "GET /", {"http.request.method": "GET"}, scope="http")).names


class _Raising(Acme):
    @property
    def capture_settings(self) -> tuple[CaptureSetting, ...]:
        """Fail."""
        raise RuntimeError


@pytest.mark.parametrize(
    "settings",
    [
        None,
        1,
        "text",
        ("text",),
        (CaptureSetting(1),),  # type: ignore[arg-type]
        (CaptureSetting("a", 1),),  # type: ignore[arg-type]
        (CaptureSetting("a", ([],)),),  # type: ignore[arg-type]
        (CaptureSetting("a", scopes="acme"),),  # type: ignore[arg-type]
        (CaptureSetting("a", scopes=(1,)),),  # type: ignore[arg-type]
        (CaptureSetting("a", scopes=("acme.", 1)),),  # type: ignore[arg-type]
    ],
)
def test_malformed_settings_of_a_plug_in(settings: Any) -> None:
    """They are left out, and well-formed ones beside them count."""
    dialect = Telling()
    beside = settings if isinstance(settings, tuple) else ()
    for given, remedy in ((settings, f"{NONE} gen_ai.tool.call.arguments"), ((*beside, CaptureSetting("A=1")), "A=1")):
        dialect.capture_settings = given
        found = wrote(span(1, "book", {"acme.tool": "book"}, scope="acme.sdk"), reader=DialectReader([dialect]))
        assert (remedy,) == found.remedies("arguments", NOTHING)


def test_settings_that_cannot_be_read() -> None:
    """They are none."""
    found = wrote(span(1, "book", {"acme.tool": "book"}), reader=DialectReader([_Raising()]))
    assert (f"{NONE} gen_ai.tool.call.arguments",) == found.remedies("arguments", NOTHING)


@pytest.mark.parametrize(
    ("precedences", "expected"),
    [
        ((Precedence.FRAMEWORK, Precedence.FRAMEWORK), ("A=0", "A=1")),
        ((Precedence.FRAMEWORK, Precedence.CONVENTION), ("A=0", "A=1")),
        ((Precedence.CONVENTION, Precedence.CONVENTION), ("A=0",)),
    ],
)
def test_settings_of_several_dialects(precedences: tuple[Precedence, ...], expected: tuple[str, ...]) -> None:
    """Each framework's count; of shared conventions the first that knows some."""
    dialects = [Telling() for _ in precedences]
    for number, (dialect, precedence) in enumerate(zip(dialects, precedences, strict=True)):
        dialect.precedence = precedence
        dialect.capture_settings = (CaptureSetting(f"A={number}", ("arguments",)),)
    silent = Telling()
    silent.precedence, silent.capture_settings = precedences[0], (CaptureSetting("B=1", scopes=("other.",)),)
    found = wrote(span(1, "book", {"acme.tool": "book"}, scope="acme.sdk"), reader=DialectReader([silent, *dialects]))
    assert expected == found.remedies("arguments", NOTHING)


ON: Final = CaptureSetting("ON", ("arguments", "results", "user messages"))


@pytest.mark.parametrize(
    ("run", "of_tools", "of_models"),
    [
        (Trajectory(calls=()), True, True),
        (Trajectory(calls=(ToolCall(name="f"),)), True, True),
        (Trajectory(calls=(ToolCall(name="f", arguments={}), ToolCall(name="f"))), False, True),
        (Trajectory(calls=(ToolCall(name="f"), ToolCall(name="f", result=1))), False, True),
        (Trajectory(calls=(), user_text=("hi",)), True, False),
    ],
)
def test_a_setting_is_on_if_its_instrumentation_wrote_content(
    run: Trajectory, *, of_tools: bool, of_models: bool
) -> None:
    """Arguments and results are of the instrumentation of tools, texts of the one of models."""
    dialect = Telling()
    dialect.capture_settings = (ON,)
    other = Models()
    found = wrote(
        span(1, "f", {"acme.tool": "f"}, scope="acme.t"),
        span(2, "m", {"acme.model": "m"}, scope="acme.m"),
        reader=DialectReader([dialect, other]),
    )
    assert of_tools is (("ON",) == found.remedies("results", run))
    assert of_models is (("ON",) == found.remedies("user messages", run))
    assert ("acme.m", "acme.t") == found.names
