"""Runs that wait for a person, and calls that a person refused, as each framework writes them on other spans."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from dialects.spans import START_NS, calls, event, exception, read, span, told_to_wait
from spanscore.model import Span, SpanEvent, StatusCode

STRANDS: Final = "strands.telemetry.tracer"
OPENAI: Final = "openinference.instrumentation.openai_agents"
OPENAI_JS: Final = "@arizeai/openinference-instrumentation-openai-agents"
CLAUDE: Final = "openinference.instrumentation.claude_agent_sdk"


def whole(root: Span) -> Span:
    """A root that lasts as long as the trace."""
    return root._replace(end_ns=START_NS + 1_000_000_000)


def operation(number: int, named: str, attributes: Any = None, **fields: Any) -> Span:
    """A span by the conventions."""
    return span(number, named, {"gen_ai.operation.name": named, **(attributes or {})}, **fields)


def asking(*ids: str) -> str:
    """A model's answer that asks for calls of `refund`, by the conventions."""
    parts = [{"type": "tool_call", "id": each, "name": "refund", "arguments": {"order": each}} for each in ids]
    return json.dumps([{"role": "assistant", "parts": parts}])


def names(*spans: Span) -> list[str]:
    """Return the names of the calls of a trace."""
    return [each.name for each in calls(*spans)]


class TestPydanticAi:
    """The run's result holds the calls."""

    PART: Final = {"part_kind": "tool-call", "tool_name": "refund", "args": {"order": "A-1"}, "tool_call_id": "c2"}

    def run(self, result: Any) -> Span:
        """The run of an agent with a result."""
        return span(1, "agent run", {"agent_name": "shop", "final_result": json.dumps(result)}, scope="pydantic-ai")

    def test_a_run_waits_for_the_calls_in_its_result(self) -> None:
        """To be approved, or to be made elsewhere."""
        for result in ({"calls": [], "approvals": [self.PART]}, {"calls": [self.PART], "approvals": []}):
            assert told_to_wait(self.run(result)) == ("refund",)

    def test_a_run_whose_result_is_cut_off_waits(self) -> None:
        """A result that is cut off begins as one with calls; which they are is not known."""
        run = self.run({"calls": [], "approvals": [self.PART]})
        cut = str(run.attributes["final_result"])[:40]

        assert told_to_wait(run._replace(attributes={**run.attributes, "final_result": cut})) == ("",)

    @pytest.mark.parametrize(
        "own", [{"calls": [], "approvals": []}, {"approvals": [PART]}, {"calls": ["x"], "approvals": ["y"]}, "calls"]
    )
    def test_a_result_of_the_user_s_own_is_no_pause(self, own: Any) -> None:
        """Whatever its keys are."""
        assert told_to_wait(self.run(own)) == ()


class TestStrands:
    """The run's finish reason says that it was interrupted."""

    ROOT: Final = whole(
        operation(1, "invoke_agent", events=(event("gen_ai.choice", {"finish_reason": "interrupt"}),), scope=STRANDS)
    )

    def model(self, number: int, call_id: str, name: str) -> Span:
        """A model's answer that asks for a call."""
        asked = [{"toolUse": {"toolUseId": call_id, "name": name, "input": {}}}]
        told = event("gen_ai.choice", {"finish_reason": "tool_use", "message": json.dumps(asked)})
        return operation(number, "chat", parent=1, events=(told,), scope=STRANDS)

    def tool(self, number: int, call_id: str, name: str, **attributes: str) -> Span:
        """A tool's span."""
        named = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, **attributes}
        return operation(number, "execute_tool", named, parent=1, scope=STRANDS)

    def test_it_waits_for_what_has_no_result(self) -> None:
        """A hook interrupts before the tool has a span, a tool from within its own."""
        asked, begun = self.model(2, "c2", "refund"), self.tool(4, "c2", "refund")
        assert told_to_wait(self.ROOT, asked) == ("refund",)
        assert names(self.ROOT, asked) == names(self.ROOT, asked, begun) == []
        assert names(self.ROOT, asked, self.tool(4, "c2", "refund", **{"gen_ai.tool.status": "success"})) == ["refund"]

    @pytest.mark.parametrize(("status", "made"), [("error", ["lookup"]), ("success", ["lookup", "refund"])])
    def test_a_call_that_a_hook_has_cancelled_was_refused(self, status: str, made: list[str]) -> None:
        """The model is told of an error, and no span is."""
        told = [{"toolResult": {"toolUseId": "c2", "status": status, "content": [{"text": "no"}]}}]
        sent = (event("gen_ai.tool.message", {"content": json.dumps(told)}),)
        assert made == names(
            operation(1, "invoke_agent", scope=STRANDS),
            self.model(2, "c1", "lookup"),
            self.tool(3, "c1", "lookup", **{"gen_ai.tool.status": "success"}),
            self.model(4, "c2", "refund"),
            operation(5, "chat", parent=1, events=sent, scope=STRANDS),
        )


@pytest.mark.parametrize(("scope", "expected"), [("agent_framework", True), ("another", False)])
def test_without_content_a_run_of_agent_framework_may_continue_after_a_refusal(scope: str, *, expected: bool) -> None:
    """Its spans are those of a run that needed no tool."""
    (run,) = read(operation(1, "invoke_agent", scope=scope), operation(2, "chat", parent=1, scope=scope))

    assert run.completeness.may_continue is expected


class TestEndsAsking:
    """Agent Framework and the Vercel AI SDK: the finish reason of the agent's own run."""

    RUNS: Final = {
        "agent framework": operation(
            1, "invoke_agent", {"gen_ai.response.finish_reasons": ["tool_calls"]}, scope="agent_framework"
        ),
        "agent framework, .NET": operation(
            1,
            "invoke_agent",
            {"gen_ai.response.finish_reasons": '["tool_calls"]'},
            scope="Experimental.Microsoft.Agents.AI",
        ),
        "vercel 7": operation(1, "invoke_agent", {"gen_ai.response.finish_reasons": ["tool-calls"]}, scope="gen_ai"),
        "vercel 6": span(
            1, "ai.generateText", {"ai.operationId": "ai.generateText", "ai.response.finishReason": "tool-calls"}
        ),
    }
    EACH: Final = pytest.mark.parametrize("root", RUNS.values(), ids=RUNS)

    @EACH
    def test_the_run_waits_for_what_has_no_result(self, root: Span) -> None:
        """Of its last answer; a call that was executed at the same time has one."""
        asked = operation(2, "chat", {"gen_ai.output.messages": asking("c1", "c2")}, parent=1, scope=root.scope)
        named = {"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1"}
        done = operation(3, "execute_tool", named, parent=1, scope=root.scope)
        assert told_to_wait(whole(root), asked, done) == ("refund",)
        assert [each.call_id for each in calls(whole(root), asked, done)] == ["c1"]
        assert calls(whole(root), asked) == []

    @EACH
    def test_a_run_whose_calls_were_all_executed_does_not_wait(self, root: Span) -> None:
        """It ends at a limit of steps."""
        asked = operation(2, "chat", {"gen_ai.output.messages": asking("c1")}, parent=1, scope=root.scope)
        named = {"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1"}
        done = operation(3, "execute_tool", named, parent=1, scope=root.scope)
        assert told_to_wait(whole(root), asked, done) == ()

    @EACH
    def test_without_content_a_run_waits_where_no_tool_starts_after_the_last_answer(self, root: Span) -> None:
        """The answer's finish reason is told, and not for which call."""
        asked = operation(2, "chat", {"gen_ai.response.finish_reasons": ["tool_calls"]}, parent=1, scope=root.scope)
        done = operation(3, "execute_tool", {"gen_ai.tool.name": "refund"}, parent=1, scope=root.scope)
        assert told_to_wait(whole(root), asked) == ("",)
        assert told_to_wait(whole(root), asked, done) == ()

    def test_another_framework_s_run_that_ends_so_is_an_end(self) -> None:
        """Structured output and hand-offs are asked for as tools, and not executed."""
        root = operation(1, "invoke_agent", {"gen_ai.response.finish_reasons": ["tool_calls"]}, scope="other")
        asked = operation(2, "chat", {"gen_ai.output.messages": asking("c1")}, parent=1)
        assert told_to_wait(whole(root), asked) == ()

    @pytest.mark.parametrize("told", [{"type": "execution-denied", "reason": "no"}, {"denied": True, "reason": "no"}])
    def test_a_denied_call_is_not_made(self, told: Any) -> None:
        """Versions 6 and 7 write the answer that the model is sent in their own ways."""
        answers = [{"type": "tool_call_response", "id": "c2", "response": told}]
        sent = {"gen_ai.input.messages": json.dumps([{"role": "tool", "parts": answers}])}
        root = operation(1, "invoke_agent", scope="gen_ai")
        asked = operation(2, "chat", {"gen_ai.output.messages": asking("c2")}, parent=1, scope="gen_ai")
        assert calls(root, asked, operation(3, "chat", sent, parent=1, scope="gen_ai")) == []


class TestMastra:
    """The run of an agent names the call that it waits for, and what became of it."""

    def run(self, number: int, **told: Any) -> Span:
        """The run of an agent."""
        held = {f"mastra.agent_run.{key}": json.dumps(value) for key, value in told.items()}
        return whole(span(number, "invoke_agent shop", {"mastra.span.type": "agent_run", **held}))

    def tool(self, number: int, parent: int, **held: str) -> Span:
        """An execution."""
        named = {"mastra.span.type": "tool_call", "gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c2", **held}
        return span(number, "execute_tool refund", named, parent=parent, status_code=StatusCode.OK)

    SUSPENDED: Final = {"status": "suspended", "toolName": "refund", "toolCallId": "c2"}

    def test_a_suspended_run_waits_for_the_call_that_it_names(self) -> None:
        """A tool that suspends itself also has a span, whose status is OK."""
        assert told_to_wait(self.run(1, output=self.SUSPENDED)) == ("refund",)
        assert told_to_wait(self.run(1, output={"status": "suspended", "payload": self.SUSPENDED})) == ("refund",)
        assert told_to_wait(self.run(1, output={"text": "the order is suspended"})) == ()
        assert calls(self.run(1, output=self.SUSPENDED), self.tool(2, 1)) == []

    def test_the_same_trace_goes_on(self) -> None:
        """What is executed then is the call; what is refused then is none."""
        waiting = self.run(1, output=self.SUSPENDED)._replace(end_ns=START_NS + 3_500_000), self.tool(2, 1)
        approved = self.run(4, input={"approved": True, "toolCallId": "c2"})
        refused = self.run(4, input={"approved": False, "toolCallId": "c2"})
        result = {"gen_ai.tool.call.result": "done"}
        assert [each.result for each in calls(*waiting, approved, self.tool(6, 4, **result))] == ["done"]
        assert calls(*waiting, refused) == []
        assert [each.result for each in calls(*waiting, refused, self.tool(6, 4, **result))] == ["done"]


class TestHaystack:
    """A breakpoint ends the agent's run; a confirmation has a span."""

    def test_a_breakpoint_is_a_pause(self) -> None:
        """Of the agent's run."""
        raised = exception("haystack.core.errors.BreakpointException", "stop")
        stopped = span(1, "haystack.agent.run", events=(raised,), status_code=StatusCode.ERROR)
        assert told_to_wait(stopped) == ("",)

    @pytest.mark.parametrize("decision", ["reject", "confirm", "modify"])
    def test_a_confirmation_is_no_call(self, decision: str) -> None:
        """The execution that follows it is."""
        hook = "haystack.agent.hook.human_in_the_loop.strategy"
        named = {"haystack.tool.name": "refund", "haystack.tool.call.id": "c2"}
        asked = span(2, hook, {**named, f"{hook}.decision": decision}, parent=1)
        assert calls(span(1, "haystack.agent.run"), asked) == []
        assert names(span(1, "haystack.agent.run"), asked, span(3, "haystack.agent.step.tool", named, parent=1)) == [
            "refund"
        ]


class TestOpenaiAgents:
    """Under OpenInference: a span without a result in Python, a trace without one in JavaScript."""

    def model(self, number: int, scope: str, call_id: str = "c2") -> Span:
        """A model's answer that asks for a call."""
        key = "llm.output_messages.0.message.tool_calls.0.tool_call"
        asked = {f"{key}.id": call_id, f"{key}.function.name": "refund", f"{key}.function.arguments": "{}"}
        return span(number, "response", {"openinference.span.kind": "LLM", **asked}, parent=2, scope=scope)

    def tool(self, number: int, **held: str) -> Span:
        """A tool's span."""
        named = {"openinference.span.kind": "TOOL", "tool.name": "refund", "input.value": "{}", **held}
        return span(number, "refund", named, parent=2, scope=OPENAI)

    AGENT: Final = whole(span(2, "shop", {"openinference.span.kind": "AGENT", "agent.name": "shop"}, scope=OPENAI))

    def test_a_tool_without_a_result_waits(self) -> None:
        """Unless its agent asks a model afterwards: then the result is not recorded."""
        asked = self.model(3, OPENAI)
        assert calls(self.AGENT, asked, self.tool(4)) == []
        assert names(self.AGENT, asked, self.tool(4), self.model(5, OPENAI, "c3")) == ["refund"]
        assert names(self.AGENT, asked, self.tool(4, **{"output.value": "done"})) == ["refund"]
        assert names(self.AGENT, self.tool(4)) == ["refund"]
        assert len(calls(self.AGENT, asked, self.tool(4), self.tool(6, **{"output.value": "done"}))) == 1

    def test_a_tool_without_a_result_that_was_refused_is_no_call(self) -> None:
        """The model is told so when the same trace goes on."""
        key = "llm.input_messages.0.message"
        told = {
            f"{key}.role": "tool",
            f"{key}.tool_call_id": "c2",
            f"{key}.content": "Tool execution was not approved.",
        }
        last = span(6, "response", {"openinference.span.kind": "LLM", **told}, parent=2, scope=OPENAI)
        assert calls(self.AGENT, self.model(3, OPENAI), self.tool(4), last) == []

    def test_a_trace_without_a_result_waits_for_the_last_answer(self) -> None:
        """In JavaScript the call has no span."""
        held = {"openinference.span.kind": "AGENT", "input.value": "refund"}
        root = whole(span(2, "Agent workflow", held, scope=OPENAI_JS, status_code=StatusCode.OK))
        ended = root._replace(attributes={**held, "output.value": "done"})
        asked = self.model(3, OPENAI_JS)
        assert told_to_wait(root, asked) == ("refund",)
        assert told_to_wait(ended, asked) == told_to_wait(root) == ()
        assert told_to_wait(root._replace(status_code=StatusCode.ERROR), asked) == ()


class TestClaudeAgentSdk:
    """A tool whose result never came is abandoned; the run says whether it was deferred."""

    @pytest.mark.parametrize(("reason", "made"), [("tool_deferred", []), ("end_turn", ["refund"])])
    def test_an_abandoned_tool_waits_where_the_run_was_deferred(self, reason: str, made: list[str]) -> None:
        """Else it was refused, cut off, or stopped by a hook: nobody knows, and it stays a call."""
        run = {"openinference.span.kind": "AGENT", "llm.finish_reason": reason}
        named = {"openinference.span.kind": "TOOL", "tool.name": "refund"}
        abandoned = span(2, "refund", named, parent=1, scope=CLAUDE, status_code=2, status_message="Abandoned")
        assert names(whole(span(1, "ClaudeAgent.query", run, scope=CLAUDE)), abandoned) == made


class TestGenkit:
    """A person may answer in place of a tool that has interrupted the run."""

    @pytest.mark.parametrize(("metadata", "made"), [({"interruptResponse": True}, []), ({}, ["refund"])])
    def test_a_person_s_answer_is_no_call(self, metadata: Any, made: list[str]) -> None:
        """The model is sent it as the tool's, and it is marked."""
        asked = {"message": {"content": [{"toolRequest": {"ref": "c2", "name": "refund", "input": {}}}]}}
        answer = {"toolResponse": {"ref": "c2", "name": "refund", "output": "no"}, "metadata": metadata}
        sent = {"messages": [{"role": "tool", "content": [answer]}]}
        assert made == names(
            self.action(1, "flow"), self.action(2, "model", output=asked), self.action(3, "model", input=sent)
        )

    def action(self, number: int, subtype: str, **content: Any) -> Span:
        """A span of an action."""
        held = {f"genkit:{key}": json.dumps(value) for key, value in content.items()}
        parent = 0 if number == 1 else 1
        return span(number, "shop", {"genkit:metadata:subtype": subtype, "genkit:name": "shop", **held}, parent=parent)


class TestLangfuse:
    """LangGraph's interrupts are no errors to its handler for LangChain, which keeps what they were raised with."""

    def observed(self, number: int, kind: str, level: str = "DEFAULT") -> Span:
        """An observation that ended with an interrupt."""
        told = {"level": level, "type": kind, "status_message": "(Interrupt(value='ok?', id='1'),)"}
        held = {f"langfuse.observation.{key}": value for key, value in told.items()}
        return span(number, "refund", held, parent=number - 1)

    def test_an_interrupt_is_a_pause(self) -> None:
        """Of a tool, and of a step of the graph."""
        assert calls(self.observed(1, "span"), self.observed(2, "tool")) == []
        assert told_to_wait(self.observed(1, "span")) == ("",)
        assert names(self.observed(1, "tool", level="ERROR")) == ["refund"]


def test_a_flow_of_crewai_waits_for_feedback() -> None:
    """Its step ends with an exception, and names no tool."""
    raised: SpanEvent = exception("crewai.flow.async_feedback.types.HumanFeedbackPending", "review")
    step = span(1, "review", {"openinference.span.kind": "CHAIN"}, events=(raised,))
    assert told_to_wait(step) == ("",)


def test_a_pause_within_a_pause_is_the_same_one() -> None:
    """LangSmith writes the exception on each span around: the outer one is beside the model that asked."""
    raised: SpanEvent = exception("Exception", "GraphInterrupt((Interrupt(value='refund?'),))")
    kinds = {"langsmith.span.kind": "chain"}
    asked = {"messages": [{"role": "assistant", "tool_calls": [{"id": "c1", "name": "refund", "args": {}}]}]}
    model = {"langsmith.span.kind": "llm", "gen_ai.completion": json.dumps(asked)}
    (run,) = read(
        whole(span(1, "clerk", kinds)),
        span(2, "chat", model, parent=1),
        whole(span(3, "tools", kinds, parent=1, events=(raised,))),
        span(4, "HumanInTheLoopMiddleware.wrap_tool_call", kinds, parent=3, events=(raised,)),
    )
    assert ("refund",) == run.completeness.paused


@pytest.mark.parametrize(("is_running", "resumes"), [("true", True), ("false", False)])
def test_a_workflow_of_llama_index_that_continues_is_given_that_it_runs(is_running: str, *, resumes: bool) -> None:
    """With a saved context; a new turn with the context of the last one does not run yet."""
    given = f'{{"init_state": {{"is_running": {is_running}, "config": {{}}}}, "start_event": null}}'
    held = {"openinference.span.kind": "CHAIN", "input.value": given}
    scope = "openinference.instrumentation.llama_index"
    model = span(3, "llm", {"openinference.span.kind": "LLM"}, parent=1, scope=scope)
    (run,) = read(whole(span(1, "Refund.run", held, scope=scope)), model)
    assert resumes is run.completeness.begin_unseen


def test_a_step_of_a_workflow_that_waits_for_an_event_is_no_pause() -> None:
    """LlamaIndex raises it in steps as a matter of course; in a tool it means a person."""
    raised = exception("workflows.runtime.types.results.WaitingForEvent", "")
    step = span(1, "step", {"openinference.span.kind": "CHAIN"}, events=(raised,))
    assert told_to_wait(step) == ()


class TestContentOff:
    """What content alone shows is neither passed nor failed."""

    def test_a_run_whose_last_answer_was_executed_in_part_may_pause(self) -> None:
        """It asks for several calls, or the run has reached its limit."""
        root = operation(1, "invoke_agent", {"gen_ai.response.finish_reasons": ["tool-calls"]}, scope="gen_ai")
        asked = operation(2, "chat", {"gen_ai.response.finish_reasons": ["tool-calls"]}, parent=1, scope="gen_ai")
        done = operation(3, "execute_tool", {"gen_ai.tool.name": "lookup"}, parent=1, scope="gen_ai")
        (run,) = read(whole(root), asked, done)
        assert (run.completeness.may_pause, run.completeness.paused, run.completeness.complete) == (True, (), False)

    @pytest.mark.parametrize(("output", "may"), [({}, True), ({"output.value": "done"}, False)])
    def test_a_run_of_agno_may_pause_if_its_result_is_hidden(self, output: dict[str, str], may: bool) -> None:  # noqa: FBT001
        """Its agent has tools."""
        held = {"openinference.span.kind": "AGENT", "agno.tools": "['refund']", **output}
        agno = "openinference.instrumentation.agno"
        model = span(2, "OpenAIChat.invoke", {"openinference.span.kind": "LLM"}, parent=1, scope=agno)
        (run,) = read(whole(span(1, "shop.run", held, scope=agno)), model)
        assert run.completeness.may_pause is may

    def test_a_trace_without_a_call_may_continue_after_a_refused_one(self) -> None:
        """If the messages of its first model are hidden."""
        root = operation(1, "invoke_agent", {"gen_ai.agent.name": "shop"}, scope="gen_ai")
        user = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
        for held, may in (({}, True), ({"gen_ai.input.messages": user}, False)):
            (run,) = read(root, operation(2, "chat", held, parent=1, scope="gen_ai"))
            assert (run.completeness.may_continue, run.completeness.complete) == (may, True)

    def test_a_failed_call_of_the_claude_agent_sdk_is_a_call(self) -> None:
        """A refusal in a person's own words looks alike; most are failures of tools."""
        named = {"openinference.span.kind": "TOOL", "tool.name": "refund"}
        failed = span(2, "refund", named, parent=1, scope=CLAUDE, status_code=2, status_message="not today")
        run = span(1, "ClaudeAgent.query", {"openinference.span.kind": "AGENT"}, scope=CLAUDE)
        assert [(each.error, each.may_be_refused) for each in calls(run, failed)] == [("not today", False)]

    def test_the_last_tool_of_adk_without_a_result_waits_unless_a_model_is_asked_after_it(self) -> None:
        """A tool of ADK itself asks nobody."""
        adk = "gcp.vertex.agent"
        root = operation(1, "invoke_agent", {"gen_ai.agent.name": "shop"}, scope=adk)
        asked = operation(2, "generate_content", {"gen_ai.agent.name": "shop"}, parent=1, scope=adk)

        def tool(name: str) -> Span:
            return operation(4, "execute_tool", {"gen_ai.tool.name": name}, parent=1, scope=adk)

        assert names(root, asked, tool("refund")) == []
        assert names(root, asked, tool("transfer_to_agent")) == ["transfer_to_agent"]
        later = operation(6, "generate_content", {"gen_ai.agent.name": "shop"}, parent=1, scope=adk)
        assert names(root, asked, tool("refund"), later) == ["refund"]

    def test_a_call_of_llama_index_without_a_second_span_waits_or_has_failed(self) -> None:
        """Under OpenLLMetry; a call with one has succeeded."""
        llama = "opentelemetry.instrumentation.llamaindex"
        held = {"traceloop.span.kind": "task", "tool.name": "refund", "tool.arguments": "{}"}
        step = span(2, "BaseWorkflowAgent.task", held, parent=1, scope=llama)
        inner = span(3, "FunctionTool.task", {"traceloop.span.kind": "task"}, parent=2, scope=llama)
        root = span(1, "FunctionAgent.workflow", {"traceloop.span.kind": "workflow"}, scope=llama)
        (alone,), (with_inner,) = calls(root, step), calls(root, step, inner)
        assert (alone.may_be_refused, alone.may_have_failed) == (True, True)
        assert (with_inner.may_be_refused, with_inner.may_have_failed) == (False, False)
