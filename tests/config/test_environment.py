from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.config import Config, Secret, loads
from spanscore.errors import ConfigError
from spanscore.evaluators.tool_policy import ToolPolicy
from spanscore.model import Trajectory

Problems = Callable[..., list[str]]
Read = Callable[..., Config]


def test_a_variable_is_read_like_what_is_written(read: Read) -> None:
    """What a variable holds is a number, a boolean or text, as if it stood in the file."""
    for written in ("\n  span_limit: ${env:A}", "{span_limit: '${env:A}'}", '{span_limit: "${env:A}"}'):
        assert 12 == read(f"traces: {written}", A="12").traces.span_limit


def test_a_variable_is_text_where_text_is_wanted(read: Read) -> None:
    """A key made of digits, or an empty one, is still text: where text is wanted nothing else could be meant."""
    config = read(
        "exporters: {otlp: {headers: {a: '${env:A}', b: 'x-${env:A}', c: '${env:C:-}', d: '${env:D}'}}}",
        A="12",
        D="true",
    )

    assert {
        "a": Secret("12"),
        "b": Secret("x-12"),
        "c": Secret(""),
        "d": Secret("true"),
    } == config.exporters["otlp"].headers


def test_a_variable_is_text_in_a_list_of_texts(read: Read) -> None:
    """The names of tools are text, also where a variable holds one that looks like a number."""
    text = "evaluators: {a: {type: tool_policy, required: [search, '${env:A}'], max_calls_per_tool: {x: '${env:A}'}}}"

    evaluator = read(text, A="12").evaluators[0].resolve(Trajectory(calls=()))

    assert isinstance(evaluator, ToolPolicy)
    assert (("search", "12"), {"x": 12}) == (evaluator.required, evaluator.max_calls_per_tool)


@pytest.mark.parametrize(
    ("written", "environment", "expected"),
    [
        ("${env:UNIT}", {"UNIT": "agent"}, "agent"),
        ("${env:UNIT:-trace}", {}, "trace"),
        ("${env:UNIT:-trace}", {"UNIT": "agent"}, "agent"),
        ("a${env:G}t", {"G": "gen"}, "agent"),
        ("${env:A}${env:B:-ent}", {"A": "ag"}, "agent"),
    ],
)
def test_references(read: Read, written: str, environment: dict[str, str], expected: str) -> None:
    """A reference may be all of a value or a part of it, and may have a default."""
    assert expected == read(f"traces:\n  unit: {written}", **environment).traces.unit


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$$", "$"),
        ("$${env:A}", "${env:A}"),
        ("cost $5", "cost $5"),
        ("$A", "$A"),
        ("${env:A}", "${env:B}"),
    ],
)
def test_dollars(read: Read, written: str, expected: str) -> None:
    """Two dollars are one; a dollar alone stays; what a variable holds is not looked at again."""
    config = read(f"evaluators: {{a: {{type: tool_policy, required: ['{written}']}}}}", A="${env:B}", B="no")

    assert ToolPolicy(required=(expected,)) == config.evaluators[0].resolve(Trajectory(calls=()))


def test_only_values(problems: Problems) -> None:
    """A key is never replaced."""
    assert [
        (
            "c.yaml:1:12 traces['${env:A}']: unknown key (allowed: decision_delay, late_spans, max_bytes, "
            "max_trace_age, max_trace_bytes, num_traces, pause_bytes, pause_wait, remember_traces, root, span_limit, "
            "trace_timeout, unit)"
        )
    ] == problems("traces: {  '${env:A}': agent}", A="unit")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "annotate: ${env:MODE}",
            (
                "c.yaml:1:11 annotate: the environment variable 'MODE' is not set; give it a default with "
                "${env:MODE:-default}"
            ),
        ),
        (
            "annotate: ${MODE}",
            (
                "c.yaml:1:11 annotate: '${MODE}' must be ${env:NAME} or ${env:NAME:-default}; "
                "write $${ where it is meant as text"
            ),
        ),
        (
            "annotate: a${env:MODE",
            (
                "c.yaml:1:11 annotate: '${' must be ${env:NAME} or ${env:NAME:-default}; "
                "write $${ where it is meant as text"
            ),
        ),
        (
            "annotate: ${env:1X:-none}",
            (
                "c.yaml:1:11 annotate: '${env:1X:-none}' must be ${env:NAME} or ${env:NAME:-default}; "
                "write $${ where it is meant as text"
            ),
        ),
        (
            "traces: {unit: ${env:UNIT}}",
            "c.yaml:1:17: not valid YAML: inside { } and [ ] a value with ${env:NAME} must be in quotes",
        ),
        (
            "annotate: ${env:SURROGATE}",
            "c.yaml:1:11 annotate: the environment variable 'SURROGATE' is not UTF-8",
        ),
    ],
)
def test_bad_references(problems: Problems, text: str, expected: str) -> None:
    """A variable that is not set, and a reference that is malformed, are errors where they stand."""
    assert [expected] == problems(text, SURROGATE="\udcff")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "annotate: ${env:A}",
            "c.yaml:1:11 annotate: must be 'child_span', 'root_event' or 'none', not the value of '${env:A}'",
        ),
        (
            "traces: {span_limit: '${env:A}'}",
            "c.yaml:1:22 traces.span_limit: must be an integer, not the value of '${env:A}'",
        ),
        (
            "traces: {trace_timeout: '${env:NUMBER}'}",
            (
                "c.yaml:1:25 traces.trace_timeout: must be a duration such as '500ms', '1m30s' or '30d', not the value "
                "of '${env:NUMBER}'; write '${env:NUMBER}s' for seconds"
            ),
        ),
        (
            "traces: {span_limit: '-${env:NUMBER}'}",
            "c.yaml:1:22 traces.span_limit: must be at least 1, not the value of '-${env:NUMBER}'",
        ),
        (
            "receivers: {otlp: {protocols: {grpc: {endpoint: 'http://${env:A}'}}}}",
            (
                "c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: must be host:port, such as 'localhost:4317' or "
                "'[::1]:4317', not the value of 'http://${env:A}'; leave the scheme out"
            ),
        ),
        (
            "exporters: {otlp: {endpoint: 'http://me:${env:A}@host'}}",
            "c.yaml:1:30 exporters.otlp.endpoint: must not hold a user name or a password; send them in a header",
        ),
        (
            "evaluators: {a: {type: tool_call_count, tool_calls_count: {search: '${env:A} 1'}}}",
            (
                "c.yaml:1:68 evaluators.a.tool_calls_count.search: the value of '${env:A} 1' must be [operator, "
                "count], 'operator count' or a count"
            ),
        ),
        (
            "evaluators: {a: {type: trajectory_match, expected_from: {dataset: '${env:A}.jsonl', key: id}}}",
            (
                "c.yaml:1:67: ${env:A}.jsonl: cannot be read: No such file or directory; the path is relative to this "
                "configuration"
            ),
        ),
        (
            "dialects: {disabled: ['${env:A}']}",
            "c.yaml:1:23 dialects.disabled[0]: there is no dialect the value of '${env:A}'",
        ),
    ],
)
def test_values_stay_out_of_messages(problems: Problems, text: str, expected: str) -> None:
    """What a variable holds may be a secret: messages show the reference instead."""
    lines = problems(text, A="hunter2", NUMBER="30303")

    assert 1 == len(lines)
    assert "hunter2" not in lines[0]
    assert "30303" not in lines[0]
    assert expected == lines[0].partition(" (dialects: ")[0]


@pytest.mark.parametrize(
    "text",
    [
        "annotate: ${env:A}",
        "traces: {trace_timeout: '${env:A}', span_limit: '${env:A}', max_trace_bytes: 'x${env:A}'}",
        "exporters: {otlp: {endpoint: '${env:A}', headers: ['${env:A}']}, prometheus: {endpoint: '${env:A}:99999'}}",
        "evaluators: {a: {type: '${env:A}'}, b: {type: tool_policy, max_calls: '${env:A}'}}",
        "evaluators: {a: {type: tool_call_count, tool_calls_count: {search: ['${env:A}', '${env:A}']}}}",
    ],
)
@at_most(100)
@given(value=st.text(st.characters(codec="utf-8"), min_size=4, max_size=30).map(lambda text: f"Zq{text}"))
def test_no_value_in_any_message(text: str, value: str) -> None:
    """Whatever a variable holds and wherever it stands, no message tells it."""
    with pytest.raises(ConfigError) as caught:
        loads(text, "c.yaml", Path(), {"A": value})

    assert value not in str(caught.value)
    assert repr(value)[1:-1] not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("{type: tool_policy, max_calls: '${env:LIMIT}'}", "max_calls"),
        ("{type: tool_call_order, expected_from: {dataset: '${env:LIMIT}', key: case}}", "expected_from.dataset"),
    ],
)
def test_a_variable_that_is_not_set_is_told_once(problems: Problems, entry: str, path: str) -> None:
    """That its section lacks something follows from it."""
    (line,) = problems(f"evaluators: {{a: {entry}}}")

    assert f" evaluators.a.{path}: the environment variable 'LIMIT' is not set" in line
