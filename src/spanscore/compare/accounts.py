"""Scores with an explanation: a sentence with the numbers, and the first deviations in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from spanscore.compare.alignment import LIMIT, Shortened
from spanscore.compare.deviations import Deviation
from spanscore.messages.alike import told_apart
from spanscore.model import Score
from spanscore.model.outcomes import MendedBy, Told, Words

_TOLD: Final = 3
"""The most deviations in an explanation."""


class Account(NamedTuple):
    """The reasons of a value: the numbers behind it, and the deviations."""

    summary: str
    """The sentence with the numbers: with a colon at its end, or whole."""
    details: Mapping[str, Any]
    """As in Score; the deviations are added."""
    deviations: Sequence[Deviation] = ()
    """Deviations that the summary does not name; they are added to it."""
    told: Sequence[Deviation] = ()
    """Deviations that the summary names."""
    marked: Sequence[Deviation] = ()
    """Further calls with deviations that the summary names: shown beside the calls, and not listed in the details."""
    formula: str = ""
    """The computation of the value, shown after the deviations."""
    summary_without_content: str | None = None
    """The summary without arguments and results; None where it holds none. Only without `deviations`."""


def scored(
    value: float,
    passed: bool,  # noqa: FBT001 - as in Score
    account: Callable[[], Account],
    *,
    at_once: bool = False,
    mended_by: MendedBy = MendedBy.ANY,
) -> Score:
    """Return a score whose explanation is a sentence with the numbers and the first deviations in words.

    `account` returns the reasons of the value. It is called on first use of the explanation, when it must not fail;
    with `at_once` now, where it may find that it is too much work, as what matchers find different counts as theirs, or
    where it needs much that can be let go of then. The other arguments are those of `Score`.
    """
    if at_once:
        made = account()
        return Score.told_later(value, passed, lambda: _told(made, passed), mended_by)
    return Score.told_later(value, passed, lambda: _told(account(), passed), mended_by)


def _told(account: Account, passed: bool) -> Told:  # noqa: FBT001 - as in Score
    found = [*account.deviations, *account.told]
    if not (passed or found):  # such as weights by which no run reaches the threshold
        found = [Deviation(kind="limit", tool="", expected="threshold", why="scores below the threshold")]
    details = account.details
    if found:
        every = [*found, *account.marked]
        listed = [deviation.as_json() for deviation in found[:LIMIT]]
        if len(listed) < len(every):
            listed = Shortened(listed, lambda: [deviation.as_json() for deviation in every])
        details = {**details, "deviations": listed}
    return Told(details, lambda: _words(account))


def _words(account: Account) -> Words:
    if not account.deviations:
        return Words(account.summary, account.summary_without_content)
    full, plain = (_explanation(account, content=content) for content in (True, False))
    return Words(full, None if plain == full else plain)


def _explanation(account: Account, *, content: bool) -> str:
    deviations = account.deviations
    names = told_apart({deviation.tool for deviation in deviations})
    shown = (
        replace(each, tool=names[each.tool]) if each.tool in names else each for each in deviations[:_TOLD]
    )  # names that look alike are told apart
    words = [each.words(content=content) for each in shown]
    if len(deviations) > _TOLD:
        words.append(f"{len(deviations) - _TOLD} more")
    return f"{account.summary} {'; '.join(words)}. {account.formula}".rstrip()
