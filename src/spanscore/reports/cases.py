"""How runs are called in the tests they belong to: the same run has the same name in every recording of a suite."""

from __future__ import annotations

from collections import Counter
from typing import Final

from spanscore.model import Trajectory

CASE_KEYS: Final = ("test.case.id", "test.case.name", "gen_ai.conversation.id")
"""The attributes that name the case, the first that is there; of the root span or the resource."""

TEST_KEYS: Final = ("test.case.name", "test.suite.name")
"""The attributes of the semantic conventions that say of which test a run is: reports pass them on as they are."""

_UNKNOWN: Final = "unknown"


def case_of(trajectory: Trajectory, key: str | None = None) -> str | None:
    """Return the case of a run, by `CASE_KEYS` or by the attribute `key`; None where nothing names it."""
    for each in CASE_KEYS if key is None else (key,):
        value = trajectory.attributes.get(each)
        if isinstance(value, (str, int)) and str(value):
            return str(value)
    return None


def test_names(trajectory: Trajectory) -> dict[str, str]:
    """Return those of `TEST_KEYS` that the root span or the resource has."""
    named = {key: trajectory.attributes.get(key) for key in TEST_KEYS}
    return {key: value for key, value in named.items() if isinstance(value, str) and value}


class CaseNames:
    """Gives each run a name of its own: its case, else `service/agent` and which of them it is.

    Args:
        key: the attribute that names cases, in place of `CASE_KEYS`.
    """

    def __init__(self, key: str | None = None) -> None:
        self._key: Final = key
        self._bases: Final[list[str]] = []
        self._numbered: Final[set[str]] = set()

    def add(self, trajectory: Trajectory) -> None:
        """Take a run; the order counts."""
        case = case_of(trajectory, self._key)
        base = case or "/".join(filter(None, (trajectory.service, trajectory.agent))) or _UNKNOWN
        if case is None:
            self._numbered.add(base)
        self._bases.append(base)

    def names(self) -> list[str]:
        """Return the names in the order of the runs. A case that several runs share has their numbers behind it."""
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
