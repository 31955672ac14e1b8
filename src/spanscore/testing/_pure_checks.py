"""Checks of pure plug-ins: evaluators and dialects."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from spanscore.contracts import (
    CaptureSetting,
    Dialect,
    Evaluator,
    Markers,
    ModelCallReading,
    ModelReading,
    Reading,
    TellsCaptureSettings,
    TellsModelCalls,
)
from spanscore.model import (
    LOG_RECORD,
    NO_SPAN,
    AttributeValue,
    Completeness,
    Failed,
    Score,
    Skipped,
    Span,
    SpanEvent,
    StatusCode,
    ToolCall,
    Trajectory,
)
from spanscore.testing._comparable import comparable, contents
from spanscore.trajectories.wanted import wanted_attributes

_MANY: Final = 2_000
_DEEP: Final = 2_000
_ROUNDS: Final = 4

_Method: TypeAlias = tuple[Callable[[Span], object], type[object]]
"""A method that reads a span, and the type of its answer, which may also be None."""


def check_evaluator(evaluator: Evaluator, trajectories: Iterable[Trajectory] | None = None) -> None:
    """Check that an evaluator keeps its contract.

    It is a frozen dataclass whose `expectation` names a field. For every trajectory it returns exactly one outcome,
    the same when asked again, raises nothing and changes nothing; a score's value is finite and from 0 to 1, and its
    details are JSON.

    Args:
        evaluator: configured as it will be used.
        trajectories: what to evaluate besides `sample_trajectories()`.

    Raises:
        AssertionError: it does not; the message says how.
    """
    _check_shape(evaluator)
    for trajectory in (*sample_trajectories(), *(trajectories or ())):
        where = f"{type(evaluator).__name__}.evaluate({summary(trajectory)})"
        before = contents(trajectory)
        outcome = called(where, evaluator.evaluate, trajectory)
        if not isinstance(outcome, (Score, Skipped, Failed)):
            fail(where, f"must return Score, Skipped or Failed, not {outcome!r}")
        if isinstance(outcome, Score):
            _check_score(where, outcome)
        if outcome != called(where, evaluator.evaluate, trajectory):
            fail(where, "returns another outcome when called again")
        if before != contents(trajectory):
            fail(where, "changes the trajectory")


def check_dialect(dialect: Dialect, spans: Iterable[Span] = ()) -> None:
    """Check that a dialect keeps its contract.

    It has markers. Whatever the attributes of a span hold, `read` and `read_model` raise nothing, change nothing and
    answer the same when asked again. Every attribute that the dialect reads is given hostile values, and must be
    among its declared ones.

    Args:
        dialect: the dialect.
        spans: spans that it knows. Their attributes are replaced by hostile ones, one at a time: with good examples
            the check reaches further.

    Raises:
        AssertionError: it does not; the message says how.
    """
    if not isinstance(dialect.precedence, int):
        fail(type(dialect).__name__, f"precedence must be an integer, not {dialect.precedence!r}")
    _check_settings(dialect)
    examples = [*_marked(dialect.markers), *spans]
    if not any(_marked(dialect.markers)):
        fail(type(dialect).__name__, "needs at least one marker; without it no span is ever offered")
    reading: list[_Method] = [(dialect.read, Reading), (dialect.read_model, ModelReading)]
    model_calls: list[_Method] = []
    if isinstance(dialect, TellsModelCalls):
        model_calls.append((dialect.read_model_call, ModelCallReading))
    for example in examples:
        asked: set[str] = set()
        asked_for_model_calls: set[str] = set()
        _check_methods(dialect, reading, example, asked)
        _check_methods(dialect, model_calls, example, asked_for_model_calls)
        tried: set[str] = set()
        for _ in range(_ROUNDS):
            new = asked.union(asked_for_model_calls, example.attributes) - tried
            for key in sorted(new):
                for value in _hostile_values():
                    hostile = example._replace(attributes={**example.attributes, key: value})
                    _check_methods(dialect, reading, hostile, asked)
                    _check_methods(dialect, model_calls, hostile, asked_for_model_calls)
            tried |= new
        for said, keys in (("reads", asked), ("reads_for_model_calls", asked_for_model_calls)):
            wanted = wanted_attributes([dialect], model_calls=said != "reads")
            if unsaid := sorted(key for key in keys if wanted[key] is None):
                fail(
                    type(dialect).__name__,
                    f"looks at {unsaid[0]!r}, which is not in {said!r}: a receiver leaves it out",
                )


def sample_trajectories() -> tuple[Trajectory, ...]:
    """Return trajectories of every kind that an evaluator meets: empty, ordinary, incomplete, odd, and huge ones."""
    ordinary = [
        {"name": "search", "arguments": {"city": "Paris", "limit": 10}, "result": ["h1"], "duration_ms": 3.5},
        {"name": "book", "arguments": {"hotel": "h1", "paid": True}, "error": "declined", "sequence": 4},
        {"name": "book", "arguments": {"hotel": "h1", "paid": True}, "result": {"content": "ok"}, "sequence": 7},
    ]
    odd_names = (
        "",
        " ",
        "a.b::c/d",
        '"} evil{',
        "__class__",
        "%s{0}",
        "\x00\n\u202e",
        "\ud800",
        "\U0001f980",
        "n" * 70_000,
    )
    unrecorded = (ToolCall(name="search", span_id=bytes(8), start_ns=9, end_ns=5), ToolCall(name="book", start_ns=1))
    incomplete = Completeness(
        root_seen=False, parents_missing=2, truncated=True, arguments_recorded=False, results_recorded=False
    )
    return (
        Trajectory(calls=()),
        Trajectory.from_calls([{"name": "search"}]),
        Trajectory.from_calls(ordinary),
        Trajectory.from_calls({"name": name, "arguments": {name: name}} for name in odd_names),
        Trajectory.from_calls({"name": "search", "arguments": value, "result": value} for value in _odd_values()),
        Trajectory(calls=unrecorded, trace_id=bytes(16), completeness=incomplete),
        dataclasses.replace(
            Trajectory.from_calls(ordinary), completeness=Completeness(truncated=True), tool_definitions=_definitions()
        ),
        Trajectory.from_calls(
            {"name": f"tool_{i % 9}", "arguments": {"i": i}, "sequence": 2 * i} for i in range(_MANY)
        ),
    )


def _check_shape(evaluator: Evaluator) -> None:
    kind = type(evaluator)
    if not dataclasses.is_dataclass(kind) or not getattr(kind, "__dataclass_params__").frozen:  # noqa: B009 - untyped
        fail(kind.__name__, "must be a frozen dataclass")
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    if getattr(kind, "expectation", "") not in {None, *fields}:
        fail(kind.__name__, "must have a class variable 'expectation': the name of a field, or None")


def _check_score(where: str, score: Score) -> None:
    if type(score.value) not in (float, int) or not math.isfinite(score.value) or not 0 <= score.value <= 1:
        fail(where, f"value must be a float from 0 to 1, not {score.value!r}")
    if not isinstance(score.passed, bool):
        fail(where, f"passed must be True or False, not {score.passed!r}")
    if not isinstance(score.explanation, str):
        fail(where, f"explanation must be a text, not {score.explanation!r}")
    try:
        json.dumps(dict(score.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        fail(where, f"details must be JSON: {error}")


def _check_settings(dialect: Dialect) -> None:
    settings: Any = dialect.capture_settings if isinstance(dialect, TellsCaptureSettings) else ()
    if not (isinstance(settings, tuple) and all(isinstance(each, CaptureSetting) for each in settings)):
        fail(type(dialect).__name__, f"capture_settings must be a tuple of CaptureSetting, not {settings!r}")


def _check_methods(dialect: Dialect, methods: Iterable[_Method], span: Span, asked: set[str]) -> None:
    for method, expected in methods:
        _check_method(dialect, method, expected, span, asked)


def _check_method(
    dialect: Dialect, method: Callable[[Span], object], expected: type[object], span: Span, asked: set[str]
) -> None:
    where = _Offered(dialect, method.__name__, span)
    watched = _Watched(span.attributes)
    offered = span._replace(attributes=watched)
    answer = called(where, method, offered)
    if answer is not None and not isinstance(answer, expected):
        fail(where, f"must return {expected.__name__} or None, not {answer!r}")
    first = called(where, comparable, answer)  # some of it may be found only now
    asked |= watched.asked
    if first != comparable(called(where, method, offered)):
        fail(where, "answers differently when asked again")
    if dict(watched) != dict(span.attributes):
        fail(where, "changes the span's attributes")


class _Offered(NamedTuple):
    """A span that is read, written out only for a message: that takes longer than most reading."""

    dialect: Dialect
    method: str
    span: Span

    def __str__(self) -> str:
        return f"{type(self.dialect).__name__}.{self.method}({self.span!r:.500})"


class _Watched(dict[str, AttributeValue]):
    """Attributes that note which keys are asked for."""

    def __init__(self, attributes: Mapping[str, AttributeValue]) -> None:
        super().__init__(attributes)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> AttributeValue:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def _marked(markers: Markers) -> Iterator[Span]:
    plain = Span(bytes(16), bytes(8), b"", "", 1, 2, events=(SpanEvent("exception", 1, {"exception.message": 7}),))
    for key in sorted(markers.attributes):
        yield plain._replace(attributes={key: "x"})
    for scope in sorted(markers.scopes):
        yield plain._replace(scope=scope, status_code=StatusCode.ERROR)
    for prefix in markers.span_names:
        yield plain._replace(name=prefix)
    for prefix in markers.log_names:
        yield plain._replace(name=prefix, kind=LOG_RECORD, parent_span_id=NO_SPAN)


def _hostile_values() -> Iterator[AttributeValue]:
    yield from (None, True, -1, 0.5, 10**30, math.nan, "", "\ud800", b"\xff\x00", "x" * 10_000)
    messages = [{"type": ["object", None], "role": {}}]
    odd: tuple[Any, ...] = ([], {}, [None, {"a": b"\xff"}], {"name": {"id": 5}, "content": [{"type": 3}]}, messages)
    yield from (*odd, json.dumps(messages))
    yield from ("{", "[1,", "null", "{}", '{"name": 5}', '[{"parts": 3}, 4]', '{"a": NaN}', "[" * _DEEP, "'x'", "1e999")


def _odd_values() -> Iterator[Any]:
    deep: Any = 1
    for level in range(_DEEP):
        deep = [deep] if level % 2 else {"a": deep}
    yield from (None, True, 0, 1, 1.0, -0.0, 10**40, 1e308, "", "text", "\ud800", [], [1, [2, {"k": None}]], {}, deep)
    yield {"city": None, "limit": True, "nested": {"a": [1, 1.0, False]}, "\u0000": "\ud800"}


def _definitions() -> dict[str, Any]:
    loop = {"properties": {"city": {"$ref": "#"}}}
    return {"search": loop, "book": {"type": "nonsense"}, "other": None, "remote": {"$ref": "https://example.com/x"}}


def summary(trajectory: Trajectory) -> str:
    names = [call.name[:20] for call in trajectory.calls[:3]]
    return f"{len(trajectory.calls)} calls starting with {names}, {trajectory.completeness}"


def called(where: object, function: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return function(argument)
    except Exception as error:
        raise AssertionError(f"{where}: must not raise, but raised {type(error).__name__}: {error}") from error


def fail(where: object, what: str) -> NoReturn:
    raise AssertionError(f"{where}: {what}")
