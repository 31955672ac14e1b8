"""What is found by looking in the right places is what going through all calls would find."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import spanscore

TOOLS = st.sampled_from(["a", "b", "c"])
PATTERNS = st.sampled_from(["a", "b", "c", "*", "?", "d"])


@given(st.lists(TOOLS, max_size=12), st.lists(PATTERNS, min_size=2, max_size=4))
def test_forbidden_sequences(names: list[str], sequence: list[str]) -> None:
    """A rule is broken where calls fit its tools one right after the other."""

    def fits(name: str, pattern: str) -> bool:
        return pattern in {name, "*", "?"}

    size = len(sequence)
    windows = [names[start : start + size] for start in range(len(names) - size + 1)]
    is_broken = any(all(map(fits, window, sequence)) for window in windows)
    policy = spanscore.evaluator("tool_policy", {"forbidden_sequences": [sequence]})
    outcome = policy.evaluate(spanscore.Trajectory.from_calls([{"name": name} for name in names]))

    assert isinstance(outcome, spanscore.Score)
    assert outcome.passed is not is_broken


@given(
    st.lists(st.tuples(TOOLS, st.booleans()), max_size=12),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 3),
    st.dictionaries(TOOLS, st.lists(PATTERNS, max_size=2), max_size=2),
)
def test_recovery(
    made: list[tuple[str, bool]], within: int | None, most: int | None, instead: dict[str, list[str]]
) -> None:
    """A failed call is recovered from by the first call behind it that succeeds in its place."""

    def helps(failed: int, index: int) -> bool:
        (tool, _), (name, has_failed) = made[failed], made[index]
        retries = sum(each == tool for each, _ in made[failed + 1 : index + 1])
        again = name == tool and (most is None or retries <= most)
        return not has_failed and (again or any(pattern in {name, "*", "?"} for pattern in instead.get(tool, ())))

    calls: list[dict[str, Any]] = [{"name": name, "error": "E" if failed else None} for name, failed in made]
    params = {"within": within, "max_retries": most, "alternatives": instead}
    outcome = spanscore.evaluator("tool_recovery", params).evaluate(spanscore.Trajectory.from_calls(calls))
    end = len(made) if within is None else within
    expected = {
        failed: next(
            (index for index in range(failed + 1, min(len(made), failed + 1 + end)) if helps(failed, index)), None
        )
        for failed, (_, has_failed) in enumerate(made)
        if has_failed
    }

    assert isinstance(outcome, spanscore.Score)
    found = {each["call"]: each["by"] for each in outcome.details["recovered"]}
    assert {call: by for call, by in expected.items() if by is not None} == found


def test_a_broken_gate_fails_whatever_the_threshold() -> None:
    """It cannot be made up for, and not be configured away either."""
    policy = spanscore.evaluator("tool_policy", {"gates": {"forbidden": ["a"]}, "threshold": 0})
    outcome = policy.evaluate(spanscore.Trajectory.from_calls([{"name": "a"}]))

    assert isinstance(outcome, spanscore.Score)
    assert (0, False) == (outcome.value, outcome.passed)
