"""Rules that hold where a call with certain arguments is made."""

from __future__ import annotations

from typing import Any, Final

import pytest

from spanscore.compare.names import exact, sanitized
from spanscore.compare.rules.call_rules import CallPattern, CompiledCall, CompiledWhen, Then, When
from spanscore.compare.rules.called import CalledTools
from spanscore.model import ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

NOTHING: Final = MendedBy.NOTHING
EARLIER: Final = MendedBy.EARLIER | MendedBy.BETWEEN
LATER: Final = MendedBy.BETWEEN | MendedBy.LATER


def run(*calls: tuple[str, Any, Any]) -> CalledTools:
    """A run of calls with these arguments and results."""
    made = tuple(ToolCall(name=name, arguments=arguments, result=result) for name, arguments, result in calls)
    return CalledTools(Trajectory(calls=made), exact)


@pytest.mark.parametrize(
    ("names", "then", "expected", "mended_by"),
    [
        ("ba", {"must_precede": "b"}, None, None),
        ("aba", {"must_precede": "b"}, [0], EARLIER),
        ("aba", {"must_precede": ("b", "?")}, [0], EARLIER),
        ("aa", {"must_precede": "a"}, [0], EARLIER),
        ("aab", {"must_follow": "b"}, None, None),
        ("aba", {"must_follow": "b"}, [2], LATER),
        ("aa", {"must_follow": ("b", "a")}, [0, 1], LATER),
        ("aa", {"must_follow": "a"}, [1], LATER),
        ("a", {"must_precede": "b", "must_follow": "c"}, [0], MendedBy.ANY),
        ("bac", {"forbidden": ("b", "c")}, [0, 2], NOTHING),
        ("ba", {"must_precede": "c", "forbidden": "b"}, [0, 1], NOTHING),
        ("ba", {"must_precede": "c"}, [1], EARLIER),
        ("bc", {"must_precede": "x", "must_follow": "x", "forbidden": "b"}, None, None),
    ],
)
def test_conditions(names: str, then: dict[str, Any], expected: list[int] | None, mended_by: MendedBy | None) -> None:
    """What holds where a call is made, and where further calls could mend it; without such a call anything does."""
    when = CompiledWhen(When(call="a", then=Then(**then)), exact, "when[0]")
    made = run(*((name, {}, None) for name in names))

    assert expected == when.broken_by(made)
    assert mended_by == (None if expected is None else when.mended_by(made))


@pytest.mark.parametrize(
    ("args", "needs_arguments", "made", "mended_by"),
    [
        ({"$any": True}, False, [1, 2, 3, 4], NOTHING),
        ({}, True, [1, 2, 3, 4], NOTHING),
        ({"amount": {"$range": [100, None]}}, True, [2, 3, 4], NOTHING),
        ({"amount": {"$range": [100, None]}, "order": 8}, True, [4], NOTHING),
        ({"order": {"$from": "lookup", "path": "/id"}}, True, [2], EARLIER),
        ({"order": {"$not": {"$from": "lookup", "path": "/id"}}}, True, [3, 4], EARLIER),
    ],
)
def test_arguments(args: Any, needs_arguments: bool, made: list[int], mended_by: MendedBy) -> None:  # noqa: FBT001
    """They are compared key by key, with others beside them; an earlier result may be one that is not known yet."""
    calls = run(
        ("lookup", {"amount": 100}, {"id": 7}),
        ("pay", {"amount": 99}, None),
        ("pay", {"amount": 100, "order": 7}, None),
        ("pay", {"amount": 100, "order": 9}, None),
        ("pay", {"amount": 200, "order": 8}, None),
    )
    call = CompiledCall(CallPattern(call="p*", args=args), exact, "forbidden_calls[0]")

    assert (needs_arguments, made, mended_by) == (call.needs_arguments, call.made(calls), call.mended_by)
    when = CompiledWhen(When(call="p*", args=args, then=Then(must_follow="x")), exact, "when[0]")
    assert (made, mended_by | LATER) == (when.broken_by(calls), when.mended_by(calls))
    forbidding = CompiledWhen(When(call="p*", args=args, then=Then(forbidden="lookup")), exact, "when[0]")
    assert ([0], mended_by) == (forbidding.broken_by(calls), forbidding.mended_by(calls))


def test_a_call_without_arguments() -> None:
    """It has an empty object of them, as everywhere."""
    made = CalledTools(Trajectory(calls=(ToolCall(name="list"),)), exact)

    for args, expected in (({"limit": {"$absent": True}}, [0]), ({}, [0]), ({"limit": 1}, [])):
        assert expected == CompiledCall(CallPattern(call="list", args=args), exact, "it").made(made), args


def test_names_are_normalised() -> None:
    """In each rule of a condition, as those of the calls."""
    made = CalledTools(Trajectory(calls=tuple(ToolCall(name=name) for name in ("a b", "c d", "a b"))), sanitized)
    expected = {"must_precede": [0], "must_follow": [2], "forbidden": [1]}

    assert expected == {
        rule: CompiledWhen(When(call="a b", then=Then(**{rule: "c d"})), sanitized, "when[0]").broken_by(made)
        for rule in expected
    }


def test_rules_are_written_as_they_are_configured() -> None:
    """One tool is listed as several are; what is not there is not named."""
    assert "must_precede: a, b, forbidden: c" == str(Then(must_precede=("a", "b"), forbidden="c"))
    assert "must_follow: a" == str(Then(must_follow="a"))


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        (When(call="a", then=Then()), r"^when\[3\]\.then: at least one tool is needed"),
        (When(call="a", then=Then(must_precede=("",))), r"^when\[3\]\.then: at least one tool is needed"),
        (When(call="a", args={"x": {"$nearr": 1}}, then=Then(forbidden="b")), r"^when\[3\]\.args\.x\.\$"),
    ],
)
def test_refuses_what_means_nothing(when: When, reason: str) -> None:
    """With its place."""
    with pytest.raises(ValueError, match=reason):
        CompiledWhen(when, exact, "when[3]")
    CompiledWhen(When(call="a", then=Then(must_precede=("b", ""))), exact, "when[3]")
