"""Work in steps, and what runs beside it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadline import DEADLINE_S
from receivers.otlp_requests import REQUESTS, field, request_of, simple_span, texts, to_json
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.from_json import decode_json, decoding_json
from spanscore.otlp.from_protobuf import decode_protobuf, decoding_any, decoding_protobuf
from spanscore.otlp.slices import Steps, at_once, in_slices, in_thread
from spanscore.receivers.intake.intake import Intake


@given(request=REQUESTS, slice_s=st.sampled_from([0.0, 1e-5, 1.0]))
def test_slices_do_not_change_the_result(request: Any, slice_s: float) -> None:
    """However long a slice is, a request is decoded to the same spans, sizes, refusals and caveats."""
    body, in_json = request.SerializeToString(), to_json(request)

    async def scenario() -> list[Any]:
        decoding = [decoding_protobuf(body), decoding_json(in_json)]
        return await asyncio.gather(*(in_slices(steps, slice_s) for steps in decoding))

    whole = [decode_protobuf(body), decode_json(in_json)]
    sliced = asyncio.run(scenario())
    assert whole == sliced
    assert [each.sizes for each in whole] == [each.sizes for each in sliced]


def test_a_span_with_many_values_ends_its_step() -> None:
    """Small spans share a step: the switch between two steps takes longer than one of them."""
    spans = [simple_span(1, number) for number in range(1, 65)]
    few = sum(1 for _ in decoding_any(request_of(*spans).SerializeToString()))
    for each in spans:
        each.attributes.extend(texts({f"key.{number}": "x" for number in range(1_000)}))
    many = sum(1 for _ in decoding_any(request_of(*spans).SerializeToString()))
    assert few < len(spans) <= many


def steps(number: int, done: list[int]) -> Steps[int]:
    """Do so many steps, and return how many there were."""
    for step in range(number):
        done.append(step)
        yield
    return number


def test_others_run_between_slices() -> None:
    """With a slice for each step, two works in one loop take turns."""

    async def scenario() -> tuple[list[int], list[int]]:
        done: list[int] = []
        return await asyncio.gather(in_slices(steps(3, done), 0.0), in_slices(steps(3, done), 0.0)), done

    assert ([3, 3], [0, 0, 1, 1, 2, 2]) == asyncio.run(scenario())
    assert 4 == at_once(steps(4, []))


def test_what_is_cancelled_is_left() -> None:
    """Nothing more is done for somebody who is gone."""
    ended: list[bool] = []

    def endless(begun: asyncio.Event) -> Steps[None]:
        try:
            while True:
                begun.set()
                yield
        finally:
            ended.append(True)

    async def scenario() -> None:
        begun = asyncio.Event()
        task = asyncio.ensure_future(in_slices(endless(begun), 0.0))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert [True] == ended


def test_a_thread_is_waited_for() -> None:
    """Who is cancelled while another thread works for him ends when that has ended: what it uses is still his."""
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(DEADLINE_S)

    async def scenario() -> list[bool]:
        task = asyncio.ensure_future(in_thread(work))
        assert await asyncio.to_thread(begun.wait, DEADLINE_S)
        task.cancel()
        await asyncio.sleep(0)
        told = [task.done()]
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return told

    assert [False] == asyncio.run(scenario())


async def take_in(intake: Intake, body: bytes) -> None:
    """Take a request as soon as it is decoded."""
    intake.accept(await intake.decode(body, Encoding.PROTOBUF))


def test_a_small_request_overtakes_a_large_one() -> None:
    """It is taken while the other is still being decoded; both are taken as a whole."""
    taken: list[int] = []

    def take(spans: Any, sizes: Any) -> None:
        assert len(spans) == len(sizes)
        taken.append(len(spans))

    # Large enough that it takes many slices, on any machine.
    large = field(1, field(2, field(2, simple_span(1).SerializeToString()) * 40_000))
    small = request_of(simple_span(2)).SerializeToString()

    async def scenario() -> None:
        intake = Intake(take)
        first = asyncio.ensure_future(take_in(intake, large))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(take_in(intake, small))
        await asyncio.gather(first, second)

    asyncio.run(scenario())
    assert [1, 40_000] == taken


def test_interleaved_requests_add_up() -> None:
    """Every span of requests that are decoded at the same time is taken once, with the others of its request."""
    bodies = [
        request_of(*(simple_span(trace, number) for number in range(1, 2_001))).SerializeToString()
        for trace in range(1, 11)
    ]
    taken: list[list[Span]] = []

    async def scenario() -> None:
        intake = Intake(lambda spans, _: taken.append(list(spans)))
        await asyncio.gather(*(take_in(intake, body) for body in bodies))

    asyncio.run(scenario())
    assert sorted(decode_protobuf(body).spans for body in bodies) == sorted(taken)
