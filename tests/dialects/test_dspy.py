from __future__ import annotations

from dialects.spans import call, calls, exception, span
from spanscore.model import StatusCode

SCOPE = "openinference.instrumentation.dspy"


def test_the_name_is_the_span_s() -> None:
    """There is no `tool.name`, and arguments stand in the signature of the wrapped function."""
    attributes = {
        "openinference.span.kind": "TOOL",
        "input.value": '{"kwargs": {"city": "Paris"}}',
        "output.value": "[1]",
    }

    assert calls(span(1, "get_weather.__call__", attributes, scope=SCOPE)) == [
        call(1, "get_weather", {"city": "Paris"}, result=[1])
    ]


def test_no_arguments_and_a_failure() -> None:
    """The pseudo tool `finish` takes none."""
    attributes = {"openinference.span.kind": "TOOL", "input.value": '{"kwargs": {}}'}
    failed = span(
        1,
        "finish.__call__",
        attributes,
        scope=SCOPE,
        status_code=StatusCode.ERROR,
        events=(exception("ValueError", "never"),),
    )

    assert calls(failed) == [call(1, "finish", {}, error="ValueError: never")]
