"""What the refund agent does in each run: the calls its model asks for, and the tools that answer them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AGENT = "refund_agent"
ANSWER = "Done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call that the model asks for, and what becomes of it."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    result: Any = None
    error: str | None = None
    """What the tool's exception says."""


Step = Sequence[Call]
"""The calls of one answer of the model; they run in parallel."""

PARALLEL: Step = (
    Call(
        call_id="call_1",
        name="lookup_order",
        arguments={"order_id": "A-1042"},
        result={"order_id": "A-1042", "amount": 59.9, "items": ["lamp", "bulb"]},
    ),
    Call(call_id="call_2", name="check_policy", arguments={"reason": "damaged", "days": 12}, result="refundable"),
)
TIMED_OUT = "payment gateway timed out"


def issue(call_id: str, *, error: str | None = None) -> Step:
    """Return a step that refunds the order."""
    arguments = {"order_id": "A-1042", "amount": 59.9}
    return (Call(call_id=call_id, name="issue_refund", arguments=arguments, result="R-7", error=error),)


RUNS: Mapping[str, Sequence[Step]] = {
    "as it should be": (PARALLEL, issue("call_3")),
    "a tool fails and is tried again": (PARALLEL, issue("call_3", error=TIMED_OUT), issue("call_4")),
    "refund before the order is looked up": (issue("call_3"), PARALLEL),
}


class GatewayError(Exception):
    """The money could not be sent."""


Tool = Callable[..., Awaitable[Any]]


def tools(run: str) -> Sequence[Tool]:
    """Return the tools for one run."""
    both = asyncio.Barrier(len(PARALLEL))
    refunds = iter([call for step in RUNS[run] for call in step if call.name == "issue_refund"])

    async def together(call: Call, actual: Mapping[str, Any]) -> Any:
        """Answer when the other tool of the step runs too: one after the other, they would wait in vain."""
        check(call, actual)
        async with asyncio.timeout(20):
            await both.wait()
        return call.result

    async def lookup_order(order_id: str) -> dict[str, Any]:
        """Return what was ordered.

        Args:
            order_id: the number of the order
        """
        return await together(PARALLEL[0], {"order_id": order_id})

    async def check_policy(reason: str, days: int) -> str:
        """Return whether a refund is due.

        Args:
            reason: why the customer wants it
            days: how long ago the order was delivered
        """
        return await together(PARALLEL[1], {"reason": reason, "days": days})

    async def issue_refund(order_id: str, amount: float) -> str:
        """Pay the money back.

        Args:
            order_id: the number of the order
            amount: in euros
        """
        call = next(refunds)
        check(call, {"order_id": order_id, "amount": amount})
        if call.error is not None:
            raise GatewayError(call.error)
        return call.result

    return lookup_order, check_policy, issue_refund


def check(call: Call, actual: Mapping[str, Any]) -> None:
    """End the program when a framework hands on other arguments than the model gave."""
    if actual != call.arguments:
        message = f"{call.name} was called with {actual}"
        raise SystemExit(message)
