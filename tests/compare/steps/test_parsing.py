from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.steps.parsing import MOST_LEAVES, WrongStepsError, read_other_calls, read_pattern
from spanscore.compare.steps.pattern import Alternatives, Interleaved, Leaf, Repeat


def message(steps: Any) -> str:
    """What is said against steps."""
    with pytest.raises(ValueError, match=r"^steps") as caught:
        read_pattern(steps, str)
    return str(caught.value)


def nested(levels: int) -> list[Any]:
    """Steps with so many groups in each other."""
    steps: list[Any] = ["a"]
    for _ in range(levels):
        steps = [{"any_order": steps}]
    return steps


def test_every_mistake_is_named() -> None:
    """Each with its path: of steps, of groups and in them, of keys, and of arguments."""
    steps = [
        5,
        {"call": "a", "match": "exat", "error": 3, "arg": 1, "agrs": 2},
        {"any_order": ["", {"repeat": [7], "min": -1, "maximum": 3}]},
        {
            "agent": "",
            "steps": [{"call": "b", "args": {"x": {"$foo": 1}, "y": 2, "z": {"$near": "q"}}}],
            "other_calls": 1,
        },
        {"call": "c", "result": {"$bar": 1}},
        "d",
    ]
    with pytest.raises(WrongStepsError) as caught:
        read_pattern(steps, str)

    assert [
        "steps[0]",
        "steps[1]",
        "steps[1].match",
        "steps[1].error",
        "steps[2].any_order[0]",
        "steps[2].any_order[1]",
        "steps[2].any_order[1].repeat[0]",
        "steps[2].any_order[1].min",
        "steps[3].agent",
        "steps[3].other_calls",
        "steps[3].steps[0].args.x.$foo",
        "steps[3].steps[0].args.z.$near",
        "steps[4].result.$bar",
    ] == [each.partition(": ")[0] for each in caught.value.mistakes]
    assert "steps[1]: unknown keys 'arg', 'agrs' beside 'call'" in str(caught.value)


def test_too_many_calls_are_named_once() -> None:
    """And not for each of them."""
    with pytest.raises(WrongStepsError) as caught:
        read_pattern(["a"] * (MOST_LEAVES + 100), str)
    assert (f"steps[{MOST_LEAVES}]: there are more than {MOST_LEAVES} calls in the steps",) == caught.value.mistakes


def test_kinds() -> None:
    """Each kind of step, by what it is read as."""
    row = read_pattern(
        [
            "a",
            {"any_order": ["a", ["b", "c"]]},
            {"parallel": ["a"]},
            {"turn": ["a"]},
            {"one_of": [["a"], ["b"]]},
            {"repeat": ["a"], "max": 5},
            {"optional": "a"},
        ],
        str,
    ).row
    leaf, any_order, parallel, turn, one_of, repeat, optional = row.steps

    assert isinstance(leaf, Leaf)
    assert leaf.path == "steps[0]"
    assert isinstance(any_order, Interleaved)
    assert any_order.together is None
    assert [each.together for each in (parallel, turn) if isinstance(each, Interleaved)] == ["parallel", "turn"]
    assert isinstance(one_of, Alternatives)
    assert isinstance(repeat, Repeat)
    assert (repeat.least, repeat.most) == (1, 5)
    assert isinstance(optional, Repeat)
    assert (optional.least, optional.most) == (0, 1)


def test_call() -> None:
    """What a call may say, and what it means where it does not."""
    full, plain, empty = read_pattern(
        [
            {"call": "a", "args": {"x": 1}, "match": "exact", "result": None, "error": False},
            "a",
            {"call": "a", "args": {}},
        ],
        str,
    ).row.steps

    assert isinstance(full, Leaf)
    assert full.has_conditions
    assert full.fails is False
    assert full.result is not None
    assert isinstance(plain, Leaf)
    assert isinstance(empty, Leaf)
    assert not plain.has_conditions
    assert not empty.has_conditions


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("a", "steps: must be a list of steps"),
        ([5], "steps[0]: must be the name of a tool, a list of steps, or a mapping such as {call: search}"),
        ([""], "steps[0]: the name of a tool must be text, and not empty"),
        (
            [{"any_ordr": ["a"]}],
            (
                "steps[0]: must have exactly one of the keys agent, any_order, call, one_of, optional, parallel, "
                "repeat, turn; did you mean 'any_order'?"
            ),
        ),
        ([{"call": "a", "optional": ["b"]}], "steps[0]: must have exactly one of the keys call, optional"),
        (
            [{"call": "a", "arg": 1}],
            (
                "steps[0]: unknown key 'arg' beside 'call'; allowed: call, args, match, result, error; "
                "did you mean 'args'?"
            ),
        ),
        (
            [{"call": "a", "match": "subsets"}],
            "steps[0].match: must be one of exact, subset, ignore; did you mean 'subset'?",
        ),
        ([{"call": "a", "error": "yes"}], "steps[0].error: must be true, false or 'any'"),
        (
            [{"call": "a", "args": 1}],
            "steps[0].args: must be a mapping of arguments, or a matcher such as {$any: true}",
        ),
        ([{"repeat": ["a"], "min": -1}], "steps[0].min: must be an integer that is not negative"),
        ([{"repeat": ["a"], "max": True}], "steps[0].max: must be an integer that is not negative"),
        ([{"repeat": ["a"], "max": 10_001}], "steps[0].max: must be at most 10000, as there are no more calls"),
        ([{"repeat": ["a"], "min": 2, "max": 1}], "steps[0].max: must be at least 'min', which is 2"),
        ([{"one_of": []}], "steps[0].one_of: must have at least one branch"),
        ([{"agent": "a"}], "steps[0]: needs 'steps' for the calls of this agent"),
        ([{"agent": "", "steps": []}], "steps[0].agent: must be the name of an agent, or a glob"),
        (["a"] * 501, "steps[500]: there are more than 500 calls in the steps"),
    ],
)
def test_what_is_wrong(steps: Any, expected: str) -> None:
    """Each mistake is told with its path, and what is allowed."""
    assert message(steps) == expected


def test_wrong_matcher() -> None:
    """A mistake in a matcher is told with its path."""
    assert message([{"call": "a", "args": {"x": {"$nearr": 1}}}]).startswith("steps[0].args.x.$nearr: unknown matcher")


def test_depth() -> None:
    """Groups nest to depth 8; lists alone do not nest for ever either."""
    lists: Any = "a"
    for _ in range(1_000):
        lists = [lists]

    read_pattern(nested(8), str)
    assert message(nested(9)).endswith("groups nest to depth 8 at most")
    assert message(lists).endswith("groups nest to depth 8 at most")


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("allow", "ab"),
        ("forbid", ""),
        ([], ""),
        (["a"], "a"),
        (["*", "!b"], "a"),
        (["!a"], "b"),
    ],
)
def test_other_calls(value: Any, allowed: str) -> None:
    """Which of the tools a and b may be called."""
    allows = read_other_calls(value, "other_calls", str)

    assert "".join(filter(allows, "ab")) == allowed


def test_wrong_other_calls() -> None:
    """Neither a word nor globs."""
    with pytest.raises(ValueError, match=r"^other_calls: must be 'allow', 'forbid' or a list of globs; did you mean"):
        read_other_calls("forbidd", "other_calls", str)
