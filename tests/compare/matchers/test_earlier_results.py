"""`$from` finds values in the results of earlier calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from spanscore.compare.differences import first_reason
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.matchers.base import MAX_STEPS, Results
from spanscore.compare.matchers.compiler import matcher, sources
from spanscore.model import NOT_RECORDED

RESULTS: list[tuple[str, Any]] = [
    ("lookup", {"id": "4711", "a/b": {"~": [1, {"deep": True}]}}),
    ("search", "text"),
    ("search", NOT_RECORDED),
    ("lookup", {"id": "4712"}),
]


def matches(expected: Any, actual: Any, before: int = 4) -> bool:
    """Compare what a call passed that has so many calls before it."""
    return matcher(expected).matches(actual, Results(RESULTS).before(before))


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"$from": "lookup", "path": "/id"}, "4711", True),
        ({"$from": "lookup", "path": "/id"}, "4712", True),
        ({"$from": "look*", "path": "/id"}, "4711", True),
        ({"$from": "search", "path": "/id"}, "4711", False),
        ({"$from": "search"}, "text", True),
        ({"$from": "search"}, "tex", False),
        ({"$from": "search", "path": ""}, "text", True),
        ({"$from": "lookup", "path": "/a~1b/~0/1/deep"}, True, True),
        ({"$from": "lookup", "path": "/a~1b/~0/1/deep"}, 1, False),
        ({"$from": "*"}, 1.0, True),
        ({"$from": "*"}, {"deep": True}, True),
        ({"$from": "*"}, None, False),
        ({"$from": "*"}, NOT_RECORDED, False),
        ({"$from": "*", "path": "/no"}, "4711", False),
    ],
)
def test_values_in_results(expected: Any, actual: Any, *, found: bool) -> None:
    """At a path, or anywhere; equal as JSON; of a tool, a glob or any."""
    assert found == matches(expected, actual)


@pytest.mark.parametrize(
    ("result", "path", "value"),
    [
        ('{"order": {"id": "A-7"}}', "/order/id", "A-7"),
        (' [{"id": 1.0}]', "/0/id", 1),
        ({"text": '{"order": "{\\"id\\": null}"}'}, "/text/order/id", None),
    ],
)
def test_a_path_leads_into_json_text(result: Any, path: str, value: Any) -> None:
    """Tools often return JSON as a text, or as a part of what they return."""
    seen = Results([("lookup", result)]).before(1)

    assert matcher({"$from": "lookup", "path": path}).matches(value, seen)
    assert not matcher({"$from": "lookup"}).matches(value, seen)


@pytest.mark.parametrize("text", ["", "text", "{", '{"id": NaN}', '{"id": 1e999}', "[" * 100_000, "[\ud800]"])
def test_other_texts_have_no_inside(text: str) -> None:
    """Text that is not JSON, or too deep, is a value like any other."""
    seen = Results([("lookup", text)]).before(1)

    assert not any(matcher({"$from": "lookup", "path": "/id"}).matches(value, seen) for value in ("", None, text))
    assert matcher({"$from": "lookup", "path": ""}).matches(text, seen)


def test_long_texts_count_as_work() -> None:
    """Parsing a text is limited by its length, as comparing is."""
    seen = Results([("lookup", "[" + " " * 25 * MAX_STEPS + "1]")]).before(1)

    with pytest.raises(TooMuchWorkError):
        matcher({"$from": "lookup", "path": "/0"}).matches(1, seen)


@pytest.mark.parametrize(("levels", "found"), [(64, True), (65, False)])
def test_values_far_inside_are_not_looked_for(levels: int, *, found: bool) -> None:
    """A result is looked through for so many levels."""
    result: Any = "A-7"
    for _ in range(levels):
        result = [result]

    assert found == matcher({"$from": "f"}).matches("A-7", Results([("f", result)]).before(1))


def test_only_earlier_ones() -> None:
    """A result is seen by the calls behind it, not by its own."""
    expected = {"$from": "lookup", "path": "/id"}

    assert [False, True] == [matches(expected, "4711", before) for before in (0, 1)]
    assert [False, True] == [matches(expected, "4712", before) for before in (3, 4)]


def test_names_are_compared_as_everywhere() -> None:
    """A plain name is normalised, and those who look for missing results are told of which tools."""
    compiled = matcher({"a": [{"$from": "LOOKUP"}]}, normalise=str.lower)

    assert compiled.needs_earlier
    assert compiled.matches({"a": ["4711"]}, Results(RESULTS).before(1))
    assert [[True, False]] == [[is_source("lookup"), is_source("LOOKUP")] for is_source in sources([compiled])]
    assert not matcher({"a": {"$any": True}}).needs_earlier


def test_results_are_looked_at_once() -> None:
    """Ten thousand calls that look into ten thousand results take one look at each."""
    run = Results([("lookup", {"id": number}) for number in range(10_000)])
    compiled = matcher({"$from": "*"})

    assert all(compiled.matches(number, run.before(number + 1)) for number in range(10_000))
    assert not any(compiled.matches(number, run.before(number)) for number in range(10_000))


def test_the_latest_values_are_told_at_no_cost() -> None:
    """A text of many differences parses no result again; of many values the latest three are named."""
    padded = [("lookup", json.dumps({"amount": number, "pad": "x" * 60_000})) for number in range(10)]
    run = Results(padded)
    compiled = matcher({"$from": "lookup", "path": "/amount"})

    for _ in range(60):
        (first,) = compiled.differences("all", run.before(10))
        (second,) = compiled.differences("all", run.before(2))

    wanted = "expected a value of an earlier result of lookup at /amount"
    assert [f'{wanted} (9, 8, 7, …), got "all"', f'{wanted} (1, 0), got "all"'] == [first.words, second.words]
    others = Results([*padded[:3], *[("other", NOT_RECORDED)] * 99])
    assert f'{wanted} (2, …), got "all"' == compiled.differences("all", others.before(102))[0].words


def test_why_no_value_could_match_is_told_whole() -> None:
    """Though it is longer than a value that is shown."""
    (found,) = matcher({"$from": "lookup_order", "path": "/amount"}).differences(
        40, Results([("lookup_order", {})]).before(1)
    )

    wanted = "expected a value of an earlier result of lookup_order at /amount (no result before has /amount), got 40"
    assert wanted == found.words


@pytest.mark.parametrize(
    ("tool", "path", "results", "failed", "told", "why"),
    [
        ("look", "/a", [], [], "no such call was made before", "no earlier call of look"),
        ("look", "/a", [("look", "no")], [0], "every such call before failed", "every earlier call of look failed"),
        (
            "look",
            "/a",
            [("look", {}), ("x", {"a": 1})],
            [],
            "no result before has /a",
            "no /a in earlier results of look",
        ),
        ("look", "/a", [("look", {}), ("look", {"a": 1})], [0], "1", "differs from earlier results of look"),
        ("look", "/a", [("look", {"a": 1})], [0], "1", "differs from earlier results of look"),
        ("l*", None, [("look", NOT_RECORDED)], [], "no result before was recorded", "no earlier result of l*"),
        ("*", None, [], [], "no such call was made before", "no earlier call"),
        ("*", "/a", [("look", {"a": 1})], [], "1", "differs from earlier results"),
    ],
)
def test_each_cause_has_a_reason_of_its_own(  # noqa: PLR0913, PLR0917 - a parametrized table
    tool: str, path: str | None, results: list[tuple[str, Any]], failed: list[int], told: str, why: str
) -> None:
    """A call behind it changes nothing; the reason names the tool and the path, and no value."""
    expected = {"amount": {"$from": tool} | ({"path": path} if path else {})}
    run = Results([*results, (tool, {"a": "later"})], failed)
    found = matcher(expected).differences({"amount": "all"}, run.before(len(results)))

    assert f"({told}), got" in found[0].words
    assert why == found[0].words_without_content
    assert f"refund.amount: {why}" == first_reason("refund", found)


def test_results_without_end() -> None:
    """Looking ends at a limit: each result counts, and each value in it; the last step that is allowed is taken."""
    steps = 1 + 3 * (1 + 1 + 1_000)
    enough, too_little = (Results([("lookup", [0] * 1_000)] * 3) for _ in range(2))
    enough.spend(MAX_STEPS - steps)
    too_little.spend(MAX_STEPS - steps + 1)

    assert not matcher({"$from": "*"}).matches(1, enough.before(1))
    with pytest.raises(TooMuchWorkError, match="more than 1000000 steps"):
        matcher({"$from": "*"}).matches(1, too_little.before(1))


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"$from": ""}, "$from: must be the name of a tool, a glob, or '*' for any"),
        ({"$from": 1}, "$from: must be the name of a tool, a glob, or '*' for any, not 1"),
        ({"$from": "a", "path": "id"}, "$from: 'path' must be a JSON Pointer such as '/items/0/id', not \"id\""),
        ({"$from": "a", "path": "/~2"}, "$from: 'path' must be a JSON Pointer"),
        ({"$from": "a", "path": None}, "$from: 'path' must be a JSON Pointer"),
    ],
)
def test_mistakes(expected: Any, message: str) -> None:
    """What cannot be a tool or a path is refused."""
    with pytest.raises(ValueError, match=re.escape(message)):
        matcher(expected)


@pytest.mark.parametrize(
    ("expected", "needs", "denies"),
    [
        (1, False, False),
        ({"$not": 1}, False, False),
        ({"$from": "a"}, True, False),
        ({"x": [{"$from": "a"}, 1]}, True, False),
        ({"$not": {"$from": "a"}}, True, True),
        ({"x": [{"$not": {"$one_of": [1, {"$from": "a"}]}}]}, True, True),
        ({"$one_of": [{"$not": 1}, {"$from": "a"}]}, True, False),
    ],
)
def test_matchers_that_look_back(expected: Any, *, needs: bool, denies: bool) -> None:
    """A matcher with such a part looks back; with one that is negated it may match as a result lacks the value."""
    found = matcher(expected)

    assert (needs, denies) == (found.needs_earlier, found.denies_earlier)
