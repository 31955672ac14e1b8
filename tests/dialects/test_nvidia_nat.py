from __future__ import annotations

import pytest

from dialects.spans import call, read, span
from spanscore.model import Span


def function(number: int, name: str, above: str, parent: int, prefix: str = "nat", **attributes: str) -> Span:
    """A function that another has called."""
    held = {f"{prefix}.span.kind": "FUNCTION", f"{prefix}.function.name": name, f"{prefix}.function.parent_name": above}
    held |= {"openinference.span.kind": "CHAIN", **{key.replace("_", "."): value for key, value in attributes.items()}}
    return span(number, name, held, parent=parent, scope="nat")


@pytest.mark.parametrize("prefix", ["nat", "aiq"])
def test_functions_that_the_workflow_calls_are_calls(prefix: str) -> None:
    """The workflow itself is a function as well. The same call seen by the framework within is one."""
    workflow = {
        f"{prefix}.span.kind": "WORKFLOW",
        f"{prefix}.function.name": "root",
        f"{prefix}.conversation.id": "unknown",
        "openinference.span.kind": "CHAIN",
    }
    framework = {
        f"{prefix}.span.kind": "TOOL",
        f"{prefix}.function.name": "<workflow>",
        "openinference.span.kind": "TOOL",
        "input.value": "{'city': 'Oslo'}",
    }
    (trajectory,) = read(
        span(1, "<workflow>", workflow, scope="nat"),
        function(2, "<workflow>", "root", 1, prefix, input_value="hello", output_value="bye"),
        span(3, "weather", framework, parent=2, scope="nat"),
        function(4, "weather", "<workflow>", 3, prefix, input_value='{"city": "Oslo"}', output_value='{"sky": 1}'),
        function(5, "search", "<workflow>", 2, prefix, input_value="Oslo"),
    )

    assert trajectory.calls == (
        call(3, "weather", {"city": "Oslo"}, result={"sky": 1}),
        call(5, "search"),
    )
    assert (trajectory.agent, trajectory.conversation_id, trajectory.recognised) == (None, None, True)
