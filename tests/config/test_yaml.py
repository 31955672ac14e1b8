from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import at_most
from spanscore.config import Config, _yaml, load, loads
from spanscore.errors import ConfigError

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

FRAGMENTS = (
    *"{}[]:-&*!|>%@`#?~,\t\n '\"",
    "\n  ",
    "- ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    '"\\U00110000"',
    '"\\UFFFFFFFF"',
    '"\\ud800"',
    "\ufeff",
    "\u2028",
    "\0",
    "${env:A}",
    "${env:B:-b}",
    "${",
    "$$",
    "traces",
    "evaluators",
    "type: tool_call_count",
    "tool_calls_count",
    "1e999",
    "9" * 4999,
    "null",
    "true",
    "30s",
)


def test_empty_file_is_the_default(read: Read) -> None:
    """An empty file, a comment and an empty document are the default configuration."""
    for text in ("", "# nothing\n", "---\n", "traces:\nevaluators:\nexporters:\n"):
        config = read(text)

        assert ["health"] == [entry.name for entry in config.evaluators]
        assert ["tool_call_trajectory"] == [entry.type for entry in config.evaluators]
        assert {"evaluators", "evaluators.health"} == config.given


def test_all_errors_in_the_order_of_the_file(problems: Problems) -> None:
    """Every error is told at once, from YAML's own to those of an evaluator, by line and column."""
    assert [
        "c.yaml:2:15 traces.span_limit: must be an integer, not 'many'",
        "c.yaml:4:3 traces.span_limit: the key is given twice; it is already on line 2",
        "c.yaml:5:14 evaluators.a.type: the key is required",
        (
            "c.yaml:6:24 telemetry.log_level: must be 'debug', 'info', 'warning' or 'error', not 'inf'; "
            "did you mean 'info'?"
        ),
    ] == [
        line.partition(": one of ")[0]
        for line in problems("""\
            traces:
              span_limit: many
              unit: agent
              span_limit: 3
            evaluators: {a: {}}
            telemetry: {log_level: inf}
            """)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: [1",
            "c.yaml:1:6: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
        ),
        (
            "traces:\n  unit: trace\n num_traces: 3",
            "c.yaml:3:2: not valid YAML: this line does not fit the mapping or list above it; check its indentation",
        ),
        ("traces:\n\tunit: trace", "c.yaml:2:1: not valid YAML: a tab cannot indent or start a value; use spaces"),
        ("traces: {}\n---\ntraces: {}", "c.yaml:2:1: only one YAML document is allowed in a file"),
        ("traces: {} \0", "c.yaml:1:12: not valid YAML: the character U+0000 is not allowed"),
        ('annotate: "\\U00110000"', "c.yaml:1:14: not valid YAML: no such character in Unicode"),
        ("[]", "c.yaml:1:1: must be a mapping, not a list"),
        (
            "traces: {unit: &a trace}",
            "c.yaml:1:16 traces.unit: anchors and aliases (&name, *name) are not allowed; write the value out",
        ),
        ("traces: {<<: {unit: trace}}", "c.yaml:1:10 traces: merge keys (<<) are not allowed; write the keys out"),
        ("traces: {unit: !mine trace}", "c.yaml:1:16 traces.unit: the tag '!mine' is not allowed here; leave it out"),
        ("traces: !!python/dict {}", "c.yaml:1:9 traces: the tag '!!python/dict' is not allowed here; leave it out"),
        ("traces: {span_limit: !!int many}", "c.yaml:1:22 traces.span_limit: the value does not fit its tag '!!int'"),
        ("traces: {[unit]: trace}", "c.yaml:1:10 traces: a key must be text, not a list, a mapping or an alias"),
        ("traces: {!mine unit: trace}", "c.yaml:1:10 traces: a key must not have an anchor or a tag"),
        ('annotate: "\\ud800"', "c.yaml:1:11 annotate: must not hold half of a surrogate pair"),
        (
            "traces: {span_limit: 1e999}",
            "c.yaml:1:22 traces.span_limit: the number is too large; put it in quotes if text is meant",
        ),
    ],
)
def test_refused(problems: Problems, text: str, expected: str) -> None:
    """What is not plain YAML, or surprises in YAML, is refused at its place."""
    assert [expected] == problems(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, f"c.yaml:1:65 {'[0]' * 64}: must not be nested more than 64 levels deep"),
        ("- " * 100_000, f"c.yaml:1:129 {'[0]' * 64}: must not be nested more than 64 levels deep"),
        ("a" * (2 << 20), "c.yaml:1:1: must not be larger than 1 MiB, but has 2097152 bytes"),
        pytest.param(
            "[" + "1," * 120_000 + "]",
            "c.yaml:1:200000 [99999]: must not hold more than 100000 values",
            marks=pytest.mark.full_size,
        ),
    ],
    ids=["flow depth", "block depth", "size", "values"],
)
def test_bounds(problems: Problems, text: str, expected: str) -> None:
    """A file that is too deep, too large or too long is refused before it costs much."""
    assert [expected] == problems(text)


def test_number_of_values() -> None:
    """A list counts, and so does each value in it; the first one too many is told with its place."""
    allowed, refused = (_yaml.read("[" + "1," * items + "]", None, most_values=1_000) for items in (999, 1_000))

    assert (True, []) == (allowed[0] is not None, allowed[1])
    (problem,) = refused[1]
    assert (None, (1, 2_000), (999,)) == (refused[0], problem.place, problem.path)
    assert "must not hold more than 1000 values" == problem.message
    assert 100_000 == _yaml.MAX_VALUES


def test_bombs(problems: Problems) -> None:
    """Aliases are never expanded: each is refused where it stands."""
    laughs = "a0: &a0 [ha]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))

    lines = problems(laughs)

    assert "c.yaml:1:5 a0: anchors and aliases (&name, *name) are not allowed; write the value out" == lines[1]
    assert "... and 58 more" == lines[-1]


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is missing, a directory or not UTF-8 is an error that names it."""
    file = tmp_path / "c.yaml"

    def message() -> str:
        with pytest.raises(ConfigError) as caught:
            load(file)
        return str(caught.value)

    assert f"{file}: cannot be read: No such file or directory" == message()
    file.write_bytes(b"traces:\n  unit: \xe4\xff")
    assert f"{file}:2:9: must be UTF-8, but has the byte 0xe4" == message()
    file.write_bytes("# día é\n".encode() + b"traces: \xe4")
    assert f"{file}:2:9: must be UTF-8, but has the byte 0xe4" == message()
    file.write_bytes("traces: {}".encode("utf-16"))
    assert f"{file}:1:1: must be UTF-8, but has the byte 0xff" == message()
    file.write_bytes("é".encode() * (1 << 19) + b"x")
    assert f"{file}: must not be larger than 1 MiB" == message()
    file.unlink()
    file.mkdir()
    assert f"{file}: cannot be read: Is a directory" == message()


def test_only_json_is_not_text(read: Read) -> None:
    """Words and numbers of YAML 1.1 stay the text that was written; so do quoted ones of YAML 1.2."""
    for word in ("on", "no", "y", "12:30:45", "0o17", "017", "0x1f", "1_000", "2024-01-01", "<<", '"1"', "'true'"):
        config = read(f"dialects: {{custom: [{{name: a, match: {{a: b}}, tool_name: {word}}}]}}")

        assert word.strip("\"'") == config.dialects[0].tool_name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "evaluators: {a: {type: tool_call_order, tool_calls_order: [a], strict: on}}",
            "c.yaml:1:72 evaluators.a.strict: must be true or false, not 'on'; yes, no, on and off are text",
        ),
        (
            "traces: {span_limit: 0o17}",
            (
                "c.yaml:1:22 traces.span_limit: must be an integer, not '0o17'; "
                "numbers are written in decimal, without quotes or a leading zero"
            ),
        ),
        (
            "traces: {span_limit: 12:30:45}",
            (
                "c.yaml:1:22 traces.span_limit: must be an integer, not '12:30:45'; "
                "numbers are written in decimal, without quotes or a leading zero"
            ),
        ),
        (
            "evaluators: {a: {type: tool_call_order, tool_calls_order: [1]}}",
            "c.yaml:1:60 evaluators.a.tool_calls_order[0]: must be text, not 1; put it in quotes",
        ),
        (
            "evaluators: {a: {type: tool_call_order, tool_calls_order: [true]}}",
            "c.yaml:1:60 evaluators.a.tool_calls_order[0]: must be text, not true; put it in quotes",
        ),
        (
            "traces: {decision_delay: 2}",
            (
                "c.yaml:1:26 traces.decision_delay: must be a duration such as '500ms', '1m30s' or '30d', not 2; "
                "write '2s' for seconds"
            ),
        ),
        (
            "storage: {max_size: 1024}",
            (
                "c.yaml:1:21 storage.max_size: must be a size such as '64MiB', '1GiB' or '10MB', not 1024; "
                "write '1024B' for bytes"
            ),
        ),
    ],
)
def test_ambiguous_scalars(problems: Problems, text: str, expected: str) -> None:
    """Where YAML's reading of a scalar has the wrong type, the message says how to write it."""
    assert [expected] == problems(text)


@at_most(400)
@given(st.text(max_size=200) | st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5)).map("".join))
@example("evaluators: {a: {type: tool_call_count, tool_calls_count: {a: ['>=', 1<<: ]}}}")
def test_any_text(text: str) -> None:
    """Whatever the text, reading it returns a configuration or raises ConfigError."""
    try:
        loads(text, "c.yaml", Path("/nowhere"), {"A": "1"})
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - both ends are fine
