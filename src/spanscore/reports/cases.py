"""The case names of runs: the same run has the same name in every recording of a test suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from spanscore.messages.plural import plural
from spanscore.model import Report, Trajectory

CONVERSATION: Final = "gen_ai.conversation.id"

CASE_KEYS: Final = ("test.case.id", "test.case.name", CONVERSATION)
"""The attributes that name the case, the first that is there; of the root span or the resource.

A conversation names a case only if no two traces of the input share one: see `Cases`.
"""

TEST_KEYS: Final = ("test.case.name", "test.suite.name")
"""The attributes of the semantic conventions that name the test of a run: reports include them unchanged."""

_UNKNOWN: Final = "unknown"


def case_of(trajectory: Trajectory, key: str | None = None) -> str | None:
    """Return the case of a run, by `CASE_KEYS` or by the attribute `key`; None where nothing names it."""
    for each in CASE_KEYS if key is None else (key,):
        value = trajectory.attributes.get(each)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):  # as datasets take it
            return str(value)
    return None


def named_case(trajectory: Trajectory) -> str | None:
    """Return the test case of a run as outputs show it: `test.case.name`, else `test.case.id`; None without both."""
    return case_of(trajectory, "test.case.name") or case_of(trajectory, "test.case.id")


def conversation_name(report: Report) -> str | None:
    """Return the name of a conversation, such as `conversation c-1, 2 turns`; None if the report is of a run."""
    conversation = report.conversation
    return None if conversation is None else conversation.named(report.trajectory.conversation_id)


def test_names(trajectory: Trajectory) -> dict[str, str]:
    """Return those of `TEST_KEYS` that the root span or the resource has."""
    named = {key: trajectory.attributes.get(key) for key in TEST_KEYS}
    return {key: value for key, value in named.items() if isinstance(value, str) and value}


class Cases:
    """The cases of an input's runs.

    If the conversation of a run names its case, several traces of one conversation are turns. Turns are different
    tasks, so their case is unknown: `problem` reports it after all runs were added.

    Args:
        key: the attribute that names cases, in place of `CASE_KEYS`; its values are taken as they are.
        runs: runs of the input that are added at once.
    """

    def __init__(self, key: str | None = None, runs: Iterable[Trajectory] = ()) -> None:
        self.keys: Final = CASE_KEYS if key is None else (key,)
        self.several: Final[set[str]] = set()
        """The conversations with several turns."""
        self._is_asked_for: Final = key is not None
        self._first_turns: Final[dict[str, bytes]] = {}
        self._is_by_conversation = False
        for run in runs:
            self.add(run)

    def add(self, trajectory: Trajectory) -> None:
        """Count a run of the input as a turn of its conversation; the same one again changes nothing.

        The trace of a run that pauses is no turn: the one in which the run continues is.
        """
        is_turn = trajectory.recognised and not trajectory.completeness.paused
        conversation = case_of(trajectory, CONVERSATION) if is_turn else None
        if conversation is not None and self._first_turns.setdefault(conversation, trajectory.trace_id) != (
            trajectory.trace_id
        ):
            self.several.add(conversation)

    def key_of(self, trajectory: Trajectory) -> str | None:
        """Return the attribute that names the case of a run; None where nothing does."""
        self.add(trajectory)
        key = next((each for each in self.keys if case_of(trajectory, each) is not None), None)
        self._is_by_conversation |= key == CONVERSATION
        return key

    def of(self, trajectory: Trajectory) -> str | None:
        """Return the case of a run; None where nothing names it."""
        key = self.key_of(trajectory)
        return None if key is None else case_of(trajectory, key)

    def problem(self) -> str | None:
        """Return why requested cases are unknown; None if they are known."""
        if self._is_asked_for or not self._is_by_conversation or not self.several:
            return None
        return told_of_turns(len(self.several))


def told_of_turns(conversations: int) -> str:
    """Return why conversations name no case, with the remedy."""
    has = plural(conversations, "conversation has", "conversations have")
    return f"{has} several turns, which are no alternatives of one case: set test.case.id on each turn"


class CaseNames:
    """Gives each run a name of its own: its case, else `service/agent` and which of them it is.

    The attribute `key` names cases, in place of `CASE_KEYS`.
    """

    def __init__(self, key: str | None = None) -> None:
        self._key: Final = key
        self._bases: Final[list[str]] = []
        self._numbered: Final[set[str]] = set()

    def add(self, report: Report) -> None:
        """Take a run or a conversation; the order counts."""
        trajectory = report.trajectory
        case = conversation_name(report) or case_of(trajectory, self._key)
        base = case or "/".join(filter(None, (trajectory.service, trajectory.agent))) or _UNKNOWN
        if case is None:
            self._numbered.add(base)
        self._bases.append(base)

    def names(self) -> list[str]:
        """Return the names in the order of the runs. Runs that share a case have a number after its name."""
        alone = {base for base, count in Counter(self._bases).items() if count == 1} - self._numbered
        taken = set(alone)
        numbers: Counter[str] = Counter()
        names = []
        for base in self._bases:
            name = base
            while base not in alone and (name == base or name in taken):
                numbers[base] += 1
                name = f"{base} #{numbers[base]}"
            taken.add(name)
            names.append(name)
        return names
