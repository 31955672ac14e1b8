"""Scores that are explained when somebody looks."""

from __future__ import annotations

import pickle
from dataclasses import asdict, replace
from typing import Any

import pytest

from spanscore.model import Score
from spanscore.model.outcomes import Told, Words

AT_ONCE = Score(0.5, False, "1 of 2.", {"n": 1}, "plain")  # noqa: FBT003 - as evaluators make them


def later(asked: list[str]) -> Score:
    """Return a score that notes when it is asked for more than the value."""

    def tell() -> Told:
        asked.append("details")
        return Told({"n": 1}, words)

    def words() -> Words:
        asked.append("words")
        return Words("1 of 2.", "plain")

    return Score.told_later(0.5, passed=False, tell=tell)


def test_it_is_asked_once_and_not_for_the_value() -> None:
    """The value and whether it passed are there; details and texts are found when they are looked at, once."""
    asked: list[str] = []
    score = later(asked)
    assert ((0.5, False), []) == ((score.value, score.passed), asked)
    assert ({"n": 1}, ["details"]) == (score.details, asked)

    assert ("1 of 2.", "plain", {"n": 1}) == (score.explanation, score.without_content, score.details)
    assert ["details", "words"] == asked


def test_texts_come_with_details() -> None:
    """If texts are looked at first, the details are made once as well."""
    asked: list[str] = []
    score = later(asked)

    assert ("plain", "1 of 2.", {"n": 1}) == (score.without_content, score.explanation, score.details)
    assert ["details", "words"] == asked


@pytest.mark.parametrize(
    "look",
    [
        lambda score: score,
        lambda score: pickle.loads(pickle.dumps(score)),
        replace,
        lambda score: Score(**{key: value for key, value in asdict(score).items() if not key.startswith("_")}),
    ],
    ids=["equal", "pickled", "replaced", "taken apart"],
)
def test_it_is_as_one_told_at_once(look: Any) -> None:
    """Whoever handles it sees no difference."""
    assert AT_ONCE == look(later([]))
    assert repr(AT_ONCE) == repr(look(later([])))


def test_what_it_has_not_it_has_not() -> None:
    """A mistyped attribute is an error, and nothing is told for it."""
    asked: list[str] = []

    with pytest.raises(AttributeError, match="explanatoin"):
        _ = later(asked).explanatoin  # type: ignore[attr-defined]
    assert [] == asked


def test_what_fails_is_not_hidden() -> None:
    """An error of whoever tells is the error that is seen, each time."""
    score = Score.told_later(0.5, passed=False, tell=Told)  # type: ignore[call-arg]

    for _ in range(2):
        with pytest.raises(TypeError, match="details"):
            _ = score.explanation
