from __future__ import annotations

import re

import pytest

from spanscore.config import Parameter, describe
from spanscore.contracts.plugins import names
from spanscore.errors import ConfigError


def test_evaluator() -> None:
    """An evaluator says what it does, and of each parameter what is allowed, its default and what it means."""
    description = describe("tool_call_order")

    assert ("evaluators", "tool_call_order", "built-in") == (description.kind, description.name, description.origin)
    assert "Checks that tools were called in the expected order." == description.summary
    assert description.doc.startswith(description.summary + "\n\nThe value is ")
    assert "tool_calls_order" == description.expectation
    assert ["tool_calls_order", "strict", "threshold", "tool_names", "namespaces", "aliases"] == [
        parameter.name for parameter in description.parameters
    ]
    assert (
        Parameter(
            name="threshold",
            type="number, 0 to 1",
            required=False,
            default="1.0",
            doc="The trajectory passes when its value is at least this.",
            example="0",
        )
        == description.parameters[2]
    )
    assert (True, None, "[search]") == (
        description.parameters[0].required,
        description.parameters[0].default,
        description.parameters[0].example,
    )


@pytest.mark.parametrize(
    ("name", "parameter", "expected"),
    [
        ("tool_call_order", "tool_calls_order", "list of text"),
        ("tool_call_order", "strict", "true or false"),
        ("tool_call_order", "aliases", "mapping of names to text"),
        ("tool_call_order", "tool_names", "exact | sanitized | canonical"),
        ("tool_call_args", "tool_calls", "list of {name, args}"),
        ("tool_policy", "must_precede", "list of [text, text]"),
        ("tool_policy", "max_calls", "integer, at least 0"),
    ],
)
def test_types_in_words(name: str, parameter: str, expected: str) -> None:
    """Types are told in the words of somebody who edits YAML."""
    types = {each.name: each.type for each in describe(name).parameters}

    assert expected == types[parameter]


def test_dialect() -> None:
    """A dialect says whose spans it reads."""
    description = describe("openllmetry", "dialects")

    assert (
        "Traceloop's decorators and instrumentors, Python and JavaScript, and LiteLLM's callback."
        == description.summary
    )
    assert () == description.parameters


@pytest.mark.parametrize("name", names("emitters"))
def test_emitters_are_described_to_users(name: str) -> None:
    """What a class tells its callers is left out."""
    assert not re.search("^(Args|Raises):", describe(name, "emitters").doc, re.MULTILINE)


def test_unknown() -> None:
    """What does not exist cannot be described."""
    with pytest.raises(ConfigError, match=r"^there is no dialect 'openllmetri'; did you mean 'openllmetry'\?"):
        describe("openllmetri", "dialects")
