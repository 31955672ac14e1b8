"""Configurations that are meant to hurt, or only written wrongly: refused, with the place, at little cost."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import spanscore
from catalogue.bounds import costs_at_most
from catalogue.scoring import a_run, outcome_of, tool_span
from spanscore import config
from spanscore.compare.globs import glob_matcher
from spanscore.errors import ConfigError
from spanscore.model import Score, Skipped, Trajectory


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Load a file, within 10 s of a slow processor and 64 MiB, and return the error."""

    def refused(text: str, **environment: str) -> str:
        path = tmp_path / "c.yaml"
        path.write_text(text)
        load = (
            partial(config.loads, text, "c.yaml", tmp_path, environment) if environment else partial(config.load, path)
        )
        with costs_at_most(cpu_s=10, mib=64), pytest.raises(ConfigError) as raised:
            load()
        return str(raised.value).replace(str(path), "c.yaml")

    return refused


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!python/name:os.system", "!custom", "!!binary"])
def test_tags(refused: Callable[..., str], tag: str) -> None:
    """A tag outside the core schema is refused; nothing is imported or called."""
    first, *_ = refused(f"evaluators: {tag} ['echo']\n").splitlines()
    assert first.startswith("c.yaml:1:13 evaluators: the tag '")
    assert first.endswith("is not allowed here; leave it out")


def test_aliases_that_multiply(refused: Callable[..., str]) -> None:
    """Nine levels of nine aliases each stand for a billion values: anchors and aliases are refused."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
    assert "c.yaml:1:5 a0: anchors and aliases (&name, *name) are not allowed" in refused("\n".join(lines))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_nesting(refused: Callable[..., str], opening: str, closing: str) -> None:
    """A hundred thousand levels neither end the process nor take long: 64 are allowed."""
    assert "must not be nested more than 64 levels deep" in refused(opening * 100_000 + closing * 100_000)


def test_merge_keys(refused: Callable[..., str]) -> None:
    """Thirteen levels of three merges each would take seconds: merge keys are refused."""
    lines = ["m0: &m0 {k: v}"]
    lines += [f"m{level}: &m{level} {{<<: [*m{level - 1}, *m{level - 1}, *m{level - 1}]}}" for level in range(1, 14)]
    assert "merge keys (<<) are not allowed; write the keys out" in refused("\n".join(lines))


def test_size(refused: Callable[..., str]) -> None:
    """A file of more than 1 MiB is not read."""
    assert "c.yaml: must not be larger than 1 MiB" == refused("#" * 2**20 + "\n")


@pytest.mark.full_size
def test_number_of_values(refused: Callable[..., str]) -> None:
    """A file of more than 100,000 values is not read to its end."""
    assert "must not hold more than 100000 values" in refused("a: [" + "1," * 100_001 + "]")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "traces: {unit: agent, unit: trace}",
            "c.yaml:1:23 traces.unit: the key is given twice; it is already on line 1",
        ),
        (
            "evaluators: {e: {type: tool_call_count, tool_calls_count: {a: 1}, strict: on}}",
            "c.yaml:1:75 evaluators.e.strict: must be true or false, not 'on'; yes, no, on and off are text",
        ),
        (
            "traces: {trace_timeout: 12:30:45}",
            "c.yaml:1:25 traces.trace_timeout: must be a duration such as '500ms', '1m30s' or '30d', not '12:30:45'",
        ),
        (
            "traces: {num_traces: 0o17}",
            "c.yaml:1:22 traces.num_traces: must be an integer, not '0o17'; numbers are written in decimal",
        ),
        ("trace: {unit: agent}", "c.yaml:1:1 trace: unknown key; did you mean 'traces'?"),
        ("evaluators: {e: {type: tool_call_cuont}}", "did you mean 'tool_call_count'?"),
    ],
)
def test_surprises_of_yaml_and_typing_errors(refused: Callable[..., str], text: str, error: str) -> None:
    """Each is refused, with its place and what to write instead."""
    assert error in refused(text)


def test_environment_variables_are_put_in_once(refused: Callable[..., str]) -> None:
    """What a variable holds is not read again, only values are replaced, and no message shows it."""
    environment = {"A": "${env:B}", "B": "canary", "TEN": "10"}
    text = "exporters: {otlp: {headers: {k: '${env:A}'}}}\ntraces: {num_traces: '${env:TEN}'}"
    loaded = config.loads(text, "c.yaml", Path(), environment)
    assert ["${env:B}"] == [secret.reveal() for secret in loaded.exporters["otlp"].headers.values()]
    assert 10 == loaded.traces.num_traces

    told = refused(
        "'${env:B}': 1\ntraces: {unit: '${env:B}', root: 'x${env:B}y'}\nevaluators: {e: {type: '${env:B}'}}",
        **environment,
    )
    assert "unknown key" in told
    assert "canary" not in told


EVIL = "(a+)+$"


def test_patterns_that_take_exponential_time_elsewhere() -> None:
    """A pattern of a JSON Schema runs in linear time: a megabyte within 2 s; what RE2 does not have is refused."""
    schema = {"properties": {"text": {"type": "string", "pattern": EVIL}}}
    evaluator = spanscore.evaluator("tool_arguments_schema", {"schemas": {"search": schema}})
    text = "a" * 2**20 + "!"
    run = Trajectory.from_calls([{"name": "search", "arguments": {"text": text}}])
    with costs_at_most(cpu_s=2, mib=64):
        outcome = evaluator.evaluate(run)
    assert isinstance(outcome, Score)
    assert not outcome.passed

    for pattern in (r"(a)\1", "(?=a)a", "(?<!a)b"):
        with pytest.raises(ConfigError, match="is not one of RE2"):
            spanscore.evaluator("tool_arguments_schema", {"schemas": {"search": {"pattern": pattern}}})


def test_globs_that_take_exponential_time_elsewhere() -> None:
    """A glob of fifty stars is matched with a megabyte of a name within 2 s."""
    matches = glob_matcher("*a" * 50 + "*b?")
    with costs_at_most(cpu_s=2, mib=16):
        assert [False, True] == [matches("a" * 2**20), matches("a" * 2**20 + "bc")]


def deep_schema(levels: int) -> dict[str, Any]:
    """Return a schema in which each level refers to the next twice: 2**levels ways from top to bottom."""
    names = [f"l{level}" for level in range(levels + 1)]
    steps = {name: {"allOf": [{"$ref": f"#/$defs/{below}"}] * 2} for name, below in pairwise(names)}
    return {"$ref": "#/$defs/l0", "$defs": {**steps, names[-1]: {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "is not allowed; use one inside the schema"),
        ({"$ref": "file:///etc/passwd"}, "is not allowed; use one inside the schema"),
        ({"$ref": "#/$defs/nowhere"}, "leads nowhere"),
        ({"$ref": "#"}, "the schema cannot be used"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "cannot be used"),
        (deep_schema(40), "the schema cannot be used: too much work"),
    ],
)
def test_schemas_that_reach_out_or_go_round(monkeypatch: pytest.MonkeyPatch, schema: Any, error: str) -> None:
    """References stay inside the schema, go nowhere over the network, and end: within 2 s."""
    monkeypatch.setattr(socket, "socket", None)
    with costs_at_most(cpu_s=2, mib=64), pytest.raises(ConfigError, match=error):
        spanscore.evaluator("tool_arguments_schema", {"schemas": {"search": schema}})


def test_formats_are_not_checked() -> None:
    """`format` says what a text means and is not run as a regular expression: a hostile text costs nothing."""
    schema = {"properties": {"mail": {"format": "email"}, "date": {"format": "regex"}}}
    evaluator = spanscore.evaluator("tool_arguments_schema", {"schemas": {"search": schema}})
    arguments = {"mail": "a" * 10**6 + "@", "date": EVIL + "(" * 1000}
    with costs_at_most(cpu_s=1, mib=32):
        outcome = evaluator.evaluate(Trajectory.from_calls([{"name": "search", "arguments": arguments}]))
    assert isinstance(outcome, Score)
    assert outcome.passed


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "pattern": r"(?<!a)b"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "#"},
        deep_schema(40),
        {"properties": {"a": {"enum": ["x" * 100] * 1_000}}},
    ],
)
def test_schemas_in_a_trace(monkeypatch: pytest.MonkeyPatch, schema: Any) -> None:
    """A trace may bring the definitions of its tools, and bad ones make the evaluator skip: within 2 s."""
    monkeypatch.setattr(socket, "socket", None)
    definitions = json.dumps([{"type": "function", "name": "search", "parameters": schema}])
    model = tool_span(3)._replace(
        attributes={"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": definitions}, name="chat"
    )
    with costs_at_most(cpu_s=2, mib=64):
        outcome = outcome_of(a_run(tool_span(2, arguments="{}"), model), "{type: tool_arguments_schema}")
    assert isinstance(outcome, Skipped)
