from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from examples import at_most
from spanscore.config import describe, json_schema, loads
from spanscore.contracts import plugins
from spanscore.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[2] / "config").glob("*.yaml"))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Return the schema; making it loads all plug-ins."""
    return json_schema()


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """Return what checks documents by it."""
    return Draft202012Validator(schema)


def test_is_a_schema(schema: dict[str, Any]) -> None:
    """The schema is valid itself."""
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_accepts_the_examples(validator: Draft202012Validator, path: Path) -> None:
    """Every file in `config/` keeps to the schema."""
    validator.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("{}", True),
        ("{traces: null, receivers: {otlp: null}}", True),
        ("{traces: {span_limit: '${env:LIMIT}', unit: '${env:UNIT:-trace}'}}", True),
        ("{traces: {span_limit: '${LIMIT}'}}", False),
        ("{traces: {span_limit: 0}}", False),
        ("{traces: {span_limits: 1}}", False),
        ("{traces: {trace_timeout: 30}}", False),
        ("{traces: {trace_timeout: 30 s}}", False),
        ("{receivers: {otlp: {protocols: {grpc: {endpoint: 'localhost:4317'}}}}}", True),
        ("{receivers: {otlp: {protocols: {grpc: {endpoint: ['[::1]:0']}}}}}", True),
        ("{receivers: {otlp: {protocols: {grpc: {endpoint: localhost}}}}}", False),
        ("{evaluators: {}}", False),
        ("{evaluators: {a: {}}}", False),
        ("{evaluators: {a: {type: tool_correctness}}}", False),
        ("{evaluators: {a: null}}", False),
        ("{evaluators: {a: {type: unknown}}}", False),
        ("{evaluators: {a: {type: tool_call_order, tool_calls_order: [x]}}}", True),
        ("{evaluators: {a: {type: tool_call_order, tool_calls_order: x}}}", False),
        ("{evaluators: {a: {type: tool_call_order}}}", False),
        ("{evaluators: {a: {type: tool_call_order, expected_from: {attribute: x}}}}", True),
        ("{evaluators: {a: {type: tool_call_order, expected_from: {attribute: x}, tool_calls_order: [x]}}}", False),
        ("{evaluators: {a: {type: tool_correctness, expected_from: {attribute: x}, expected_tools: [x]}}}", False),
        ("{evaluators: {a: {type: tool_call_trajectory, expected_from: {attribute: x}}}}", False),
        ("{evaluators: {a: {type: tool_call_count, tool_calls_count: {x: ['>=', 1]}}}}", True),
        ("{evaluators: {a: {type: tool_call_count, tool_calls_count: {x: ['~', 1]}}}}", False),
        ("{exporters: {otlp: {headers: {a: 1}}}}", False),
    ],
)
def test_accepts_and_refuses(validator: Draft202012Validator, text: str, *, accepted: bool) -> None:
    """The schema tells right from wrong where the file alone decides."""
    assert accepted == validator.is_valid(yaml.safe_load(text))


def keys(names: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings of some of these keys."""
    return st.dictionaries(st.sampled_from(names), values, max_size=3)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from(["agent", "30s", "1MiB", "x", "tool_policy"])
)
PARAMETERS = ["type", "threshold", "strict", "tool_names", "required", "allowed", "max_calls", "sample_ratio", "match"]


@at_most(200)
@given(
    traces=keys(["unit", "root", "span_limit", "trace_timeout", "max_trace_bytes", "late_spans"], VALUES),
    evaluators=st.dictionaries(
        st.just("a"),
        keys(PARAMETERS, VALUES | st.lists(st.just("search"), max_size=1)).map(
            lambda entry: {"type": "tool_policy", "forbidden": ["x"], **entry}
        ),
    ),
)
def test_accepts_what_is_loaded(
    validator: Draft202012Validator, traces: dict[str, Any], evaluators: dict[str, Any]
) -> None:
    """What can be loaded keeps to the schema, and what does not keep to it cannot be loaded."""
    document = {"traces": traces, "evaluators": evaluators}
    try:
        loads(yaml.safe_dump(document), "c.yaml", Path())
    except ConfigError:
        assert not validator.is_valid(document)
    else:
        assert validator.is_valid(document)


def test_documents_every_parameter(schema: dict[str, Any]) -> None:
    """Every evaluator is in the schema with all of its parameters, and all of them are documented."""
    properties = [definition.get("properties", {}) for definition in schema["$defs"].values()]
    documented = {each["type"]["const"]: each for each in properties if "const" in each.get("type", {})}

    assert list(plugins.names("evaluators")) == sorted(documented)
    for name, keys_of_entry in documented.items():
        for parameter in describe(name).parameters:
            assert keys_of_entry[parameter.name]["description"] == parameter.doc
            assert parameter.doc
