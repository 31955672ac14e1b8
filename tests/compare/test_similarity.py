from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.compare.matching import member_keys
from spanscore.compare.similarity import SimilarArguments, UntakenArguments, similarity_of

ARGUMENTS = st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4), max_size=6)
LEAST = st.sampled_from([0.0, 0.3, 0.5, 0.67, 0.75, 0.8, 1.0])


def similarity(actual: dict[str, Any], reference: dict[str, Any]) -> float:
    """Return the share of the reference's arguments that are there and equal."""
    if not reference:
        return 0.5 if actual else 1.0
    return sum(name in actual and actual[name] == value for name, value in reference.items()) / len(reference)


def one_by_one(calls: list[dict[str, Any]], references: list[dict[str, Any]], least: float) -> list[Any]:
    """Compare each call with every open reference."""
    taken: set[int] = set()
    found: list[Any] = []
    for call in calls:
        ranked = [
            (similarity(call, reference), -place) for place, reference in enumerate(references) if place not in taken
        ]
        best, place = max(ranked, default=(0.0, 0))
        fits = best > 0 and best >= least
        found.append((-place, best) if fits else None)
        taken |= {-place} if fits else set()
    return found


@pytest.mark.parametrize(
    ("members", "reference", "similarity"), [("", "", 1.0), ("a", "", 0.5), ("", "a", 0.0), ("abx", "abcd", 0.5)]
)
def test_similarity_of(members: str, reference: str, similarity: float) -> None:
    """The share of the reference's members; one that has none is half like everything but itself."""
    assert similarity == similarity_of(frozenset(members), frozenset(reference))


class TestSimilarArguments:
    @at_most(500)
    @given(calls=ARGUMENTS, references=ARGUMENTS, least=LEAST)
    def test_takes_what_comparing_all_takes(
        self, calls: list[dict[str, Any]], references: list[dict[str, Any]], least: float
    ) -> None:
        """Each call takes the most similar open reference, the first of equals."""
        open_references = UntakenArguments(
            SimilarArguments([member_keys(reference) for reference in references], least)
        )

        assert one_by_one(calls, references, least) == [open_references.take(member_keys(call)) for call in calls]

    def test_thousands_that_share_most(self) -> None:
        """References that share all members but one are still told apart, in any order."""
        references = [{"query": f"q{number}", "limit": 10, "lang": "en"} for number in range(3_000)]
        open_references = UntakenArguments(SimilarArguments([member_keys(reference) for reference in references], 0.5))

        found = [open_references.take(member_keys(reference)) for reference in reversed(references)]

        assert [(number, 1.0) for number in reversed(range(3_000))] == found
