"""The spans of a trace as a tree: which span is above which, whose agent it works for, and in which run."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import span, start_ns
from given_readings import GIVEN, given, given_agent, given_call, given_model, given_tree
from spanscore.contracts import CallReading, CallRequest, Reading
from spanscore.model import LOG_RECORD, Span
from spanscore.trajectories.readings import NONE, Readings, topmost
from spanscore.trajectories.tree import SpanTree
from traces import lasting

PAY = CallRequest(name="pay")


def other(number: int, **fields: Any) -> Span:
    """Return a span that no dialect reads."""
    return span(number, "GET /", **fields)


class TestNearest:
    # By position: 0 is above 1, that above 2, that above 3; 4 and 5 are each other's parents; 6 is below 5.
    SPANS = (
        other(1),
        other(2, parent=1),
        other(3, parent=2),
        other(4, parent=3),
        other(5, parent=6),
        other(6, parent=5),
        other(7, parent=6),
    )

    @pytest.mark.parametrize(
        ("wanted", "barrier", "expected"),
        [
            (set(), set(), [NONE] * 7),
            ({3, 6}, set(), [NONE] * 7),
            ({0}, set(), [NONE, 0, 0, 0, NONE, NONE, NONE]),
            ({0, 2}, set(), [NONE, 0, 0, 2, NONE, NONE, NONE]),
            ({0}, {2}, [NONE, 0, 0, NONE, NONE, NONE, NONE]),
            ({0}, {0}, [NONE] * 7),
            ({4}, set(), [NONE, NONE, NONE, NONE, 4, 4, 4]),
        ],
    )
    def test_of_each_span(self, wanted: set[int], barrier: set[int], expected: list[int]) -> None:
        """The nearest wanted span above it with no barrier between; parents that form a cycle end the search."""
        assert expected == given_tree(*self.SPANS).nearest(wanted, barrier=barrier)

    def test_children_that_start_before_their_parents(self) -> None:
        """Clocks of two processes need not agree."""
        spans = [other(number, parent=number - 1, at_ms=9 - number) for number in range(1, 6)]
        assert [NONE, 0, 0, 2, 2] == given_tree(*spans).nearest({0, 2})


@pytest.mark.parametrize(
    ("owner", "tops"),
    [
        ({}, {}),
        ({1: 1, 2: 1, 3: 2}, {1: 1, 2: 1, 3: 1}),
        ({3: 2, 2: 1, 1: 1, 4: 4}, {1: 1, 2: 1, 3: 1, 4: 4}),
        ({1: 2, 2: 1}, {1: 2, 2: 2}),
        ({1: 2, 2: 3, 3: 1, 4: 1}, {1: 3, 2: 3, 3: 3, 4: 3}),
    ],
)
def test_the_topmost_owner(owner: dict[int, int], tops: dict[int, int]) -> None:
    """Each owner is followed to the one that owns itself; a cycle ends before the span at which it was entered."""
    assert tops == topmost(owner)


class TestRoot:
    @pytest.mark.parametrize(
        ("spans", "root"),
        [
            ([other(1), other(2, parent=1)], 0),
            ([other(2, parent=1), other(1)], 1),
            ([other(1, parent=9), other(2)], 1),
            ([other(3), other(2)], 1),
            ([other(3, parent=2), other(2, parent=9)], 1),
            ([other(3, parent=4), other(4, parent=3)], 0),
            ([other(1, kind=LOG_RECORD), other(2)], 1),
            ([other(1, kind=LOG_RECORD), other(2, kind=LOG_RECORD)], 0),
            ([given_call(1, "pay", kind=LOG_RECORD), other(2, parent=9)], 1),
            ([other(1), other(1)._replace(end_ns=start_ns(5))], 1),
        ],
    )
    def test_the_earliest_without_a_parent(self, spans: list[Span], root: int) -> None:
        """Else the earliest whose parent is missing, else the earliest; a log record only if there are no spans."""
        assert root == given_tree(*spans).root


class TestAgentOfTheTrace:
    @pytest.mark.parametrize(
        ("spans", "agent"),
        [
            ([other(1)], None),
            ([given_agent(1, "a"), given_agent(2, "b", parent=1)], "a"),
            ([given_agent(2, "b"), given_agent(1, "a")], "a"),
            ([given_agent(1, None), given_agent(2, "b", parent=1)], "b"),
            ([given_model(1, agent="m"), given_agent(2, "a")], "a"),
            ([given_model(1, agent="m"), given_agent(2, None)], "m"),
            # A workflow's name counts only if no agent is named.
            ([given(Reading(is_workflow=True, agent="w")), other(2, parent=1)], "w"),
            ([given(Reading(is_workflow=True, agent="w")), given(Reading(is_workflow=True, agent="v"), 2)], "w"),
            ([given(Reading(is_workflow=True)), given(Reading(is_workflow=True, agent="v"), 2)], "v"),
            ([given(Reading(is_workflow=True, agent="w")), given_model(2, agent="m", parent=1)], "m"),
            ([given_agent(1, None, is_workflow=True), given(Reading(is_workflow=True, agent="w"), 2)], "w"),
            # A sub-agent is called: below a call of a known caller, or a call itself.
            ([other(1), given_call(2, "ask", parent=1), given_agent(3, "sub", parent=2)], None),
            ([given_call(2, "ask"), given_agent(3, "sub", parent=2)], "sub"),
            ([given_call(1, "pay"), given_agent(3, "a")], "a"),
            ([given_agent(1, "sub", call=CallReading(name="ask")), given_model(2, agent="m")], "m"),
            ([other(1), given_call(2, "ask", parent=1), given_model(3, agent="m", parent=2)], None),
            ([other(1), given_call(2, "ask", parent=1), given_model(3, agent="m", parent=1)], "m"),
        ],
    )
    def test_the_earliest_that_no_call_has_started(self, spans: list[Span], agent: str | None) -> None:
        """A run of an agent comes before other spans that name one."""
        assert agent == given_tree(*spans).agent


class TestAgentOfASpan:
    def test_the_agent_above_else_its_own_name(self) -> None:
        """A run of an agent below another works for that one."""
        tree = given_tree(
            given_agent(1, "a"),
            given_agent(2, "b", parent=1),
            other(3, parent=2),
            given_call(4, "pay", parent=3),
            given(Reading(agent="own"), 5, parent=2),
            given(Reading(agent="own"), 6),
            given_agent(7, None, parent=1),
            other(8, parent=7),
        )
        assert [None, "a", "b", "b", "b", "own", "a", "a"] == list(map(tree.agent_of, range(8)))

    @pytest.mark.parametrize(
        ("spans", "index", "agent"),
        [
            # The last model that had answered beside the span, within a span of the application.
            ([other(1), given_model(2, agent="a", parent=1), given_call(4, "pay", parent=1)], 2, "a"),
            (
                [
                    other(1),
                    given_model(2, agent="a", parent=1),
                    given_model(4, agent="b", parent=1),
                    given_call(6, "pay", parent=1),
                ],
                3,
                "b",
            ),
            (
                [
                    other(1),
                    given_model(2, agent="a", parent=1),
                    lasting(given_model(4, agent="b", parent=1), 9),
                    given_call(6, "pay", parent=1),
                ],
                3,
                "a",
            ),
            # Starts are cut to the millisecond: a model that ends in the same one has answered, a later one has not.
            ([other(1), lasting(given_model(2, agent="a", parent=1), 3), given_call(4, "pay", parent=1)], 2, "a"),
            ([other(1), lasting(given_model(2, agent="a", parent=1), 4), given_call(4, "pay", parent=1)], 2, None),
            # A model that is asked later: only for a call that nothing else makes.
            ([other(1), given_call(2, "pay", parent=1), given_model(4, agent="a", parent=1)], 1, None),
            (
                [
                    other(1),
                    given_call(2, "pay", parent=1, only_if_asked=True),
                    given_model(4, agent="a", parent=1),
                    given_model(6, agent="b", parent=1),
                ],
                1,
                "a",
            ),
            # A step between is looked through, a call is not.
            (
                [other(1), given_model(2, agent="a", parent=1), other(4, parent=1), given_call(5, "pay", parent=4)],
                3,
                "a",
            ),
            (
                [
                    other(1),
                    given_model(2, agent="a", parent=1),
                    given_call(4, "ask", parent=1),
                    given_call(5, "pay", parent=4),
                ],
                3,
                None,
            ),
            (
                [
                    other(1),
                    given_model(2, agent="a", parent=1),
                    lasting(given_model(4, parent=1), 9),
                    given_call(6, "pay", parent=4),
                ],
                3,
                "a",
            ),
            # The model around a span; models without a name or a parent say nothing.
            ([other(1), lasting(given_model(2, agent="a", parent=1), 9), given_call(4, "pay", parent=2)], 2, "a"),
            ([other(1), given_model(2, parent=1), given_call(4, "pay", parent=1)], 2, None),
            ([given_model(2, agent="a"), given_call(4, "pay")], 1, None),
            # The agent's span above counts, unless a call is between.
            (
                [
                    given_agent(1, "main"),
                    given_call(2, "ask", parent=1),
                    given_model(3, agent="sub", parent=2),
                    given_call(5, "pay", parent=2),
                    given_call(7, "book", parent=1),
                ],
                3,
                "sub",
            ),
            (
                [
                    given_agent(1, "main"),
                    given_model(2, agent="other", parent=1),
                    given_call(4, "ask", parent=1),
                    given_call(7, "book", parent=4),
                ],
                2,
                "main",
            ),
            # Parents that form a cycle.
            ([given_call(1, "pay", parent=2), other(2, parent=1), given_model(3, agent="a", parent=9)], 0, None),
        ],
    )
    def test_the_model_that_has_asked_beside_it(self, spans: list[Span], index: int, agent: str | None) -> None:
        """Agents without a span of their own are known by their models."""
        assert agent == given_tree(*spans).agent_of(index)


class TestRuns:
    @pytest.mark.parametrize(
        ("spans", "runs", "members"),
        [
            ([given_agent(1, "a"), other(2, parent=1)], [0], [0, 0]),
            ([other(1), given_agent(2, "a", parent=1), other(3, parent=2)], [1], [0, 0, 1]),
            # The parent run comes first, whatever the arrival; another agent below it is another run.
            ([given_agent(2, "b", parent=1), given_agent(1, "a"), other(3, parent=2)], [1, 0], [1, 1, 0]),
            # Two nested spans of one name are one run, unless a call is between.
            ([given_agent(1, "a"), given_agent(2, "a", parent=1), other(3, parent=2)], [0], [0, 0, 0]),
            (
                [
                    given_agent(1, "a"),
                    given_call(2, "ask", parent=1),
                    given_agent(3, "a", parent=2),
                    other(4, parent=3),
                ],
                [0, 2],
                [0, 0, 0, 2],
            ),
            # A span without a name is a run only if no agent has one.
            ([given_agent(1, None), given_agent(2, "a", parent=1), other(3, parent=2)], [1], [0, 0, 1]),
            ([other(1), given_agent(2, None, parent=1), other(3, parent=2)], [1], [0, 0, 1]),
        ],
    )
    def test_each_span_works_in_the_run_above_it(self, spans: list[Span], runs: list[int], members: list[int]) -> None:
        """Else in the root."""
        assert (runs, members) == given_tree(*spans).runs()


class TestStep:
    @pytest.mark.parametrize(
        ("spans", "is_step"),
        [
            ([given_model(1)], True),
            ([given_model(1), other(2, parent=1), other(3, parent=2)], True),
            ([given_model(1), other(2, parent=9)], False),
            ([given_model(1), other(2)], False),
            ([other(1), given_model(2, parent=1)], False),
            ([given_model(1), given_agent(2, "a", parent=1)], False),
            ([given_model(1), given_call(2, "pay", parent=1)], True),
            ([given_model(1), other(2, parent=3), other(3, parent=2)], False),
            ([given_model(1), given_model(2)], True),
            ([given_model(1), other(2, parent=1), other(2)._replace(parent_span_id=other(1).span_id)], True),
        ],
    )
    def test_only_models_and_spans_below_them(self, spans: list[Span], *, is_step: bool) -> None:
        """Anything else is a run: an agent, or a span beside or above the models."""
        assert is_step is given_tree(*spans).is_step


class TestSingleRequests:
    def test_models_around_calls_are_whole_runs(self) -> None:
        """Unless their dialect says that they are one request, and they are no agent's run."""
        tree = given_tree(
            given_model(1),
            other(2, parent=1),
            given_call(3, "pay", parent=2),
            given_model(4, is_request=False),
            given_call(5, "pay", parent=4),
            given_model(6, is_agent=True),
            given_call(7, "pay", parent=6),
            given_model(8, is_agent=True),
            given_model(9, is_request=False),
        )
        assert [0, 7, 8] == tree.single_requests
        assert [True, False, False] == [tree.is_request(index) for index in (0, 3, 5)]

    def test_a_span_of_a_model_that_no_dialect_tells_more_of(self) -> None:
        """Such a span is one request."""
        tree = given_tree(given(Reading(is_model=True)), given_call(2, "pay", parent=1))
        assert [0] == tree.single_requests

    def test_parents_of_calls_that_form_a_cycle(self) -> None:
        """They end the search."""
        tree = given_tree(given_call(1, "pay", parent=2), given_model(2, is_request=False, parent=1), given_model(3))
        assert [2] == tree.single_requests


class TestConversations:
    def test_the_nearest_above_names_it(self) -> None:
        """If there is only one, none is told; the earliest is the trace's."""
        spans = [
            given_agent(1, "a", conversation_id="one"),
            other(2, parent=1),
            given_model(3, parent=2, conversation_id="two"),
            other(4, parent=3),
            other(5),
        ]
        tree = given_tree(*spans)
        assert (["one", "one", "two", "two", None], True, "one") == (
            tree.conversations,
            tree.several_conversations,
            tree.conversation_id,
        )
        tree = given_tree(*spans[:2], given_model(3, parent=2, conversation_id="one"))
        assert ([None] * 3, False, "one") == (tree.conversations, tree.several_conversations, tree.conversation_id)


class TestKinds:
    def test_each_span_by_its_reading(self) -> None:
        """A span that only looks like a call is none; a part belongs to a call."""
        tree = given_tree(
            given_call(1, "a"),
            given_call(2, "b", not_a_call=True),
            given_call(3, "c", part_of_call=True),
            given_call(4, "d", part_of_call=True, not_a_call=True),
            given(Reading(not_a_call=True), 5),
        )
        assert ([0], [2, 3], [1, 3, 4]) == (list(tree.calls), list(tree.parts), tree.not_calls)

    @pytest.mark.parametrize(
        ("reading", "is_pause"),
        [
            (Reading(waits=(PAY,)), True),
            (Reading(refused=(PAY,)), True),
            (Reading(ends_asking=True), True),
            (Reading(resumes=True), True),
            (Reading(may_wait=True), True),
            (Reading(refuses_silently=True), False),
            (Reading(agent="a"), False),
        ],
    )
    def test_spans_that_show_that_calls_wait(self, reading: Reading, *, is_pause: bool) -> None:
        """Or that they may, were refused, or that a run continues."""
        assert ([0] if is_pause else []) == given_tree(given(reading)).pauses

    @pytest.mark.parametrize(
        ("readings", "recognised"),
        [
            ([], False),
            ([Reading(conversation_id="c")], False),
            ([Reading(conversation_id="c", agent="a")], True),
            ([Reading(agent="a")], True),
            ([Reading(agent="a"), Reading(conversation_id="c")], True),
            ([Reading(conversation_id="c"), Reading(agent="a")], True),
        ],
    )
    def test_a_session_alone_is_no_agents(self, readings: list[Reading], *, recognised: bool) -> None:
        """Web servers write its id as well."""
        spans = [given(reading, number) for number, reading in enumerate(readings, 1)]
        assert recognised is given_tree(other(9), *spans).recognised

    def test_content_elsewhere_in_any_span(self) -> None:
        """Whatever the other spans say."""
        spans = given(Reading(content_elsewhere=True)), given(Reading(agent="a"), 2)
        assert given_tree(*spans).content_elsewhere
        assert not given_tree(spans[1]).content_elsewhere


class TestModelsOfRuns:
    def test_the_span_of_a_run_asks_for_nothing_if_its_models_have_spans(self) -> None:
        """A run that lists its requests, or has no models below, asks for itself; so does a model that is no run."""

        def asking(*spans: Span) -> list[bool]:
            return [reading.asks for reading in given_tree(*spans).model_readings.values()]

        run = given_model(1, is_agent=True, asks=True)
        assert [False, False] == asking(run, other(2, parent=1), given_model(3, parent=2))
        assert [True, False] == asking(run, given_model(3))
        assert [True, False] == asking(given_model(1, PAY, is_agent=True), given_model(3, parent=1))
        assert [True, False] == asking(given_model(1, asks=True), given_model(3, parent=1))
        assert [False, True, False] == asking(
            run, given_model(3, is_agent=True, asks=True, parent=1), given_model(5, parent=9)
        )

    def test_log_records_are_no_spans_of_models(self) -> None:
        """They are models all the same."""
        tree = given_tree(given_model(1, kind=LOG_RECORD), given_model(2))
        assert ([0, 1], [1]) == (tree.models, tree.model_spans)


def test_arguments_are_equal_as_json() -> None:
    """Of a call and of a part of one."""
    tree = given_tree(
        given_call(1, "a", arguments={"x": 1, "y": 2}),
        given_call(2, "a", arguments={"y": 2, "x": 1.0}, part_of_call=True),
        given_call(3, "a", arguments={"x": 1}),
    )
    keys = [tree.arguments_key(index) for index in (0, 1, 2, 0)]
    assert keys[0] == keys[1] == keys[3] != keys[2]


def test_the_last_version_of_a_span_counts() -> None:
    """Earlier ones are superseded, and no root."""
    first, last = given_call(1, "pay"), given_call(1, "pay")._replace(end_ns=start_ns(7))
    tree = SpanTree(Readings.of([first, last, other(2)], GIVEN))
    assert ({0}, 1, [1]) == (set(tree.superseded), tree.root, list(tree.calls))


def test_an_agent_beside_its_call_is_below_it() -> None:
    """ADK writes the span of an agent for a single turn beside that of the call, within its time."""

    def parent_of(agent: str, ms: int) -> int:
        run = given_agent(1, "main")._replace(end_ns=start_ns(40))
        called = given_call(2, "desk", parent=1)._replace(end_ns=start_ns(9))
        return given_tree(run, called, given_agent(3, agent, parent=1)._replace(end_ns=start_ns(ms))).parents[2]

    assert (1, 0, 0) == (parent_of("desk", 9), parent_of("desk", 10), parent_of("other", 9))


def test_an_agent_that_is_called_twice_is_below_each_of_its_calls() -> None:
    """Also while other calls of it, which are over, began in between."""
    run = given_agent(1, "main")._replace(end_ns=start_ns(40))
    spans = [run]
    for number, end in ((2, 20), (4, 5), (7, 9)):
        spans.append(given_call(number, "desk", parent=1)._replace(end_ns=start_ns(end)))
    spans += [given_agent(number, "desk", parent=1)._replace(end_ns=start_ns(end)) for number, end in ((6, 18), (8, 9))]

    assert given_tree(*spans).parents[4:] == [1, 3]
