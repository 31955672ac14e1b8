"""Rules, and the calls that break them."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import called
from spanscore.compare.names import canonical, exact
from spanscore.compare.rules.call_rules import CallPattern, Then, When
from spanscore.compare.rules.called import CalledTools
from spanscore.compare.rules.tool_rules import Rules
from spanscore.model import ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

NOTHING: Final = MendedBy.NOTHING
EARLIER: Final = MendedBy.EARLIER | MendedBy.BETWEEN
LATER: Final = MendedBy.BETWEEN | MendedBy.LATER
FROM: Final = {"x": {"$not": {"$from": "b"}}}


def broken(rules: dict[str, Any], run: CalledTools) -> list[tuple[str, list[int], MendedBy]]:
    """The rules that a run breaks, with the calls that break them, and where further calls could mend that."""
    found = [(rule, rule.broken_by(run)) for rule in Rules(**rules).each(exact)]
    return [(rule.text, calls, rule.mended_by(run)) for rule, calls in found if calls is not None]


@pytest.mark.parametrize(
    ("rules", "names", "expected"),
    [
        ({"required": ("a", "b")}, "a", [("required: b", [], MendedBy.ANY)]),
        ({"required": ("a",)}, "", [("required: a", [], MendedBy.ANY)]),
        ({"allowed": ()}, "a", [("allowed: none", [0], NOTHING)]),
        ({"allowed": ()}, "", []),
        ({"allowed": ("a", "c*")}, "adcd", [("allowed: a, c*", [1, 3], NOTHING)]),
        ({"forbidden": ("a", "b")}, "aba", [("forbidden: a", [0, 2], NOTHING), ("forbidden: b", [1], NOTHING)]),
        ({"must_precede": (("a", "b"),)}, "bab", [("must_precede: a, b", [0], EARLIER)]),
        ({"must_precede": (("a", "b"),)}, "cc", []),
        ({"must_precede": (("a", "b"),)}, "b", [("must_precede: a, b", [0], EARLIER)]),
        ({"must_precede": (("a", "a"),)}, "aa", [("must_precede: a, a", [0], EARLIER)]),
        ({"must_precede": (("?", "b"),)}, "bb", [("must_precede: ?, b", [0], EARLIER)]),
        ({"max_calls": 2}, "ab", []),
        ({"max_calls": 2}, "abcd", [("max_calls: 2", [2, 3], NOTHING)]),
        ({"max_calls": 0}, "ab", [("max_calls: 0", [0, 1], NOTHING)]),
        (
            {"max_calls_per_tool": {"a": 1, "?": 3}},
            "abab",
            [("max_calls_per_tool: a: 1", [2], NOTHING), ("max_calls_per_tool: ?: 3", [3], NOTHING)],
        ),
        (
            {"forbidden_sequences": (("a", "b"),)},
            "acbabab",
            [("forbidden_sequences: a, b", [4, 6], MendedBy.BETWEEN)],
        ),
        (
            {"forbidden_sequences": (("a", "?", "a"),)},
            "aaaba",
            [("forbidden_sequences: a, ?, a", [2, 4], MendedBy.BETWEEN)],
        ),
        ({"forbidden_sequences": (("?", "b"),)}, "baab", [("forbidden_sequences: ?, b", [3], MendedBy.BETWEEN)]),
        ({"forbidden_sequences": (("b", "?"),)}, "bab", [("forbidden_sequences: b, ?", [1], MendedBy.BETWEEN)]),
        ({"forbidden_sequences": (("a", "a"),)}, "aba", []),
        ({"forbidden_sequences": (("a", "x"),)}, "aba", []),
        ({"must_follow": (("a", "b"),)}, "abba", [("must_follow: a, b", [3], LATER)]),
        ({"must_follow": (("a", "b"),)}, "aab", []),
        ({"must_follow": (("a", "b"),)}, "b", []),
        ({"must_follow": (("a", "b"),)}, "a", [("must_follow: a, b", [0], LATER)]),
        ({"must_follow": (("a", "a"),)}, "aa", [("must_follow: a, a", [1], LATER)]),
        ({"never_after": (("a", "?"),)}, "bab", [("never_after: a, ?", [2], NOTHING)]),
        ({"never_after": (("a", "a"),)}, "aba", [("never_after: a, a", [2], NOTHING)]),
        ({"never_after": (("a", "b"),)}, "ba", []),
        ({"forbidden_calls": (CallPattern(call="?"),)}, "ab", [("forbidden_calls[0]: ?", [0, 1], NOTHING)]),
        ({"forbidden_calls": (CallPattern(call="a"),)}, "b", []),
        (
            {"forbidden_calls": (CallPattern(call="b", args=FROM), CallPattern(call="a", args=FROM))},
            "a",
            [("forbidden_calls[1]: a", [0], EARLIER)],
        ),
        (
            {"when": (When(call="b", then=Then(forbidden="c")), When(call="a", then=Then(must_precede="c")))},
            "ac",
            [("when[1]: a, then must_precede: c", [0], EARLIER)],
        ),
    ],
)
def test_each_rule(rules: dict[str, Any], names: str, expected: list[Any]) -> None:
    """Each rule names the calls that break it; what was not allowed stays, what is missing may be elsewhere."""
    run = Trajectory(calls=tuple(ToolCall(name=name, arguments={"x": 1}) for name in names))

    assert expected == broken(rules, CalledTools(run, exact))


@pytest.mark.parametrize(
    ("run", "limits", "expected"),
    [
        ("a! a", {"a": 0}, [("max_retries_per_tool: a: 0", [1], NOTHING)]),
        ("a! b a! a", {"a": 1}, [("max_retries_per_tool: a: 1", [3], NOTHING)]),
        ("a! b! a b", {"*": 1}, []),
        ("a! b! b a", {"*": 0}, [("max_retries_per_tool: *: 0", [2, 3], NOTHING)]),
        ("a a a!", {"a": 0}, []),
        ("a! a", {"b": 0}, []),
    ],
)
def test_retries(run: str, limits: dict[str, int], expected: list[Any]) -> None:
    """A retry is the next call of a tool after one that failed; each tool of a glob is counted by itself."""
    calls = tuple(ToolCall(name=name[0], error="timeout" if name[1:] else None) for name in run.split())
    for ignore_failed in (False, True):
        made = CalledTools(Trajectory(calls=calls), exact, ignore_failed=ignore_failed)
        assert expected == broken({"max_retries_per_tool": limits}, made)


def test_declared_tools_only() -> None:
    """A trace's declaration may be in a span that was not received: the rule asks for it, and calls may come."""
    run = CalledTools(called("search", "pay", tool_definitions={"Search": {}}), canonical)
    (rule,) = Rules(declared_tools_only=True).each(canonical)

    assert ([1], True, MendedBy.ANY) == (rule.broken_by(run), rule.needs_declarations, rule.mended_by(run))
    assert rule.broken_by(CalledTools(called("search", tool_definitions={"Search": {}}), canonical)) is None
    assert not any(each.needs_declarations for each in Rules(forbidden=("a",), max_calls=1).each(exact))


def test_rules_that_compare_arguments_say_so() -> None:
    """For that arguments have to be recorded; for a tool alone they have not."""
    args = {"x": 1}
    then = Then(forbidden="b")
    rules = Rules(
        forbidden_calls=(CallPattern(call="a", args=args), CallPattern(call="a")),
        when=(When(call="a", args=args, then=then), When(call="a", then=then)),
    )

    assert [True, False, True, False] == [each.compares is not None for each in rules.each(exact)]


def test_named_tools() -> None:
    """Whatever a rule names, in each of its places, except what is allowed."""
    rules = Rules(
        required=("a",),
        allowed=("not me",),
        forbidden=("b",),
        max_calls_per_tool={"c": 1},
        max_retries_per_tool={"d": 1},
        must_precede=(("e", "f"),),
        must_follow=(("g", "h"),),
        never_after=(("i", "j"),),
        forbidden_sequences=(("k", "l", "m"),),
        forbidden_calls=(CallPattern(call="n"),),
        when=(When(call="o", then=Then(must_precede="p", must_follow=("q", "r"), forbidden="s")),),
    )

    assert list("abcdefghijklmnopqrs") == list(rules.named_tools())


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abcd*?"), min_size=2, max_size=4))
def test_forbidden_sequences(names: list[str], sequence: list[str]) -> None:
    """A rule is broken where calls fit its tools one right after the other."""

    def fits(name: str, pattern: str) -> bool:
        return pattern in {name, "*", "?"}

    size = len(sequence)
    windows = [names[start : start + size] for start in range(len(names) - size + 1)]
    breaking = [start + size - 1 for start, window in enumerate(windows) if all(map(fits, window, sequence))]
    (rule,) = Rules(forbidden_sequences=(tuple(sequence),)).each(exact)

    assert (breaking or None) == rule.broken_by(CalledTools(called(*names), exact))
