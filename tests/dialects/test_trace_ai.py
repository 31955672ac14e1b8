from __future__ import annotations

from typing import Any

from dialects.spans import call, exception, read, span
from spanscore.model import Span, StatusCode


def node(number: int, name: str, kind: str, parent: int = 0, **attributes: Any) -> Span:
    """A span of an instrumentor."""
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(number, name, {"gen_ai.span.kind": kind, **held}, parent=parent, scope="traceai_langchain")


def test_kinds_are_attributes_of_its_own() -> None:
    """The message of a tool is printed; the model's answer is LangChain's."""
    asked = (
        '{"message": {"kwargs": {"tool_calls": [{"name": "book", "args": {"n": 1}, "id": "c1", "type": "tool_call"}]}}}'
    )
    printed = "{\"output\": \"content='BK-1' name='book' tool_call_id='c1'\"}"
    failed = node(4, "pay", "TOOL", 1, gen_ai__tool__name="pay", input__value="{}")

    (trajectory,) = read(
        node(1, "planner", "AGENT", lc_agent_name="planner"),
        node(2, "ChatOpenAI", "LLM", 1, output__value=asked, gen_ai__request__model="m", gen_ai__usage__input_tokens=3),
        node(3, "book", "TOOL", 1, gen_ai__tool__name="book", input__value='{"n": 1}', output__value=printed),
        failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)),
        node(5, "tools", "CHAIN", 1),
        model_calls=True,
    )

    assert trajectory.calls == (
        call(3, "book", {"n": 1}, result="BK-1", call_id="c1", agent="planner", turn=0),
        call(4, "pay", {}, error="ValueError: full", error_type="ValueError", agent="planner"),
    )
    assert [(each.model, each.input_tokens) for each in trajectory.model_calls] == [("m", 3)]


def test_an_interrupt_of_langgraph_is_a_pause() -> None:
    """Its spans are marked, and have the status OK. A node waits for the call that its model has asked for."""
    asked = '{"message": {"kwargs": {"tool_calls": [{"name": "pay", "args": {}, "id": "c1", "type": "tool_call"}]}}}'
    before = node(1, "shop", "AGENT", lc_agent_name="shop"), node(2, "ChatOpenAI", "LLM", 1, output__value=asked)
    marked = {"langgraph__interrupt": True}
    for spans in (
        [node(3, "Approval.after_model", "CHAIN", 1, **marked)],
        [node(3, "tools", "CHAIN", 1, **marked), node(4, "pay", "TOOL", 3, gen_ai__tool__name="pay", **marked)],
    ):
        (run,) = read(*before, *spans)
        assert ((), ("pay",)) == (run.calls, run.completeness.paused)
    (run,) = read(*before, node(3, "pay", "TOOL", 1, gen_ai__tool__name="pay"))
    assert (["pay"], ()) == ([*run.names], run.completeness.paused)


def test_a_run_that_is_given_an_answer_continues() -> None:
    """The models' messages leave calls out: the earlier ones are not known."""
    for root, step, expected in (
        ('{"input": "Command(resume=\'yes\')"}', "tools", True),
        ('{"input": "x"}', "Approval.after_model", True),
        ('{"input": "Command(goto=\'x\')"}', "tools", False),
        ('{"messages": "Command(resume=1)"}', "tools", False),
    ):
        spans = node(1, "shop", "AGENT", input__value=root), node(2, step, "CHAIN", 1), node(3, "ChatOpenAI", "LLM", 1)
        (run,) = read(*spans)
        assert expected is run.completeness.begin_unseen


def test_a_tool_of_openai_agents_that_waits() -> None:
    """Such a tool has arguments and no result; the agent is a node of a graph, which elsewhere is no agent's name."""
    before = (
        node(1, "shop", "AGENT", graph__node__id="shop"),
        node(2, "response", "LLM", 1),
        node(3, "pay", "TOOL", 1, gen_ai__tool__name="pay", input__value="{}"),
    )
    own = [each._replace(scope="traceai_openai_agents") for each in before]
    (paused,) = read(*own)
    (made,) = read(*before)
    assert (paused.agent, paused.names, paused.completeness.paused) == ("shop", (), ("pay",))
    assert (made.names, made.completeness.paused, made.agent) == (("pay",), (), None)
    tool = own[2]._replace(attributes={"gen_ai.span.kind": "TOOL", "gen_ai.tool.name": "pay"})
    (silent,) = read(*own[:2], tool)
    assert (silent.names, silent.completeness.paused) == (("pay",), ())
