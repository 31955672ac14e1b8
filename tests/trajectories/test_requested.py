from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from catalogue.bounds import costs_at_most
from dialects.spans import TRACE_ID, call, calls, read, span
from spanscore.contracts import ModelReading
from spanscore.dialects.gen_ai import GenAi
from spanscore.model import JSON, NOT_RECORDED, AttributeValue, CloseReason, Later, Span, StatusCode, Trace, Unit
from spanscore.trajectories.listed_calls import UNNAMED
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from traces import BERN, PARIS, agent, asked, having, lasting, model, tool


class TestRepair:
    def test_by_call_id(self) -> None:
        """The request of the same id tells the arguments."""
        spans = [model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2")), tool(2, "book", call_id="c2")]

        assert calls(*spans) == [call(2, "book", BERN, call_id="c2")]

    def test_one_of_several(self) -> None:
        """Others that lack nothing make no difference."""
        asking = model(1, asked("book", PARIS, "c1"), asked("pay", BERN, "c2"))

        assert calls(asking, tool(2, "book", PARIS, "c1"), tool(3, "pay", call_id="c2")) == [
            call(2, "book", PARIS, call_id="c1"),
            call(3, "pay", BERN, call_id="c2"),
        ]

    def test_by_content(self) -> None:
        """The request with the same arguments tells the id, in whatever order the calls ran."""
        spans = [
            model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2")),
            tool(2, "book", BERN),
            tool(3, "book", PARIS),
        ]

        assert [made.call_id for made in calls(*spans)] == ["c2", "c1"]

    def test_by_order(self) -> None:
        """As many were executed as were asked for."""
        spans = [
            model(1, asked("book", PARIS, "c1")),
            tool(2, "book"),
            model(3, asked("book", BERN, "c2")),
            tool(4, "book"),
        ]

        assert calls(*spans) == [call(2, "book", PARIS, call_id="c1"), call(4, "book", BERN, call_id="c2")]

    def test_an_identical_retry_keeps_the_order(self) -> None:
        """The first attempt failed and left no arguments: it is still the first request's."""
        spans = [
            model(1, asked("book", PARIS, "c1")),
            tool(2, "book"),
            model(3, asked("book", PARIS, "c2")),
            tool(4, "book", PARIS),
        ]

        assert [made.call_id for made in calls(*spans)] == ["c1", "c2"]

    def test_not_when_fewer_ran_than_were_asked_for(self) -> None:
        """Which request was executed cannot be known."""
        spans = [model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2")), tool(2, "book")]

        assert calls(*spans) == [call(2, "book")]

    def test_what_was_handed_back_for_a_failed_call_is_not_looked_for(self) -> None:
        """A model was told the error, which the span tells itself: to read all that it was sent takes long."""

        def look() -> dict[str, JSON]:
            raise AssertionError

        class Unlooked(GenAi):
            def read_model(self, span: Span) -> ModelReading | None:
                reading = super().read_model(span)
                return reading and replace(reading, answers=Later(look))

        spans = [
            model(1, asked("book", PARIS, "c1")),
            tool(2, "book", PARIS, "c1", status_code=StatusCode.ERROR, status_message="no room"),
        ]
        trace = Trace(trace_id=TRACE_ID, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
        (found,) = trajectories(trace, DialectReader([Unlooked()]))

        assert [("book", "no room", NOT_RECORDED)] == [(made.name, made.error, made.result) for made in found.calls]

    def test_a_request_is_executed_once(self) -> None:
        """A call that equals one whose request is known by its id has no request of its own."""
        spans = [model(1, asked("book", PARIS, "c1")), tool(2, "book", call_id="c1"), tool(3, "book", PARIS)]

        assert calls(*spans) == [call(2, "book", PARIS, call_id="c1"), call(3, "book", PARIS)]

    def test_a_request_without_arguments_fits_any(self) -> None:
        """What the model's span does not tell cannot differ."""
        spans = [model(1, asked("book", None, "c1")), tool(2, "book", PARIS)]

        assert calls(*spans) == [call(2, "book", PARIS, call_id="c1")]

    def test_other_arguments_do_not_fit(self) -> None:
        """A call by the same name with other arguments, or another text in place of them, was not asked for."""
        lone = {"openinference.span.kind": "TOOL", "tool.name": "policy", "input.value": "refunds"}
        asking = model(1, asked("book", PARIS, "c1"), asked("policy", {"topic": "fees"}, "c2"))

        made = calls(asking, tool(2, "book", BERN), span(3, "policy", lone))
        assert [("book", None), ("policy", None)] == [(each.name, each.call_id) for each in made]

    def test_a_call_without_a_name_is_known_by_its_arguments(self) -> None:
        """The request with the same arguments tells the name, too."""
        nameless = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": json.dumps(BERN)}
        asking = model(1, asked("book", PARIS, "c1"), asked("cancel", BERN, "c2"))

        assert calls(asking, span(2, "tool", nameless)) == [call(2, "cancel", BERN, call_id="c2")]

    def test_by_order_what_is_left_over(self) -> None:
        """Where the arguments tell of one call that it was asked for second, the other one was asked for first."""
        spans = [
            model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2")),
            tool(2, "book", BERN),
            tool(3, "book"),
        ]

        assert calls(*spans) == [call(2, "book", BERN, call_id="c2"), call(3, "book", PARIS, call_id="c1")]

    def test_by_order_only_if_each_fits(self) -> None:
        """A call that nobody asked for does not take the place of one that was not executed."""
        asking = model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2"))

        made = calls(asking, tool(2, "book", PARIS), tool(3, "book", {"city": "Rome"}))
        assert [made.call_id for made in made] == ["c1", None]

    def test_equal_requests_are_executed_in_turn(self) -> None:
        """The first call is the first request's, and the second the next one's."""
        asking = model(1, asked("book", PARIS, "c1"), asked("book", PARIS, "c2"), asked("book", BERN, "c3"))

        assert [made.call_id for made in calls(asking, tool(2, "book", PARIS), tool(3, "book", PARIS))] == ["c1", "c2"]

    def test_a_call_of_another_id_was_not_asked_for_here(self) -> None:
        """It gets no arguments by order, and takes no request away by its arguments."""
        asking = model(1, asked("book", PARIS, "c1"), asked("book", BERN, "c2"))
        one = model(1, asked("book", PARIS, "c1"))

        assert calls(one, tool(2, "book", call_id="x9")) == [call(2, "book", call_id="x9")]
        made = calls(asking, tool(2, "book", PARIS, "x9"), tool(3, "book", PARIS))
        assert [made.call_id for made in made] == ["x9", "c1"]

    def test_a_nameless_call_does_not_take_what_others_executed(self) -> None:
        """A request that a call by its name was joined with, or one of another id, is not its own."""
        nameless = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": json.dumps(PARIS)}
        asking = model(1, asked("book", PARIS, "c1"))

        assert ["book", UNNAMED] == [made.name for made in calls(asking, tool(2, "book"), span(3, "tool", nameless))]
        known = span(2, "tool", {**nameless, "gen_ai.tool.call.id": "x9"})
        assert [UNNAMED, "book"] == [made.name for made in calls(asking, known, span(3, "tool", nameless))]

    def test_by_a_sole_argument(self) -> None:
        """Its bare text tells which of several requests it was."""
        lone = {"openinference.span.kind": "TOOL", "tool.name": "policy", "input.value": "refunds"}
        asking = model(1, asked("policy", {"topic": "fees"}, "c1"), asked("policy", {"topic": "refunds"}, "c2"))

        assert calls(asking, span(2, "policy", lone)) == [call(2, "policy", {"topic": "refunds"}, call_id="c2")]

    def test_by_a_sole_argument_if_requests_have_no_ids(self) -> None:
        """The bare text counts more than the order."""
        result = {"lc": 1, "id": ["langchain_core"], "kwargs": {"content": "ok", "tool_call_id": "c2"}}
        lone = {
            "openinference.span.kind": "TOOL",
            "tool.name": "policy",
            "input.value": "refunds",
            "output.value": json.dumps({"output": result}),
        }
        made = span(3, "policy", lone, scope="@arizeai/openinference-instrumentation-langchain")
        spans = [model(1, asked("policy", {"wrong": 1})), model(2, asked("policy", {"topic": "refunds"})), made]

        assert [({"topic": "refunds"}, "c2")] == [(each.arguments, each.call_id) for each in calls(*spans)]

    def test_a_sole_argument_that_nothing_names(self) -> None:
        """Where the tool takes several, or none is known, it is not recorded."""
        schema = {"type": "object", "properties": {"topic": {"type": "string"}, "limit": {"type": "integer"}}}
        defined = {"gen_ai.tool.definitions": json.dumps([{"name": "policy", "parameters": schema}])}
        lone = {"openinference.span.kind": "TOOL", "tool.name": "policy", "input.value": "refunds"}
        asking = model(1)

        assert calls(span(2, "policy", lone)) == [call(2, "policy")]
        assert calls(asking._replace(attributes={**asking.attributes, **defined}), span(2, "policy", lone)) == [
            call(2, "policy")
        ]

    def test_a_sole_argument_gets_its_name_back_from_the_request(self) -> None:
        """A lone argument may be written as its bare text, without its name, even where that looks like JSON."""
        lone = {"openinference.span.kind": "TOOL", "tool.name": "query", "input.value": '{"match": 1}'}
        spans = [
            model(1, asked("query", {"body": '{"match": 1}'}, "c1")),
            span(2, "query", lone, scope="openinference.instrumentation.langchain"),
        ]

        assert calls(*spans) == [call(2, "query", {"body": '{"match": 1}'}, call_id="c1")]

    def test_a_sole_argument_gets_its_name_back_from_the_definition(self) -> None:
        """When the tool takes no other; the definitions are read with the model's spans."""
        schema = {"type": "object", "properties": {"topic": {"type": "string"}}}
        defined = {"gen_ai.tool.definitions": json.dumps([{"name": "policy", "parameters": schema}])}
        lone = {"openinference.span.kind": "TOOL", "tool.name": "policy", "input.value": "refunds"}
        asking = model(1)
        spans = [asking._replace(attributes={**asking.attributes, **defined}), span(2, "policy", lone)]

        (trajectory,) = read(*spans)

        assert trajectory.calls == (call(2, "policy", {"topic": "refunds"}),)
        assert dict(trajectory.tool_definitions) == {"policy": schema}
        assert len(trajectory.tool_definitions) == 1

    @pytest.mark.parametrize("is_reference", [False, True])
    def test_a_tool_that_two_agents_declare_otherwise(self, *, is_reference: bool) -> None:
        """Arguments have to fit one of the schemas; with references, which begin at the root, the last one counts."""
        schemas = [{"properties": {"to": {"enum": [name]}}} for name in ("booker", "triage")]
        if is_reference:
            schemas[0] = {"$ref": "#/$defs/to", "$defs": {"to": schemas[0]}}
        asking = [model(number) for number in (1, 2, 3, 4)]
        declared = [
            each._replace(
                attributes={
                    **each.attributes,
                    "gen_ai.tool.definitions": json.dumps([{"name": "hand_over", "parameters": schemas[number % 2]}]),
                }
            )
            for number, each in enumerate(asking)
        ]

        (trajectory,) = read(*declared)

        expected = schemas[1] if is_reference else {"anyOf": schemas}
        assert {"hand_over": expected} == dict(trajectory.tool_definitions)

    def test_a_call_without_any_name_is_unknown(self) -> None:
        """It happened all the same."""
        nameless = span(1, "tool", {"gen_ai.operation.name": "execute_tool"})

        assert calls(nameless) == [call(1, UNNAMED)]


class TestRequestsInPlaceOfCalls:
    def test_the_requests_count_where_no_execution_is_recorded(self) -> None:
        """With what the model was told they returned; they happened after the model's answer."""
        spans = [
            agent(1),
            model(2, asked("book", PARIS, "c1"), parent=1),
            model(4, asked("pay", {}, "c2"), told={"c1": "BK-1"}, parent=1),
        ]

        assert calls(*spans) == [
            call(None, "book", PARIS, at_ms=3, call_id="c1", result="BK-1", agent="planner"),
            call(None, "pay", {}, at_ms=5, call_id="c2", agent="planner"),
        ]

    @pytest.mark.parametrize(
        "answer",
        [
            {"role": "tool", "tool_call_id": "c1", "content": "full", "status": "error"},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": {"isError": True, "content": [{"type": "text", "text": "full"}]},
            },
        ],
    )
    def test_a_request_whose_result_says_so_failed(self, answer: JSON) -> None:
        """The mark of the message, and that of an MCP server in the result."""
        past = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([answer])}
        spans = [agent(1), model(2, asked("book", PARIS, "c1"), parent=1), span(4, "chat", past, parent=1)]

        assert [(made.name, made.error) for made in calls(*spans)] == [("book", "full")]

    def test_not_beside_executions(self) -> None:
        """What a model asked for beside them was not executed."""
        spans = [agent(1), model(2, asked("no_such_tool", PARIS, "c1"), parent=1), tool(4, "book", BERN, parent=1)]

        assert [made.name for made in calls(*spans)] == ["book"]

    def test_not_beside_what_is_no_call(self) -> None:
        """A hand-off is recorded as such, so a tool would be."""
        handoff = span(
            4,
            "triage -> booker",
            {"gen_ai.operation.name": "handoff"},
            parent=1,
            scope="opentelemetry.instrumentation.openai_agents",
        )

        assert calls(agent(1), model(2, asked("transfer_to_booker", {}, "c1"), parent=1), handoff) == []

    @pytest.mark.parametrize("below", [[], [span(2, "POST", parent=1)]])
    def test_not_in_a_trace_of_a_model_alone(self, below: list[Span]) -> None:
        """It is one step of a run; the next may be a trace of its own. A client's HTTP request says no more."""
        assert calls(model(1, asked("book", PARIS, "c1")), *below) == []

    def test_the_last_step_of_a_run_is_no_run_without_calls(self) -> None:
        """Its model was sent the calls of earlier steps. After another text of the user they are of earlier turns."""

        def step(*roles: str) -> str | None:
            kinds = {"user": {"type": "text", "content": "go"}, "assistant": asked("book", PARIS, "c1")}
            answer = {"type": "tool_call_response", "id": "c1", "response": "booked"}
            sent = [{"role": role, "parts": [kinds.get(role, answer)]} for role in roles]
            (run,) = read(having(model(1), {"gen_ai.input.messages": json.dumps(sent)}))
            return run.unread

        assert "it is one step of a run" in (step("user", "assistant", "tool") or "")
        assert (step("user"), step("user", "assistant", "tool", "user")) == (None, None)

    def test_requests_below_one_span_are_several(self) -> None:
        """A framework's span around that of its client is one request with it; a second one below it is another."""
        user = {"role": "user", "parts": [{"type": "text", "content": "go"}]}
        told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "booked"}]}

        def unread(*places: tuple[int, int, list[JSON]]) -> bool:
            sent = [
                having(model(at, parent=above), {"gen_ai.input.messages": json.dumps(x)}) for at, above, x in places
            ]
            (run,) = read(lasting(agent(1), 60), *(lasting(each, 50 - index) for index, each in enumerate(sent)))
            return run.unread is not None

        assert not unread((2, 1, [user]), (3, 2, [user, told]))
        assert unread((2, 1, [user]), (3, 2, [user]), (5, 2, [user, told]))

    def test_below_a_span_of_another_kind(self) -> None:
        """A model's span below a service's is a run without an agent; the service is not a model's client."""
        asking = model(2, asked("book", PARIS, "c1"), parent=1)

        assert [made.name for made in calls(span(1, "POST /chat"), asking)] == ["book"]

    def test_a_wrapped_model_span_is_heard_once(self) -> None:
        """A framework's span around the client's own, both without call ids."""
        wrapped = lasting(model(2, asked("book", PARIS), parent=1), 5)

        assert [made.name for made in calls(agent(1), wrapped, model(3, asked("book", PARIS), parent=2))] == ["book"]

    def test_two_that_overlap_with_one_call_id_are_heard_once(self) -> None:
        """The one that ends first is nearer to the model."""
        spans = [
            agent(1),
            lasting(model(2, asked("book", PARIS, "c1"), parent=1), 5),
            model(3, asked("book", PARIS, "c1"), parent=1),
        ]

        assert calls(*spans) == [call(None, "book", PARIS, at_ms=4, call_id="c1", agent="planner")]

    def test_of_two_that_end_together_the_later_is_heard(self) -> None:
        """It started behind the other, so that it is nearer to the model."""
        spans = [
            agent(1),
            lasting(model(2, asked("book", PARIS, "c1"), parent=1), 2),
            lasting(model(3, asked("book", BERN, "c1"), parent=1), 1),
        ]

        assert [made.arguments for made in calls(*spans)] == [BERN]

    def test_a_call_id_that_comes_again_is_asked_for_again(self) -> None:
        """Some providers count from 0 in every answer."""
        spans = [
            agent(1),
            model(2, asked("book", PARIS, "0"), parent=1),
            model(4, asked("book", BERN, "0"), parent=1),
        ]

        assert [made.arguments for made in calls(*spans)] == [PARIS, BERN]


class TestHandedBack:
    def test_a_call_without_a_result_has_what_the_model_was_told(self) -> None:
        """Some tool spans have no content, and the messages of the next request have."""
        spans = [model(1, asked("book", BERN, "c1")), tool(2, "book", call_id="c1"), model(3, told={"c1": "booked"})]

        assert calls(*spans) == [call(2, "book", BERN, result="booked", call_id="c1")]

    def test_told_by_the_last_request_or_by_one_before(self) -> None:
        """Histories are cut: what the last one lacks, an earlier one may have."""
        spans = [
            *(tool(2, "book", BERN, "c1"), tool(3, "pay", {}, "c2")),
            *(model(4, told={"c1": "booked"}), model(5, told={"c2": "paid"})),
        ]

        assert [made.result for made in calls(*spans)] == ["booked", "paid"]

    def test_what_a_span_tells_stands(self) -> None:
        """A result of the span's own, or its failure, is not replaced."""
        spans = [
            having(tool(2, "book", BERN, "c1"), {"gen_ai.tool.call.result": "B-1"}),
            having(tool(3, "pay", {}, "c2"), {"error.type": "TimeoutError"}),
            model(4, told={"c1": "other", "c2": "failed"}),
        ]

        assert [made.result for made in calls(*spans)] == ["B-1", NOT_RECORDED]

    def test_an_id_of_two_calls_tells_of_neither(self) -> None:
        """Some providers count from 0 in every answer."""
        spans = [tool(1, "book", BERN, "0"), tool(3, "book", PARIS, "0"), model(5, told={"0": "booked"})]

        assert [made.result for made in calls(*spans)] == [NOT_RECORDED, NOT_RECORDED]


class TestSilent:
    """Runs whose models asked for tools, and whose spans do not say what tools did: they are not runs without calls."""

    ASKING: ClassVar = {"gen_ai.response.finish_reasons": ["tool_calls"]}
    STOPPED: ClassVar = {"gen_ai.response.finish_reasons": ["stop"]}
    WHY = "no span or log of it says what tools did, though its model asked for some"
    UNLISTED = "a model asked for tools, and its spans do not say for which"
    STEP = "no span or log of it says what tools did"

    def why(self, *spans: Span) -> str | None:
        """Return why evaluators cannot say anything of the run."""
        (trajectory,) = read(*spans)
        return trajectory.unread and trajectory.unread.partition(":")[0]

    def silent(self, number: int, parent: int, attributes: Mapping[str, AttributeValue] = ASKING) -> Span:
        """A model's span without content."""
        return span(number, "chat", {"gen_ai.operation.name": "chat", **attributes}, parent=parent)

    @pytest.mark.parametrize(
        "attributes",
        [
            {"gen_ai.response.finish_reasons": ["stop", "tool_call"]},
            {"gen_ai.response.finish_reasons": '["TOOL_CALLS"]'},
            {"gen_ai.response.finish_reasons": ["tool-calls"]},
            {"gen_ai.response.finish_reason": "FinishReason.TOOL_CALLS"},
            {"gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "tool_call"}]'},
            {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", "na'},
            {"llm.request.type": "chat", "gen_ai.completion.0.finish_reason": "tool_use"},
            {"openinference.span.kind": "LLM", "llm.finish_reason": "function_call"},
            {"openinference.span.kind": "LLM", "llm.output_messages.0.message.finish_reason": "toolUse"},
            {"ai.operationId": "ai.generateText.doGenerate", "ai.response.finishReason": "tool-calls"},
        ],
    )
    def test_the_reason_says_it(self, attributes: dict[str, AttributeValue]) -> None:
        """Whoever writes it, and where an answer that is cut off may have asked."""
        assert self.why(agent(1), self.silent(2, 1, attributes)) == self.WHY

    @pytest.mark.parametrize(
        "attributes",
        [
            STOPPED,
            {},
            {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "'} | STOPPED,
            {"gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "stop"}]'},
        ],
    )
    def test_not_where_none_was_asked_for(self, attributes: dict[str, AttributeValue]) -> None:
        """An answer without calls, with and without its content, is one."""
        assert self.why(agent(1), self.silent(2, 1, attributes)) is None

    def test_one_step_of_a_run(self) -> None:
        """Its spans say what was asked for, and other traces what was executed: with an answer it was."""
        step = model(1, asked("book", PARIS, "c1"))

        assert self.STEP == self.why(step)
        assert self.STEP == self.why(self.silent(1, 0))
        assert self.why(step, model(3, told={"c1": "booked"})) is None
        assert self.why(model(1)) is None

    def test_not_beside_calls_that_ran(self) -> None:
        """Their spans tell of them."""
        assert self.why(agent(1), self.silent(2, 1), tool(3, "book", parent=1)) is None

    def test_one_of_two_answers(self) -> None:
        """What one lists does not tell what the other asked for."""
        listing = having(model(2, asked("book", PARIS, "c1"), parent=1), self.ASKING)

        assert self.why(agent(1), listing) is None
        assert self.why(agent(1), listing, self.silent(4, 1)) == self.UNLISTED

    def test_two_spans_of_one_answer(self) -> None:
        """The client's own span, below a framework's or in its time, lists what the framework's does not."""
        framework = lasting(self.silent(2, 1), 5)

        assert self.why(agent(1), framework, model(3, asked("book", PARIS, "c1"), parent=2)) is None
        assert self.why(agent(1), framework, model(3, asked("book", PARIS, "c1"), parent=1)) is None
        outer = lasting(model(2, asked("book", PARIS, "c1"), parent=1), 5)
        assert self.why(agent(1), outer, self.silent(3, 2)) is None

    def test_results_of_earlier_turns_in_a_span_within_the_first(self) -> None:
        """The client's own span tells what the framework's leaves out; those of a later request are of this run."""
        outer = lasting(self.silent(2, 1, self.STOPPED), 5)
        turns = having(model(3, told={"c1": "booked"}, parent=2), self.STOPPED)

        assert self.why(agent(1), outer, turns) is None
        assert self.why(agent(1), self.silent(2, 1, self.STOPPED), turns._replace(parent_span_id=agent(1).span_id)) == (
            self.WHY
        )

    def test_of_the_agent_that_asked(self) -> None:
        """Another agent's run is known."""
        spans = [agent(1), model(2, asked("book", PARIS), parent=1), agent(3, "writer", parent=1), self.silent(4, 3)]

        assert {each.agent: bool(each.unread) for each in read(*spans, unit=Unit.AGENT)} == {
            "planner": False,
            "writer": True,
        }

    def test_run_by_run(self) -> None:
        """Where one agent's calls have spans, another's may have none."""
        spans = [
            agent(1),
            tool(2, "book", PARIS, parent=1),
            agent(3, "writer", parent=1),
            model(4, asked("publish", {}, "c1"), parent=3),
            agent(5, "reader", parent=1),
            having(model(6, parent=5), self.STOPPED),
        ]

        assert [("planner", None), ("writer", self.WHY), ("reader", None)] == [
            (each.agent, each.unread and each.unread.partition(":")[0]) for each in read(*spans, unit=Unit.AGENT)
        ]
        assert self.why(*spans) is None

    def test_a_part_of_a_call_is_none(self) -> None:
        """A client's span of a call whose own span did not come says too little to be one."""
        execution = {"span.type": "tool.execution", "tool_use_id": "t1", "success": True}
        part = span(3, "claude_code.tool.execution", execution, parent=1, scope="com.anthropic.claude_code.tracing")

        assert self.why(agent(1), self.silent(2, 1), part) == self.WHY

    def test_not_where_a_span_shows_that_it_was_no_call(self) -> None:
        """An agent that hands over has asked for that, as for a tool."""
        hand_over = span(3, "handoff", {"gen_ai.operation.name": "handoff"}, parent=1)

        assert self.why(agent(1), self.silent(2, 1), hand_over) is None

    def test_declared_tools_are_no_sign(self) -> None:
        """Most runs that need no tool have some."""
        declared = {"gen_ai.tool.definitions": '[{"type": "function", "name": "book"}]'}

        assert self.why(agent(1), self.silent(2, 1, declared | self.STOPPED)) is None
        assert self.why(agent(1), self.silent(2, 1, declared)) is None

    def test_a_result_that_a_model_was_told(self) -> None:
        """It was asked for in an answer that the spans do not hold."""
        assert self.why(agent(1), model(2, parent=1), model(4, told={"c1": "booked"}, parent=1)) == self.WHY

    def test_not_the_results_of_turns_before(self) -> None:
        """The first request of a run has the history of the conversation, and so has that of each agent."""
        history = {"c1": "booked"}
        other = [agent(6, "writer", parent=1), model(7, told={"c2": "published"}, parent=6)]

        assert self.why(agent(1), model(2, told=history, parent=1), model(4, told=history, parent=1)) is None
        assert self.why(agent(1), model(2, told=history, parent=1), *other) is None


class TestAnsweredThoughNothingRan:
    def test_beside_calls_that_ran(self) -> None:
        """A framework answers for a tool that it does not know: the model has called it all the same."""
        spans = [
            model(1, asked("teleport", PARIS, "c1"), asked("book", BERN, "c2")),
            tool(2, "book", BERN, "c2"),
            model(3, asked("pay", {}, "c3"), told={"c1": "no such tool", "c2": "booked"}),
            tool(4, "pay", {}, "c3"),
        ]

        assert calls(*spans) == [
            call(None, "teleport", PARIS, at_ms=2, result="no such tool", call_id="c1"),
            call(2, "book", BERN, result="booked", call_id="c2"),
            call(4, "pay", {}, call_id="c3"),
        ]

    def test_in_the_order_in_which_they_were_asked_for(self) -> None:
        """What was asked for after a call that ran stands after it, though nothing ran."""
        spans = [
            model(1, asked("book", BERN, "c1"), asked("teleport", PARIS, "c2"), asked("pay", {}, "c3")),
            tool(3, "book", BERN, "c1"),
            tool(4, "pay", {}, "c3"),
            model(5, told={"c1": "booked", "c2": "no such tool", "c3": "paid"}),
        ]

        assert [made.name for made in calls(*spans)] == ["book", "teleport", "pay"]

    def test_in_this_order_while_the_answer_is_streamed(self) -> None:
        """The model's span ends after the execution of what it asked for last."""
        spans = [
            lasting(model(1, asked("teleport", PARIS, "c1"), asked("book", BERN, "c2")), 9),
            tool(3, "book", BERN, "c2"),
            model(12, told={"c1": "no such tool", "c2": "booked"}),
        ]

        assert [made.name for made in calls(*spans)] == ["teleport", "book"]

    def test_not_what_nothing_answers(self) -> None:
        """It waits for a user or a client, or the run has ended."""
        spans = [
            model(1, asked("ask_user", PARIS, "c1"), asked("book", BERN, "c2")),
            tool(2, "book", BERN, "c2"),
            model(3, told={"c2": "booked"}),
        ]

        assert [made.name for made in calls(*spans)] == ["book"]

    def test_not_where_a_call_joins_no_request(self) -> None:
        """It may be the one that was asked for, by another name."""
        spans = [
            model(1, asked("book", BERN, "c1")),
            tool(2, "SimpleTool", PARIS),
            model(3, told={"c1": "booked"}),
        ]

        assert [made.name for made in calls(*spans)] == ["SimpleTool"]

    def test_not_beside_a_hand_off(self) -> None:
        """The request for it is answered, too, and its span does not say by which name it was asked for."""
        spans = [
            model(1, asked("transfer_to_clerk", {}, "c1"), asked("book", BERN, "c2")),
            tool(2, "book", BERN, "c2"),
            span(3, "handoff", {"gen_ai.operation.name": "handoff"}),
            model(4, told={"c1": "clerk", "c2": "booked"}),
        ]

        assert [made.name for made in calls(*spans)] == ["book"]

    def test_not_by_an_id_that_comes_again(self) -> None:
        """Some providers count calls from 0 in every answer: the answer is to the call that ran."""
        spans = [
            model(1, asked("book", BERN, "0")),
            tool(2, "book", BERN, "0"),
            model(3, asked("ask_user", {}, "0"), told={"0": "booked"}),
        ]

        assert [made.name for made in calls(*spans)] == ["book"]


class TestCallsOfWhichNothingIsTold:
    def test_they_are_what_was_asked_for_besides_the_others(self) -> None:
        """In their order, where they are as many."""
        spans = [
            agent(1),
            model(2, asked("search", PARIS, "c1"), asked("book", BERN, "c2"), parent=1),
            nameless(3),
            tool(4, "book", BERN, "c2", parent=1),
        ]

        assert calls(*spans) == [
            call(3, "search", PARIS, call_id="c1", agent="planner"),
            call(4, "book", BERN, call_id="c2", agent="planner"),
        ]

    def test_nothing_is_made_up_where_more_was_asked_for(self) -> None:
        """Any of the requests may be that call."""
        spans = [agent(1), model(2, asked("search", PARIS, "c1"), asked("book", BERN, "c2"), parent=1), nameless(3)]

        assert calls(*spans) == [call(3, "unknown", agent="planner")]


def test_a_call_has_the_name_by_which_a_model_knows_the_tool() -> None:
    """A gateway knows it by another, and where no other span tells of the call, the request has its arguments."""
    gateway = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "mcp.target": "rooms"}
    spans = [agent(1), model(2, asked("rooms_book", BERN, "c1"), parent=1), span(3, "tools/call", gateway, parent=1)]

    assert calls(*spans) == [call(3, "rooms_book", BERN, call_id="c1", agent="planner")]
    assert calls(agent(1), model(2, asked("book", BERN, "c1"), parent=1), spans[2]) == [
        call(3, "book", BERN, call_id="c1", agent="planner")
    ]
    assert [each.name for each in calls(agent(1), model(2, asked("search", BERN, "c1"), parent=1), spans[2])] == [
        "book"
    ]


def nameless(number: int) -> Span:
    """The execution of a tool, and no more."""
    return span(number, "execute_tool", {"gen_ai.operation.name": "execute_tool"}, parent=1)


class TestIdsThatAFrameworkMakesUp:
    """Gemini gives its requests no ids; ADK gives each execution one."""

    def test_executions_join_by_content(self) -> None:
        """In whatever order they ran. Each has its turn."""
        asking = model(1, asked("book", PARIS), asked("pay", BERN))

        (found,) = read(asking, tool(2, "pay", BERN, "x1"), tool(3, "book", PARIS, "x2"), model_calls=True)

        assert [("pay", "x1", 0), ("book", "x2", 0)] == [(made.name, made.call_id, made.turn) for made in found.calls]

    def test_arguments_come_from_the_request(self) -> None:
        """Where the execution has none: by the name, in their order."""
        asking = model(1, asked("book", PARIS), asked("book", BERN))

        assert calls(asking, tool(2, "book", call_id="x1"), tool(3, "book", call_id="x2")) == [
            call(2, "book", PARIS, call_id="x1"),
            call(3, "book", BERN, call_id="x2"),
        ]

    def test_a_request_with_an_id_is_another(self) -> None:
        """An execution of another id is none of it."""
        asking = model(1, asked("book", PARIS, "c1"))

        (made,) = calls(asking, tool(2, "book", call_id="x1"))
        assert (made.call_id, made.arguments) == ("x1", NOT_RECORDED)


def test_many_models_before_one() -> None:
    """2,000 that asked at once were all followed by the model whose messages are looked at once: within 1 s."""
    repeated = [asked("book", {"day": number}) for number in range(2_000)]
    asking = [model(number, asked("book", PARIS), parent=1, at_ms=2) for number in range(3, 2_003)]
    after = having(
        model(2_003, parent=1), {"gen_ai.input.messages": json.dumps([{"role": "assistant", "parts": repeated}])}
    )

    with costs_at_most(cpu_s=1):
        assert 2_000 == len(calls(agent(1), *asking, after))


@pytest.mark.parametrize(
    ("before", "result"),
    [({"c1": 0}, [*range(20_000)]), ({}, f"content=[{' ' * 240_000}isError")],
    ids=["another was known before", "the text may tell of a failure"],
)
def test_a_long_answer_to_many_calls_of_one_id(before: dict[str, JSON], result: JSON) -> None:
    """It is compared with what was known before, and searched for a failure, once: within 1 s."""
    asking = [model(number, asked("book", PARIS, "c1"), told=before, parent=1) for number in range(2, 302)]
    spans = agent(1), *asking, model(302, told={"c1": result}, parent=1)

    with costs_at_most(cpu_s=1):
        found = calls(*spans)
    assert [(result, None)] * 300 == [(made.result, made.error) for made in found]
