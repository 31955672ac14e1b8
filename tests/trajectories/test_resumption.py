"""The calls of a run before its pause, which the first request to a model of the next trace repeats."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from campaigns.cut_runs import OF_TOOLS, cuts
from catalogue.bounds import costs_at_most
from corpora import NAMES, recorded
from dialects.spans import TRACE_ID, built_in_reader, exception, span
from spanscore.model import NOT_RECORDED, CloseReason, Span, StatusCode, Trace, Trajectory, Unit
from spanscore.trajectories.earlier_calls import earlier_calls
from spanscore.trajectories.listed_calls import executed_calls
from spanscore.trajectories.parts_of_runs import PartsOfRuns
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.resumption import Resumption
from spanscore.trajectories.trajectory import trajectories
from spanscore.trajectories.tree import SpanTree
from spanscore.trajectories.withheld import Withheld
from traces import agent, asked, having, lasting, model, tool

ORDER: Final = {"order_id": "A-1"}
REFUND: Final = {"order_id": "A-1", "amount": 40}
DENIED: Final = "The tool call was denied."


def user(text: str = "refund A-1") -> dict[str, Any]:
    """A text of the user."""
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def asks(*requests: dict[str, Any]) -> dict[str, Any]:
    """An answer of the model that asks for calls."""
    return {"role": "assistant", "parts": list(requests)}


def results(told: dict[str, Any]) -> dict[str, Any]:
    """The results of calls by their ids."""
    parts = [{"type": "tool_call_response", "id": key, "response": value} for key, value in told.items()]
    return {"role": "tool", "parts": parts}


LOOKED_UP: Final = (asks(asked("lookup_order", ORDER, "c1")), results({"c1": {"amount": 40}}))
REFUNDED: Final = (asks(asked("issue_refund", REFUND, "c2")), results({"c2": "ok"}))
EXECUTED: Final = tool(2, "issue_refund", REFUND, "c2", parent=1)


def sent(number: int, *messages: dict[str, Any], **fields: Any) -> Span:
    """A request to a model with these messages."""
    return having(model(number, **fields), {"gen_ai.input.messages": json.dumps(messages)})


def read(*spans: Span, unit: Unit = Unit.TRACE, reader: DialectReader | None = None) -> tuple[Trajectory, ...]:
    """Return the runs of a trace."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return trajectories(trace, reader or built_in_reader(), unit)


def run_of(*spans: Span) -> Trajectory:
    """Return the run of a trace with an agent around the spans."""
    (run,) = read(lasting(agent(1), 90), *spans)
    return run


def summary(run: Trajectory) -> tuple[str, str, str]:
    """Return the calls, the restored ones marked, the uncertain calls, and the refused ones."""
    calls = " ".join("*" * call.restored + call.name for call in run.calls)
    return calls, " ".join(call.name for call in run.uncertain), " ".join(call.name for call in run.refused)


def test_a_request_that_failed_without_its_messages_is_made_again() -> None:
    """The first one with messages repeats the run; after a request that was answered, they are of this trace."""
    first = having(model(3, parent=1), {"gen_ai.input.messages": ""})
    spans = EXECUTED, sent(5, user(), *LOOKED_UP, *REFUNDED, parent=1)

    assert summary(run_of(first._replace(status_code=StatusCode.ERROR), *spans)) == (
        "*lookup_order issue_refund",
        "",
        "",
    )
    assert summary(run_of(first, *spans)) == ("issue_refund", "", "")


def test_earlier_calls_are_restored() -> None:
    """They have what the messages hold, and neither span nor times; the part is whole."""
    run = run_of(EXECUTED, sent(3, user(), *LOOKED_UP, *REFUNDED, parent=1))
    earlier, made = run.calls

    assert ("lookup_order", ORDER, {"amount": 40}, "c1") == (
        earlier.name,
        earlier.arguments,
        earlier.result,
        earlier.call_id,
    )
    assert (None, 0, 0, True, False) == (
        earlier.span_id,
        earlier.start_ns,
        earlier.end_ns,
        earlier.restored,
        earlier.was_timed,
    )
    assert ("issue_refund", False, EXECUTED.span_id) == (made.name, made.restored, made.span_id)
    assert run.completeness.complete
    assert (True, False) == (run.completeness.resumed, run.completeness.begin_unseen)


@pytest.mark.parametrize(
    ("name", "messages", "expected"),
    [
        ("a turn before", [user("hello"), *LOOKED_UP, user(), *REFUNDED], ("issue_refund", "", "")),
        ("no text of a user", [*LOOKED_UP, *REFUNDED], ("issue_refund", "", "")),
        (
            "two earlier answers",
            [user(), *LOOKED_UP, asks(asked("check_policy", {}, "c9")), results({"c9": "fine"}), *REFUNDED],
            ("*lookup_order *check_policy issue_refund", "", ""),
        ),
        (
            "calls of one answer in messages of their own",
            [
                user(),
                *LOOKED_UP,
                asks(asked("issue_refund", REFUND, "c2")),
                asks(asked("send_mail", {}, "c3")),
                results({"c2": "ok", "c3": "sent"}),
            ],
            ("*lookup_order issue_refund", "send_mail", ""),
        ),
        (
            "a call beside it that was executed before the pause",
            [
                user(),
                *LOOKED_UP,
                asks(asked("send_mail", {}, "c3"), asked("issue_refund", REFUND, "c2")),
                results({"c2": "ok", "c3": "sent"}),
            ],
            ("*lookup_order issue_refund", "send_mail", ""),
        ),
        (
            "a call beside it that was refused",
            [
                user(),
                *LOOKED_UP,
                asks(asked("send_mail", {}, "c3"), asked("issue_refund", REFUND, "c2")),
                results({"c2": "ok", "c3": DENIED}),
            ],
            ("*lookup_order issue_refund", "", "send_mail"),
        ),
        (
            "a call beside it whose answer is left out",
            [
                user(),
                *LOOKED_UP,
                asks(asked("send_mail", {}, "c3"), asked("issue_refund", REFUND, "c2")),
                results({"c2": "ok"}),
            ],
            ("*lookup_order issue_refund", "send_mail", ""),
        ),
        (
            "a call that was refused before",
            [user(), *LOOKED_UP, asks(asked("send_mail", {}, "c3")), results({"c3": DENIED}), *REFUNDED],
            ("*lookup_order issue_refund", "", "send_mail"),
        ),
        (
            "ids that are used twice",
            [user(), asks(asked("lookup_order", ORDER, "c2")), results({"c2": {"amount": 40}}), *REFUNDED],
            ("*lookup_order issue_refund", "", ""),
        ),
        (
            "an id that the framework makes up",
            [user(), *LOOKED_UP, asks(asked("issue_refund", REFUND, "made-up")), results({"made-up": "ok"})],
            ("*lookup_order issue_refund", "", ""),
        ),
        (
            "no ids",
            [
                user(),
                asks(asked("lookup_order", ORDER)),
                {"role": "tool", "parts": [{"type": "tool_call_response", "response": {"amount": 40}}]},
                asks(asked("issue_refund", REFUND)),
                {"role": "tool", "parts": [{"type": "tool_call_response", "response": "ok"}]},
            ],
            ("*lookup_order issue_refund", "", ""),
        ),
        (
            "results that were not recorded",
            [
                user(),
                asks(asked("lookup_order", ORDER, "c1")),
                {"role": "tool", "parts": []},
                *REFUNDED,
            ],
            ("*lookup_order issue_refund", "", ""),
        ),
        (
            "content that was not recorded",
            [
                {"role": "user", "parts": [{"type": "text"}]},
                asks({"type": "tool_call", "name": "lookup_order", "id": "c1"}),
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1"}]},
                asks({"type": "tool_call", "name": "issue_refund", "id": "c2"}),
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2"}]},
            ],
            ("*lookup_order issue_refund", "", ""),
        ),
        (
            "the calls of others, which a specialist was handed",
            [user(), *LOOKED_UP, asks(asked("transfer", {}, "c8")), results({"c8": "done"})],
            ("issue_refund", "lookup_order transfer", ""),
        ),
    ],
)
def test_which_calls_are_known(name: str, messages: list[dict[str, Any]], expected: tuple[str, str, str]) -> None:
    """Answered calls behind the user's last text are restored if the run surely waited for the call that is made."""
    assert expected == summary(run_of(EXECUTED, sent(3, *messages, parent=1))), name


def test_a_refusal_continues_the_run() -> None:
    """Nothing is executed; the refused call is told, and is none of the calls."""
    messages = [user(), *LOOKED_UP, asks(asked("issue_refund", REFUND, "c2")), results({"c2": DENIED})]
    run = run_of(sent(3, *messages, parent=1))

    assert ("*lookup_order", "", "issue_refund") == summary(run)
    assert [("issue_refund", "refused")] == [tuple(call) for call in run.withheld]
    assert (True, True) == (run.completeness.resumed, run.completeness.complete)


def test_a_call_whose_answer_is_left_out_beside_a_refusal_is_not_refused() -> None:
    """The call may have been made: the messages have the answer of the other one alone."""
    asking = asks(asked("send_mail", {}, "c3"), asked("issue_refund", REFUND, "c2"))

    run = run_of(sent(3, user(), *LOOKED_UP, asking, results({"c2": DENIED}), parent=1))

    assert [("issue_refund", "refused")] == [tuple(call) for call in run.withheld]
    assert ["send_mail"] == [call.name for call in run.uncertain]


def with_text(result: str) -> dict[str, Any]:
    """The result of the refund, with a text of the user in the same message."""
    return {"role": "user", "parts": [*results({"c2": result})["parts"], *user("and be quick")["parts"]]}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([results({"c2": DENIED}), user("and another one")], ("", "", "")),
        ([with_text(DENIED)], ("*lookup_order", "", "issue_refund")),
        # Structured output, and a tool that ends the run, have results as the last message of a turn.
        ([with_text("Final result processed.")], ("", "", "")),
        ([results({"c2": DENIED}), asks({"type": "text", "content": "No."}), user("why?")], ("", "", "")),
    ],
)
def test_a_text_with_a_refusal_begins_no_turn(ends: list[dict[str, Any]], expected: tuple[str, str, str]) -> None:
    """The run that has waited continues with both, if they are one message. The next one may be a new request."""
    asking = asks(asked("issue_refund", REFUND, "c2"))

    assert expected == summary(run_of(sent(3, user(), *LOOKED_UP, asking, *ends, parent=1)))


def test_a_failure_is_restored() -> None:
    """As the answer marks it."""
    failed = {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": "gone", "is_error": True}],
    }
    run = run_of(EXECUTED, sent(3, user(), asks(asked("lookup_order", ORDER, "c1")), failed, *REFUNDED, parent=1))

    assert ["gone", None] == [call.error for call in run.calls]


NOTE: Final = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)
TOLD: Final = f"{NOTE} Executed instead: "
ASKED: Final = ("issue_refund", REFUND)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            f'{TOLD}issue_voucher with arguments {{"amount": 30}}.\n\nTool response:\n{{"id": 7}}',
            ("issue_voucher", {"amount": 30}, {"id": 7}),
        ),
        (
            f'{TOLD}issue_refund with arguments {{"note": "x. Executed instead: "}}.',
            ("issue_refund", {"note": "x. Executed instead: "}, ""),
        ),
        *(
            (each, (*ASKED, each))
            for each in (f'{TOLD}issue_voucher with arguments {{"amount": 3', NOTE, f"Well. {TOLD}")
        ),
    ],
)
def test_a_call_that_a_person_has_edited_is_restored_as_it_was_made(told: str, expected: tuple[Any, ...]) -> None:
    """LangChain tells the model so before the result: the message keeps the call that the model has asked for."""
    edited = asks(asked("issue_refund", REFUND, "c2")), results({"c2": told})
    again = asks(asked("issue_refund", REFUND, "c3")), results({"c3": "ok"})
    executed = tool(2, "issue_refund", REFUND, "c3", parent=1)
    run = run_of(executed, sent(3, user(), *LOOKED_UP, *edited, *again, parent=1))

    assert [expected] == [(call.name, call.arguments, call.result) for call in run.calls[1:2]]
    assert ("*lookup_order", "issue_refund") == (summary(run)[0].split()[0], run.calls[-1].name)


def test_equal_calls_without_ids_are_several() -> None:
    """One was made before the pause, and one beside the call that waited: whether that was made is unknown."""
    lookup, refund = asked("lookup_order", ORDER), asked("issue_refund", REFUND)
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "response": {"amount": 40}}]}
    messages = (user(), asks(lookup), told, asks(lookup, refund), told, told)
    run = run_of(tool(2, "issue_refund", REFUND, parent=1), sent(3, *messages, parent=1))

    assert ("*lookup_order issue_refund", "lookup_order", "") == summary(run)


def test_spans_of_models_that_were_lost() -> None:
    """Calls of this trace are not restored as well, although an earlier answer has asked for them."""
    notified = (asks(asked("notify", {}, "c3")), results({"c3": "sent"}))
    notify = tool(3, "notify", {}, "c3", parent=1)
    twice = tool(6, "notify", {}, "c3", parent=1)
    run = run_of(EXECUTED, notify, sent(9, user(), *LOOKED_UP, *REFUNDED, *notified, parent=1))

    assert ("*lookup_order issue_refund notify", "", "") == summary(run)
    # A call that was approved twice is two calls, and the earlier ones are known all the same.
    again = run_of(notify, twice, sent(9, user(), *LOOKED_UP, *REFUNDED, *notified, parent=1))
    assert ("*lookup_order *issue_refund notify notify", "", "") == summary(again)


def test_an_agent_that_ends_asking_without_its_model() -> None:
    """The span of the model that asked last was not received: the run may wait."""
    for reasons, may_pause in ((["tool_calls"], True), (["stop"], False)):
        ended = having(agent(1), {"gen_ai.response.finish_reasons": reasons})._replace(scope="agent_framework")
        looked_up = sent(2, user(), parent=1)
        (run,) = read(lasting(ended, 90), looked_up, tool(3, "lookup_order", ORDER, "c1", parent=1))
        assert may_pause is run.completeness.may_pause


def test_ids_that_begin_again_in_each_answer() -> None:
    """Results of an earlier turn are none of the calls that this turn asks for."""
    turn = (user("and before?"), asks(asked("issue_refund", REFUND, "0")), results({"0": "ok"}), user())
    waits = lasting(having(agent(1), {"gen_ai.response.finish_reasons": ["tool_calls"]}), 90)._replace(
        scope="agent_framework"
    )
    lookup = tool(3, "lookup_order", ORDER, "0", parent=1)
    asks_refund = having(
        sent(4, *turn, asks(asked("lookup_order", ORDER, "0")), results({"0": {"amount": 40}}), parent=1),
        {"gen_ai.output.messages": json.dumps([asks(asked("issue_refund", REFUND, "0"))])},
    )
    asks_lookup = having(
        sent(2, *turn, parent=1), {"gen_ai.output.messages": json.dumps([asks(asked("lookup_order", ORDER, "0"))])}
    )
    (run,) = read(waits, asks_lookup, lookup, asks_refund)

    assert ("lookup_order", "", "") == summary(run)
    assert ("issue_refund",) == run.completeness.paused

    again = having(
        sent(3, user(), asks(asked("issue_refund", REFUND, "0")), results({"0": "ok"}), parent=1),
        {"gen_ai.output.messages": json.dumps([asks(asked("issue_refund", REFUND, "0"))])},
    )
    (run,) = read(waits, tool(2, "issue_refund", REFUND, "0", parent=1), again)
    assert (("issue_refund",), "issue_refund") == (run.completeness.paused, summary(run)[0])

    refused = having(
        sent(2, *turn, parent=1),
        {"gen_ai.output.messages": json.dumps([asks(asked("lookup_order", ORDER, "1"), asked("search", {}, "0"))])},
    )
    assert ("lookup_order", "", "") == summary(run_of(refused, tool(3, "lookup_order", ORDER, "1", parent=1)))


def test_gaps_of_the_execution_are_filled() -> None:
    """From the request of the earlier trace: the id and the arguments."""
    run = run_of(tool(2, "issue_refund", parent=1), sent(3, user(), *LOOKED_UP, *REFUNDED, parent=1))

    assert ("c2", REFUND, "ok") == (run.calls[-1].call_id, run.calls[-1].arguments, run.calls[-1].result)


def test_the_run_goes_on_as_usual() -> None:
    """Later calls join the requests of this trace, also one with the id of a restored call."""
    spans = [
        EXECUTED,
        having(
            sent(3, user(), *LOOKED_UP, *REFUNDED, parent=1),
            {"gen_ai.output.messages": json.dumps([asks(asked("lookup_order", {"order_id": "B-2"}, "c1"))])},
        ),
        tool(5, "lookup_order", call_id="c1", parent=1),
    ]
    run = run_of(*spans)

    assert "*lookup_order issue_refund lookup_order" == summary(run)[0]
    assert {"order_id": "B-2"} == run.calls[-1].arguments


def test_a_part_without_content_begins_unseen() -> None:
    """The messages are not recorded: the calls before the pause are in another trace."""
    request = having(model(3, parent=1), {"gen_ai.input.messages": "[REDACTED]"})
    run = run_of(EXECUTED, request)

    assert ("issue_refund", True) == (summary(run)[0], run.completeness.begin_unseen)


def test_messages_that_begin_with_an_answer_are_the_rest_of_a_run() -> None:
    """The provider has the others. What stands before the last text of the user is another turn."""
    cut = sent(3, results({"c2": DENIED}), parent=1)
    said = asks({"type": "text", "content": "It was denied."})
    next_turn = sent(3, results({"c2": DENIED}), said, user("and now?"), parent=1)

    assert [True, False] == [run_of(each).completeness.begin_unseen for each in (cut, next_turn)]


def test_an_item_that_asks_may_have_an_id_of_its_own() -> None:
    """The id of the call is in the answer; of several, nothing says which answer is whose."""
    first = (asks(asked("lookup_order", ORDER, "fc_1")), results({"c1": {"amount": 40}}))
    both = asks(asked("issue_refund", REFUND, "fc_2"), asked("send_mail", {}, "fc_3"))
    run = run_of(EXECUTED, sent(4, user(), *first, both, results({"c3": "sent", "c2": "ok"}), parent=1))

    assert [("c1", {"amount": 40}), ("c2", "ok")] == [(call.call_id, call.result) for call in run.calls]
    assert [("send_mail", None, NOT_RECORDED)] == [(each.name, each.call_id, each.result) for each in run.uncertain]


def test_calls_of_other_processes_are_not_compared_in_time() -> None:
    """Their clocks may differ: then nothing shows that the run continues."""
    elsewhere = EXECUTED._replace(resource={"host.name": "b"})
    run = run_of(elsewhere, sent(3, user(), *LOOKED_UP, *REFUNDED, parent=1))

    assert ("issue_refund", "lookup_order", "") == summary(run)


def test_spans_of_models_alone_are_steps() -> None:
    """Each is sent the steps before it, which are traces of their own."""
    (run,) = read(sent(3, user(), *LOOKED_UP))

    assert ("", "", "") == summary(run)


def test_a_span_of_the_client_within_has_the_messages() -> None:
    """The framework's own span around it may have none."""
    outer = having(lasting(model(3, parent=1), 9), {"gen_ai.input.messages": "[REDACTED]"})
    run = run_of(EXECUTED, outer, sent(4, user(), *LOOKED_UP, *REFUNDED, parent=3))

    assert "*lookup_order issue_refund" == summary(run)[0]


def test_an_agent_that_is_called() -> None:
    """Its own calls before the pause are before the call that it made, and after those of its caller."""
    of_caller = [
        user(),
        *LOOKED_UP,
        asks(asked("refund_agent", {}, "c5")),
        results({"c5": "done"}),
    ]
    of_called = [user("refund it"), asks(asked("check_policy", {}, "d1")), results({"d1": "fine"}), *REFUNDED]
    spans = [
        lasting(tool(2, "refund_agent", {}, "c5", parent=1), 9),
        lasting(agent(3, "refunds", parent=2), 8),
        tool(4, "issue_refund", REFUND, "c2", parent=3),
        sent(5, *of_called, parent=3),
        sent(20, *of_caller, parent=1),
    ]

    assert "*lookup_order refund_agent *check_policy issue_refund" == summary(run_of(*spans))[0]
    of_agents = {run.agent: summary(run)[0] for run in read(lasting(agent(1, "planner"), 90), *spans, unit=Unit.AGENT)}
    assert {"planner": "*lookup_order refund_agent", "refunds": "*check_policy issue_refund"} == of_agents


def test_a_model_outside_of_all_runs_of_agents() -> None:
    """Its earlier calls are of no agent's run: the span of their agent was lost."""
    outside = sent(2, user(), *LOOKED_UP, parent=1)
    runs = read(outside, lasting(agent(3, "billing", parent=1), 90), unit=Unit.AGENT)
    assert [("billing", ())] == [(run.agent, run.calls) for run in runs]


def test_without_its_messages_an_agent_that_is_called_begins_unseen() -> None:
    """Its caller's earlier calls are known, and its own are not."""
    of_caller = [user(), *LOOKED_UP, asks(asked("refund_agent", {}, "c5")), results({"c5": "done"})]
    run = run_of(
        lasting(tool(2, "refund_agent", {}, "c5", parent=1), 9),
        lasting(agent(3, "refunds", parent=2), 8),
        tool(4, "issue_refund", REFUND, "c2", parent=3),
        having(model(5, parent=3), {"gen_ai.input.messages": "[REDACTED]"}),
        sent(20, *of_caller, parent=1),
    )

    assert ("*lookup_order refund_agent issue_refund", True) == (summary(run)[0], run.completeness.begin_unseen)


@pytest.mark.parametrize("share", range(3))
def test_recorded_runs_that_are_cut(share: int) -> None:
    """The rest of a run of one agent has the calls of the whole run, wherever the run is cut, if the messages tell."""
    reader = built_in_reader()
    third = len(NAMES) // 3 + 1
    parts = restored = 0
    wrong: list[tuple[str, list[str]]] = []
    for name in NAMES[share * third :][:third]:
        for spans in recorded(name).values():
            (run, *others) = read(*spans, reader=reader)
            if others or run.unread or not run.completeness.complete or len(run.invocations or ()) > 1:
                continue
            for cut in cuts(spans, reader, run):
                (part,) = read(*cut.rest, reader=reader)
                parts += 1
                if part.completeness.resumed and not part.completeness.is_part:
                    restored += 1
                    known = sorted(call.name for call in (*part.calls, *part.refused))
                    # A refusal beside the executed call is in the messages of the rest, too.
                    withheld = [call.name for call in run.withheld if call.state == "refused"]
                    if known not in (sorted(run.names), sorted([*run.names, *withheld])):
                        wrong.append((name, known))

    assert parts > 250
    assert restored > 0.45 * parts
    assert {name for name, _ in wrong} <= OF_TOOLS, wrong


def test_arguments_of_content_that_was_not_recorded() -> None:
    """A call is restored by its name; arguments that are not in the messages are not recorded."""
    messages = [
        {"role": "user", "parts": [{"type": "text"}]},
        asks({"type": "tool_call", "name": "lookup_order", "id": "c1"}),
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1"}]},
        *REFUNDED,
    ]
    (earlier, _) = run_of(EXECUTED, sent(3, *messages, parent=1)).calls

    assert (NOT_RECORDED, NOT_RECORDED) == (earlier.arguments, earlier.result)


def test_many_runs_that_may_continue() -> None:
    """Below each of 1,000 calls is one, and 300,000 calls have joined requests: within 1 s."""
    around = [lasting(tool(number, "ask", {}, f"c{number}", parent=1), 50) for number in range(2, 1_002)]
    below = [sent(1_000 + number, user(), *REFUNDED, parent=number, at_ms=number + 1) for number in range(2, 1_002)]
    tree = SpanTree(Readings.of((agent(1), *around, *below), built_in_reader()))

    with costs_at_most(cpu_s=1):
        found = earlier_calls(Resumption(tree), {*range(-1_000, 300_000)}, set(), ())
    assert [True] * 1_000 == [each.is_resumed for each in found]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([asked("issue_refund", {}, "c9"), asked("lookup_order", {}, "c1")], (1, 0)),
        ([asked("lookup_order", {}, "c1"), asked("issue_refund", {}, "c9")], ()),
        ([asked("check_policy", {}, "c9"), asked("lookup_order", {}, "c1")], ()),
    ],
)
def test_calls_of_a_tool_that_waits_may_be_the_last_of_their_answer(
    others: list[dict[str, Any]], expected: tuple[int, ...]
) -> None:
    """The run may have paused for them in an earlier trace, too, after the others had been made."""
    told = user(), asks(*others), results({"c1": 1, "c9": 2}), *REFUNDED
    run = run_of(EXECUTED, sent(3, *told, parent=1))

    assert expected == run.reordered


def test_the_other_order_of_a_run_of_an_agent() -> None:
    """It is that of the run whose calls they are."""
    told = user(), asks(asked("issue_refund", {}, "c9"), asked("lookup_order", {}, "c1")), results({"c1": 1, "c9": 2})
    spans = (
        lasting(agent(9), 90),
        lasting(agent(1, "shop", parent=9), 80),
        EXECUTED,
        sent(3, *told, *REFUNDED, parent=1),
    )
    run, _ = read(*spans, unit=Unit.AGENT)

    assert ["lookup_order", "issue_refund", "issue_refund"] == [*run.having_waited().names]


def test_two_conversations_that_continue_in_one_trace() -> None:
    """The calls of the first are restored; of the other, nothing that earlier calls could change is known."""
    runs = [
        having(lasting(agent(number, name, parent=90), 8), {"gen_ai.conversation.id": name})
        for number, name in ((1, "one"), (11, "two"))
    ]
    told = user(), *LOOKED_UP, *REFUNDED
    refunds = EXECUTED, sent(3, *told, parent=1), tool(12, "issue_refund", REFUND, "c2", parent=11)
    for messages, unseen in ((told, True), ((user(),), False)):
        found = read(lasting(agent(90, at_ms=0), 99), *runs, *refunds, sent(13, *messages, parent=11), unit=Unit.AGENT)
        one, two = (run for run in found if run.agent in {"one", "two"})

        assert ["lookup_order", "issue_refund"] == [*one.names]
        assert (["issue_refund"], unseen) == ([*two.names], two.completeness.begin_unseen)
        assert not one.completeness.begin_unseen


def sub_agent_that_waits(*, content: bool) -> list[Span]:
    """A sub-agent that looks an order up, waits within its call, and refunds in the same trace."""
    told = [user(), *LOOKED_UP, *REFUNDED] if content else []
    interrupted = (exception("langgraph.errors.GraphInterrupt", "()"),)
    return [
        lasting(agent(1), 90),
        model(2, asked("delegate", {}, "d1"), parent=1) if content else model(2, parent=1),
        tool(3, "delegate", {}, "d1", parent=1, events=interrupted),
        agent(4, "sub", parent=3),
        model(5, asked("lookup_order", ORDER, "c1"), parent=4) if content else model(5, parent=4),
        tool(6, "lookup_order", ORDER, "c1", parent=4),
        sent(7, *told[:3], parent=4),
        tool(8, "issue_refund", REFUND, "c2", parent=4, events=interrupted),
        lasting(agent(11), 90),
        tool(12, "delegate", {}, "d1", parent=11),
        agent(13, "sub", parent=12),
        tool(14, "issue_refund", REFUND, "c2", parent=13),
        sent(15, *told, parent=13),
        model(16, parent=11),
    ]


@pytest.mark.parametrize("content", [True, False])
def test_a_sub_agent_that_waits_and_goes_on_in_one_trace(*, content: bool) -> None:
    """What it has called before is in this trace, and is no call of an earlier one."""
    (run,) = read(*sub_agent_that_waits(content=content))

    assert ("lookup_order delegate issue_refund", "", "") == summary(run)
    assert not run.completeness.begin_unseen


def test_a_sub_agent_that_waits_and_goes_on_in_another_trace() -> None:
    """What it has called before is restored, also where another call of this trace has the same id."""
    (run,) = read(*(lasting(span, 90) for span in sub_agent_that_waits(content=True)[8:]))
    other = tool(10, "lookup_order", ORDER, "c1", parent=11)
    (repeated,) = read(*sub_agent_that_waits(content=True)[8:], other._replace(start_ns=other.start_ns + 20_000_000))

    assert ("delegate *lookup_order issue_refund", "", "") == summary(run)
    assert ("delegate *lookup_order issue_refund lookup_order", "", "") == summary(repeated)


def trace_of(*spans: Span) -> tuple[Any, ...]:
    """Return what `PartsOfRuns` takes, of a trace that is one run."""
    tree = SpanTree(Readings.of(spans, built_in_reader()))
    requested, ranks = Requested(tree), dict[int, int | None]()
    withheld = Withheld(tree, tree.calls, requested)
    listed = executed_calls(tree, tree.calls, requested, withheld, ranks)
    return tree, [tree.root] * len(tree.spans), requested.resumption, withheld, listed, ranks


def test_thousands_of_tails_are_restored_each_before_its_own_call() -> None:
    """The time is linear in their number."""
    around = [tool(number, "delegate", {}, f"d{number}", parent=1, at_ms=number) for number in range(2, 3_002)]
    below = [
        span
        for number in range(2, 3_002)
        for span in (
            tool(10_000 + number, "issue_refund", REFUND, "c2", parent=number, at_ms=number),
            sent(20_000 + number, user(), *LOOKED_UP, *REFUNDED, parent=number, at_ms=number + 1),
        )
    ]
    trace = trace_of(agent(1), *around, *below)
    parts, calls = PartsOfRuns(*trace), {0: [call for _, call in trace[4]]}

    with costs_at_most(cpu_s=0.3):
        parts.restore(calls)
    assert ["delegate", "lookup_order", "issue_refund"] * 3_000 == [call.name for call in calls[0]]


def test_thousands_of_runs_that_may_wait() -> None:
    """The time is linear in their number."""
    held = {"openinference.span.kind": "AGENT", "agno.tools": "['refund']"}
    agno = "openinference.instrumentation.agno"
    runs = [span(number, "shop.run", held, parent=1, at_ms=1, scope=agno) for number in range(2, 16_002)]
    asking = span(17_000, "OpenAIChat.invoke", {"openinference.span.kind": "LLM"}, parent=16_001, at_ms=1, scope=agno)

    trace = trace_of(span(1, "workflow", {}), *runs, asking)

    with costs_at_most(cpu_s=0.5):
        parts = PartsOfRuns(*trace)
    assert parts.completeness(0, {"spans_missing": 0}, (), 0).may_pause
