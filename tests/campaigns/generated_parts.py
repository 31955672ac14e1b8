"""Parts of generated runs: what each trace shows of a run, and which calls are known there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from spanscore.model import Span

Style = Literal["exception", "result", "constant"]
STYLES: Final[tuple[Style, ...]] = ("exception", "result", "constant")
"""As LangGraph pauses, in the span of the call; as Pydantic AI, in the result of the run; and as Google's ADK."""
Order = Literal["made", "asked", "gated"]
MAY_WAIT: Final = frozenset({"issue_refund", "delete_account"})


class Made(NamedTuple):
    """A call that was made, or that a person refused."""

    name: str
    amount: int = 0
    note: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """As a model writes them."""
        return {"amount": self.amount, "note": self.note}


class Asked(NamedTuple):
    """A call that a model asks for."""

    call_id: str
    made: Made
    fate: Literal["made", "approved", "edited", "refused"]
    inner: Run | None = None
    """The run of the sub-agent that is its body."""


@dataclass
class Run:
    """A run of an agent, and how far it is."""

    steps: Sequence[Sequence[Asked]]
    """The calls of each answer of its model."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    place: int = 0
    pending: list[Asked] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    made: list[tuple[int, int, int, Made]] = field(default_factory=list)
    """The calls that were made, as its model is sent them: in which trace, for which answer, at which place of it."""
    refused: list[Made] = field(default_factory=list)


@dataclass
class Began:
    """Where a run began or went on in a trace."""

    run: Run
    place: int
    is_resumed: bool
    asked: bool = False
    """Whether its model was asked in the trace."""
    answered: bool = False
    """Whether one of the calls that it waited for was answered in the trace."""
    executed: bool = False
    """Whether one of them was executed in it."""
    is_inner: bool = False


@dataclass
class Part:
    """A trace at one of its closings."""

    conversation: str
    trace: int
    start_ms: int
    style: Style
    content: bool
    spans: list[Span] = field(default_factory=list)
    """The spans since the closing before."""
    log: list[Began | Made] = field(default_factory=list)
    """The calls that were made in the trace, and where runs went on in it, in order."""
    refused: list[Made] = field(default_factory=list)
    truth: list[Made] = field(default_factory=list)
    """All calls of the run until then."""
    is_paused: bool = False
    revision: int = 0
    turn: int = 0

    def begins(self) -> Iterator[Began]:
        """Yield where runs went on."""
        return (each for each in self.log if isinstance(each, Began))

    def here(self) -> list[Made]:
        """Return the calls that were made in the trace."""
        return [each for each in self.log if isinstance(each, Made)]

    def _told(self, began: Began) -> bool:
        return self.content and began.is_resumed and began.asked and began.answered

    def calls(self, *, uncertain: bool = False, order: Order = "made") -> list[Made]:
        """Return the calls that are known: also those before the pause, which the model was sent.

        Args:
            uncertain: whether the calls are added that were made beside those that waited.
            order: of the calls before the pause that one answer asks for: as they were made; as they were asked for;
                or so, with those last that may wait.
        """
        found: list[Made] = []
        doubted: list[Made] = []
        first = None
        for each in self.log:
            if isinstance(each, Made):
                first = len(found) if first is None else first
                found.append(each)
            elif self.content and each.is_resumed and each.asked and each.answered:
                before = [made for made in each.run.made if made[0] != self.trace]
                if order != "made":
                    before.sort(key=lambda made: (made[1], order == "gated" and made[3].name in MAY_WAIT, made[2]))
                found += [made for _, place, _, made in before if place < each.place]
                doubted += [made for _, place, _, made in before if place == each.place]
        first = len(found) if first is None else first
        return [*found[:first], *(doubted if uncertain else ()), *found[first:]]

    def order_is_unknown(self) -> bool:
        """Return whether several calls before a pause are of one answer, or of several agents."""
        before = [
            (number, place)
            for number, each in enumerate(self.begins())
            for trace, place, *_ in each.run.made
            if each.is_resumed and trace != self.trace
        ]
        return len(set(before)) < len(before) or len({number for number, _ in before}) > 1

    def unseen(self) -> list[Began]:
        """Return the runs of which the calls before the pause are not known, though the trace shows the pause."""
        return (
            [] if self.content else [each for each in self.begins() if each.is_resumed and each.asked and each.executed]
        )
