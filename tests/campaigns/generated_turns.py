"""Generates turns of conversations that pause for approval, as spans, and what is known of the run in each trace.

A turn is a run of an agent: its model asks for calls, some of which wait for a person. The run then continues in
another trace, or in the same one hours later. A call may be `delegate`, whose body is the run of a sub-agent, which may
wait as well. Which calls were made is decided here; nothing here reads spans.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from campaigns.generated_parts import MAY_WAIT, STYLES, Asked, Began, Made, Part, Run, Style
from dialects.spans import exception, span
from spanscore.model import StatusCode

_SCOPES: Final[dict[Style, str]] = {"exception": "langgraph", "result": "pydantic-ai", "constant": "gcp.vertex.agent"}
_REFUSALS: Final[dict[Style, str]] = {
    "exception": "User rejected the tool call for `issue_refund` with id",
    "result": "The tool call was denied.",
    "constant": "This tool call is rejected.",
}
_INTERRUPT: Final = exception("langgraph.errors.GraphInterrupt", "()")
_ASKS: Final = "This tool call requires confirmation, please approve or reject."
_TOOLS: Final = ("lookup_order", "issue_refund", "send_mail", "delete_account")
_HOURS_MS: Final = 5 * 3_600_000


class Conversation:
    """Writes the turns of one conversation into `parts`.

    Args:
        name: its id.
        chance: decides.
        first_trace: the number of its first trace.
    """

    def __init__(self, name: str, chance: random.Random, first_trace: int) -> None:
        self.name: Final = name
        self.parts: Final[list[Part]] = []
        self.style: Final = chance.choice(STYLES)
        self.content: Final = self.style != "exception" or chance.random() < 3 / 4
        self._chance: Final = chance
        self._trace = first_trace
        self._messages: list[dict[str, Any]] = []
        self._now_ms = chance.randrange(1_000)
        self._ids = 0
        self._span = 0
        self._answers: set[str] = set()
        self._waiting: list[str] = []
        self._truth: list[Made] = []

    def add_turn(self, number: int) -> None:
        """Add a turn, with all its parts."""
        chance = self._chance
        run = Run(self._plan(chance.randint(1, 4), may_delegate=True), self._messages)
        run.messages.append(_message("user", {"type": "text", "content": f"please {number}"}))
        self._answers, self._truth = set(), []
        is_same = False
        while True:
            self._open(number, same=is_same)
            self._waiting = []
            self._part.is_paused = self._write_run(run, 0)
            self._part.truth = [*self._truth]
            self._part.refused = [
                *run.refused,
                *(each for asked in _all(run) if asked.inner for each in asked.inner.refused),
            ]
            if not self._part.is_paused or chance.random() < 1 / 10:
                break
            # Only LangGraph goes on before all calls are answered.
            count = chance.randint(1, len(self._waiting)) if self.style == "exception" else len(self._waiting)
            self._answers.update(chance.sample(self._waiting, count))
            is_same = chance.random() < 1 / 4
            self._now_ms += _HOURS_MS if is_same else chance.choice((1_000, 100_000))
        # What a run that was given up has asked for is not sent to the model in the next turn.
        last = self.parts[-1]
        if any(each.is_resumed for each in last.begins()) and not last.revision and chance.random() < 1 / 4:
            self._repeat(last)
        self._messages = run.messages
        self._now_ms += 10_000

    def _repeat(self, part: Part) -> None:
        """Resume a pause once more: another trace makes the same calls again."""
        self._trace += 1
        self._now_ms += 50_000
        by_ms = self._now_ms - part.start_ms
        self._now_ms += 1_000
        log = [each if isinstance(each, Made) else replace(each) for each in part.log]
        again = replace(part, trace=self._trace, start_ms=part.start_ms + by_ms, log=log)
        # What was made in the other trace was not made before this one.
        for each in again.begins():
            made = [made for made in each.run.made if made[0] != part.trace]
            each.run = replace(each.run, made=made)
        again.spans = [
            each._replace(
                trace_id=again.trace.to_bytes(16, "big"),
                start_ns=each.start_ns + by_ms * 1_000_000,
                end_ns=each.end_ns + by_ms * 1_000_000,
            )
            for each in part.spans
        ]
        self.parts.append(again)

    def _plan(self, steps: int, *, may_delegate: bool) -> list[list[Asked]]:
        return [
            [self._plan_call(may_delegate=may_delegate) for _ in range(self._chance.choice((1, 1, 2, 3)))]
            for _ in range(steps)
        ]

    def _plan_call(self, *, may_delegate: bool) -> Asked:
        chance = self._chance
        self._ids += 1
        call_id = f"c{self._ids}"
        if may_delegate and chance.random() < 1 / 6:
            inner = Run(self._plan(chance.randint(1, 2), may_delegate=False))
            inner.messages.append(_message("user", {"type": "text", "content": "do it"}))
            return Asked(call_id, Made("delegate"), "made", inner)
        (name,) = chance.choices(_TOOLS, (5, 4, 3, 1))
        made = Made(name, chance.choice((10, 400)), chance.choice("ab"))
        may_wait = name in MAY_WAIT and (may_delegate or self.style == "exception")
        if not may_wait or chance.random() < 1 / 4:
            return Asked(call_id, made, "made")
        fates = ("approved", "approved", "refused") if self.style == "constant" else ("approved", "edited", "refused")
        return Asked(call_id, made, chance.choice(fates))

    def _open(self, turn: int, *, same: bool) -> None:
        before = self.parts[-1] if self.parts else None
        self._trace += not same
        self._part = Part(self.name, self._trace, self._now_ms, self.style, self.content, turn=turn)
        if same and before is not None:
            self._part.start_ms, self._part.revision = before.start_ms, before.revision + 1
            self._part.log = [each if isinstance(each, Made) else replace(each) for each in before.log]
        self.parts.append(self._part)

    def _write_run(self, run: Run, parent: int) -> bool:
        """Write what a run does until it pauses, or ends. Return whether it pauses."""
        agent, start_ms = self._next(), self._now_ms
        began = next((each for each in self._part.begins() if each.run is run), None)
        if began is None:
            began = Began(run, run.place, is_resumed=bool(run.pending), is_inner=bool(parent))
            self._part.log.append(began)
        is_paused = False
        while not is_paused:
            if not run.pending:
                step = run.steps[run.place] if run.place < len(run.steps) else ()
                self._write_model(run, step, agent)
                began.asked = True
                if not step:
                    break
                run.pending, run.results = list(step), {}
            left = []
            for asked in run.pending:
                result = self._attempt(asked, run, agent, began)
                if result is None:
                    left.append(asked)
                else:
                    run.results[asked.call_id] = result
            run.pending, is_paused = left, bool(left)
            if not left:
                step = run.steps[run.place]
                run.messages.append(_asks(step, edited=self.style == "exception"))
                run.messages.append(
                    _message(
                        "tool",
                        *(
                            {"type": "tool_call_response", "id": each.call_id, "response": run.results[each.call_id]}
                            for each in step
                        ),
                    )
                )
                run.place += 1
        told: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "sub" if parent else "shop",
        }
        told["gen_ai.conversation.id"] = self.name
        if self.style == "result" and is_paused:
            approvals = [
                {
                    "part_kind": "tool-call",
                    "tool_name": each.made.name,
                    "tool_call_id": each.call_id,
                    "args": each.made.arguments,
                }
                for each in run.pending
            ]
            told |= {"agent_name": "shop", "final_result": json.dumps({"calls": [], "approvals": approvals})}
        self._write(agent, "invoke_agent", parent, told, start_ms)
        return is_paused

    def _write_model(self, run: Run, step: Sequence[Asked], agent: int) -> None:
        answer = _asks(step, edited=False) if step else _message("assistant", {"type": "text", "content": "done"})
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(run.messages),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        self._write(self._next(), "chat", agent, told, self._now_ms)

    def _attempt(self, asked: Asked, run: Run, agent: int, began: Began) -> str | None:
        """Execute a call, if it does not wait. Return its result, or None if it waits."""
        number, start_ms = self._next(), self._now_ms
        if asked.inner is not None:
            is_resumed = bool(asked.inner.pending)
            if self._write_run(asked.inner, number):
                self._write_tool(number, asked, agent, start_ms, waits=True)
                return None
            began.answered |= is_resumed
            began.executed |= is_resumed
            self._note(asked.made, run, run.steps[run.place].index(asked))
            self._write_tool(number, asked, agent, start_ms)
            return "ok"
        if asked.fate != "made" and asked.call_id not in self._answers:
            self._waiting.append(asked.call_id)
            if self.style != "result":
                self._write_tool(number, asked, agent, start_ms, waits=True)
            return None
        began.answered |= asked.fate != "made" and began.is_resumed and run.place == began.place
        if asked.fate == "refused":
            run.refused.append(asked.made)
            if self.style == "constant":
                self._write_tool(number, asked, agent, start_ms)
            return f"{_REFUSALS[self.style]} {asked.call_id}" if self.style == "exception" else _REFUSALS[self.style]
        began.executed |= asked.fate != "made" and run.place == began.place
        self._note(
            _edited(asked), run, run.steps[run.place].index(asked), sent=asked.made if self.style == "result" else None
        )
        self._write_tool(number, asked, agent, start_ms)
        return "ok"

    def _note(self, made: Made, run: Run, number: int, sent: Made | None = None) -> None:
        self._part.log.append(made)
        self._truth.append(made)
        run.made.append((self._part.trace, run.place, number, sent or made))

    def _write_tool(self, number: int, asked: Asked, agent: int, start_ms: int, *, waits: bool = False) -> None:
        made = asked.made if waits else _edited(asked)
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": made.name,
            "gen_ai.tool.call.id": asked.call_id,
            "gen_ai.tool.call.arguments": json.dumps(made.arguments),
        }
        if not waits or self.style == "constant":
            result = _ASKS if waits else _REFUSALS[self.style] if asked.fate == "refused" else "ok"
            told["gen_ai.tool.call.result"] = json.dumps(result)
        self._write(number, f"execute_tool {made.name}", agent, told, start_ms)
        if waits and self.style == "exception":
            raised = self._part.spans.pop()._replace(events=(_INTERRUPT,), status_code=StatusCode.ERROR)
            self._part.spans.append(raised)

    def _next(self) -> int:
        self._span += 1
        self._now_ms += 2
        return self._span

    def _write(self, number: int, name: str, parent: int, told: dict[str, Any], start_ms: int) -> None:
        """Write a span that ends now."""
        content = ("messages", "arguments", "result")
        written = span(
            number,
            name,
            {key: value for key, value in told.items() if self.content or not key.endswith(content)},
            parent=parent,
            at_ms=start_ms,
            scope=_SCOPES[self.style],
            resource={"service.name": "shop"},
        )
        self._now_ms += 1
        ended = written.start_ns + (self._now_ms - start_ms) * 1_000_000
        self._part.spans.append(written._replace(trace_id=self._part.trace.to_bytes(16, "big"), end_ns=ended))


def _all(run: Run) -> Iterator[Asked]:
    return (asked for step in run.steps for asked in step)


def _edited(asked: Asked) -> Made:
    return asked.made._replace(amount=10) if asked.fate == "edited" else asked.made


def _message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _asks(step: Sequence[Asked], *, edited: bool) -> dict[str, Any]:
    """Return a model's answer. LangGraph writes edited arguments into the messages; others leave these alone."""
    parts = [
        {"type": "tool_call", "id": each.call_id, "name": made.name, "arguments": made.arguments}
        for each in step
        for made in [_edited(each) if edited else each.made]
    ]
    return _message("assistant", *parts)
