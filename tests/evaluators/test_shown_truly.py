"""What explanations say of steps that are to be made together, of equal steps, and of texts that look alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spanscore import Score, Trajectory
from spanscore.config import build_evaluator

NFC, NFD = "caf\u00e9", "cafe\u0301"


def run(*calls: tuple[str, int, int, int | None]) -> Trajectory:
    """Return a run of calls, each with its begin, its end and its model turn."""
    made = Trajectory.from_calls([{"name": name, "arguments": {}} for name, *_ in calls])
    timed = [
        replace(call, start_ns=start, end_ns=end, turn=turn)
        for call, (_, start, end, turn) in zip(made.calls, calls, strict=True)
    ]
    return replace(made, calls=tuple(timed))


def scored(kind: str, trajectory: Trajectory, **parameters: Any) -> Score:
    """Return the score of a run that deviates."""
    outcome = build_evaluator(kind, parameters).evaluate(trajectory)
    assert isinstance(outcome, Score)
    return outcome


ONE_AFTER_THE_OTHER = run(("web", 1, 5, None), ("docs", 7, 9, None))


@pytest.mark.parametrize(
    ("steps", "trajectory", "words"),
    [
        (
            [{"parallel": ["web", "docs"]}],
            ONE_AFTER_THE_OTHER,
            "docs was called, but not in parallel with web (call 2)",
        ),
        (
            [{"turn": ["web", "docs"]}],
            run(("web", 1, 5, 1), ("docs", 1, 5, 2)),
            "docs was called, but not in the same model turn as web",
        ),
        (
            [{"repeat": [{"parallel": ["web", "docs"]}], "min": 2, "max": 2}],
            run(("web", 1, 4, None), ("docs", 2, 5, None), ("web", 6, 7, None), ("docs", 8, 9, None)),
            "docs was called, but not in parallel with web (call 4)",
        ),
        (
            ["find", {"parallel": ["web", "docs"]}],
            run(("docs", 1, 9, None), ("find", 2, 3, None), ("web", 4, 8, None)),
            "docs was called out of order (call 1)",
        ),
    ],
)
def test_a_step_out_of_its_group(steps: list[Any], trajectory: Trajectory, words: str) -> None:
    """It was made, but not together with the others: that is no matter of order. Where it was together, order is."""
    assert words in scored("expected_trajectory", trajectory, steps=steps).explanation


def test_the_details_of_a_step_out_of_its_group() -> None:
    """They say how, and with which tools, it had to be made."""
    outcome = scored("expected_trajectory", ONE_AFTER_THE_OTHER, steps=[{"parallel": ["web", "docs"]}])

    (row,) = outcome.details["deviations"]
    assert ("order", 1, "parallel", ["web"]) == (row["kind"], row["call"], row["together"], row["apart_from"])


A_B_C = [(name, 1, 1, 1) for name in ("a", "fetch", "b", "c", "fetch")]


@pytest.mark.parametrize(
    ("kind", "parameters", "calls", "which"),
    [
        ("expected_trajectory", {"steps": ["a", "fetch", "b", "fetch", "c", "fetch"]}, A_B_C, "2nd"),
        ("tool_call_order", {"tool_calls_order": ["a", "fetch", "b", "fetch", "c", "fetch"]}, A_B_C, "2nd"),
        ("expected_trajectory", {"steps": ["fetch"] * 3}, [("fetch", 1, 1, 1)] * 2, "3rd"),
        ("expected_trajectory", {"steps": [{"repeat": ["fetch"], "min": 3}]}, [("fetch", 1, 1, 1)] * 2, "3rd"),
    ],
)
def test_which_of_equal_steps_is_missing(
    kind: str, parameters: dict[str, Any], calls: list[tuple[str, int, int, int | None]], which: str
) -> None:
    """Its place among the steps of that name, in words and for programs; one alone has no number."""
    outcome = scored(kind, run(*calls), **parameters)
    (row,) = outcome.details["deviations"]

    assert f"the {which} of 3 fetch calls was not made." in outcome.explanation
    assert (int(which[0]), 3) == (row["nth"], row["of"])


def test_a_step_alone_has_no_number() -> None:
    """It is the only one of its name."""
    outcome = scored("expected_trajectory", run(("a", 1, 1, 1)), steps=["a", "fetch"])

    assert outcome.explanation.startswith("1 deviation: fetch was not called.")
    assert "nth" not in outcome.details["deviations"][0]


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (
            "expected_trajectory",
            {"steps": [{"call": "s", "args": {"q": NFC}}]},
            r'expected "caf\u00e9", got "cafe\u0301"',
        ),
        (
            "expected_trajectory",
            {"steps": [{"call": "s", "args": {"q": {"$one_of": [NFC, "tea"]}}}]},
            r'expected one of "caf\u00e9", "tea", got "cafe\u0301"',
        ),
        (
            "tool_arguments_schema",
            {"schemas": {"s": {"properties": {"q": {"enum": [NFC]}}}}},
            r"['caf\u00e9'], got " + r'"cafe\u0301"',
        ),
        (
            "trajectory_match",
            {"reference": [{"name": NFC}], "mode": "exact", "arguments": "ignore"},
            r"expected caf\u00e9, got cafe\u0301",
        ),
    ],
)
def test_texts_that_look_alike_are_told_apart(kind: str, parameters: dict[str, Any], words: str) -> None:
    """Values, rules and names are escaped where nobody could see the difference."""
    name = "s" if "reference" not in parameters else NFD
    trajectory = Trajectory.from_calls([{"name": name, "arguments": {"q": NFD}}])

    assert words in scored(kind, trajectory, **parameters).explanation


def test_a_difference_in_a_long_text_is_seen() -> None:
    """Also where escapes before it take all the room."""
    text = "\u00e9" * 5_000
    steps = [{"call": "s", "args": {"q": f"{text} x{text}"}}]
    outcome = scored(
        "expected_trajectory",
        Trajectory.from_calls([{"name": "s", "arguments": {"q": f"{text}\u00a0x{text}"}}]),
        steps=steps,
    )

    assert r"\u00a0x" in outcome.explanation
    assert len(outcome.explanation) < 500
