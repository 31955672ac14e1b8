from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import calls, read, span, span_id
from examples import at_most
from spanscore.model import Span, Unit
from traces import BERN, PARIS, agent, asked, lasting, model, tool

_NAMES = st.sampled_from(["book", "search"])
_IDS = st.one_of(st.none(), st.sampled_from(["c1", "c2", "c3"]))
_ARGUMENTS = st.sampled_from([None, PARIS, BERN, {}])
_REQUESTS = st.lists(st.builds(asked, _NAMES, _ARGUMENTS, _IDS), max_size=3)


@st.composite
def traces(draw: st.DrawFn) -> list[Span]:
    """Spans with distinct starts, each below an earlier one, of random length."""
    spans = [agent(1)]
    for number in range(2, draw(st.integers(2, 9))):
        where = {"parent": draw(st.integers(1, number - 1)), "scope": draw(st.sampled_from(["one", "other"]))}
        kinds = [
            st.builds(agent, st.just(number), st.sampled_from(["planner", "helper", None]), **_just(where)),
            st.builds(tool, st.just(number), _NAMES, _ARGUMENTS, _IDS, **_just(where)),
            _REQUESTS.map(lambda requests, number=number, where=where: model(number, *requests, **where)),
            st.just(span(number, "step", **where)),
        ]
        spans.append(lasting(draw(st.one_of(kinds)), draw(st.integers(1, 20))))
    return spans


def _just(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: st.just(value) for key, value in fields.items()}


def _contents(spans: list[Span], unit: Unit) -> list[dict[str, Any]]:
    keys = (
        "calls",
        "root_span_id",
        "agent",
        "conversation_id",
        "completeness",
        "response_id",
        "attributes",
        "invocations",
    )
    return [{key: getattr(trajectory, key) for key in keys} for trajectory in read(*spans, unit=unit)]


@given(data=st.data(), spans=traces(), unit=st.sampled_from(Unit))
@at_most(200)
def test_the_order_of_arrival_changes_nothing(data: st.DataObject, spans: list[Span], unit: Unit) -> None:
    """Spans come from several processes, in batches, in any order; starts are distinct."""
    shuffled = data.draw(st.permutations(spans))

    assert _contents(spans, unit) == _contents(shuffled, unit)


@given(data=st.data(), spans=traces())
@at_most(200)
def test_a_model_span_seen_twice_changes_no_call(data: st.DataObject, spans: list[Span]) -> None:
    """A second instrumentation below the first writes the same again."""
    models = [each for each in spans if each.name == "chat"]
    again = [
        each._replace(span_id=span_id(100 + number), parent_span_id=each.span_id)
        for number, each in enumerate(data.draw(st.lists(st.sampled_from(models), unique_by=id)) if models else [])
    ]

    assert calls(*spans) == calls(*spans, *again)


@given(spans=traces())
@at_most(100)
def test_units_hold_every_call_once(spans: list[Span]) -> None:
    """Whether a trace is one trajectory or many, the calls are the same."""
    whole = [made for trajectory in read(*spans) for made in trajectory.calls]
    parts = [made for trajectory in read(*spans, unit=Unit.AGENT) for made in trajectory.calls]

    assert sorted(whole, key=repr) == sorted(parts, key=repr)


@given(spans=traces())
@at_most(100)
def test_every_call_is_of_one_invocation(spans: list[Span]) -> None:
    """Here all spans stand below an agent, so that the counts add up to the calls, in either unit."""
    (whole,) = read(*spans)
    parts = [each for trajectory in read(*spans, unit=Unit.AGENT) for each in trajectory.invocations or ()]

    assert len(whole.calls) == sum(each.tool_calls for each in whole.invocations or ())
    assert sorted(whole.invocations or (), key=repr) == sorted(parts, key=repr)
