"""The names that an evaluator did not find: runs, by its `match`, and tools, by the names in its rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, Protocol, runtime_checkable

from spanscore.compare.differences import json_text
from spanscore.compare.globs import glob_matcher, is_glob, value_matches
from spanscore.compare.names import Normalise, exact, listed, normaliser, short
from spanscore.config import ByCase
from spanscore.contracts import Parameters
from spanscore.contracts.plugins import is_built_in
from spanscore.messages.nearest import mistyped, suggestion
from spanscore.model import Trajectory
from spanscore.scoring.evaluator_entry import EvaluatorEntry

_SEEN: Final = 100
_KEYS: Final = 1_000
_SHOWN: Final = 5
_CALLED_KEPT: Final = 10_000
_CALLED_COMPARED: Final = 1_000


@runtime_checkable
class _NamesTools(Protocol):
    def named_tools(self) -> Iterable[str]: ...


class Sought:
    """Notes, until one trajectory matched, the values that an evaluator matches by, and which tools were called."""

    def __init__(self, entry: EvaluatorEntry) -> None:
        self._entry: Final = entry
        self.is_of_runs: Final = entry.over == "run"
        """Whether the evaluator evaluates runs, and not conversations."""
        self.noun: Final = "run" if self.is_of_runs else "conversation"
        """The unit that the evaluator evaluates, in words."""
        self._globs: Final = {key: glob_matcher(glob) for key, glob in entry.match.items()}
        self._seen: Final = {key: dict[str, None]() for key in entry.match}
        self._found: Final = dict.fromkeys(entry.match, False)
        self._matching = 0
        self._keys: Final[dict[str, None]] = {}
        """The attributes that trajectories have."""
        self._called: Final[set[str]] = set()

    def add(self, trajectory: Trajectory) -> None:
        """Take one more trajectory into account, whether or not the evaluator applies to it."""
        if self._entry.matches is None or self._entry.matches(trajectory.attributes):
            self._matching += 1
            return
        if len(self._keys) < _KEYS:
            self._keys.update(dict.fromkeys(trajectory.attributes))
        for key, matches in self._globs.items():
            if (value := trajectory.attributes.get(key)) is not None:
                self._found[key] |= value_matches(matches, value)
                if len(self._seen[key]) < _SEEN:
                    self._seen[key][value if isinstance(value, str) else json_text(value)] = None

    def add_evaluated(self, trajectory: Trajectory) -> None:
        """Look at one more trajectory that the evaluator was asked about."""
        if len(self._called) < _CALLED_KEPT:
            self._called.update(trajectory.names)

    def why_none(self) -> str:
        """Return why the evaluator was asked about no trajectory at all."""
        if self._matching:
            return f"matched {self._matching}, but sample_ratio {self._entry.sample_ratio:g} took none of them"
        if not self._entry.match:
            return "there was no run" if self.is_of_runs else "no run has an attribute of conversations.key"
        key = next((key for key, found in self._found.items() if not found), None)
        if key is None:
            return f"matched no run: none has all of {', '.join(self._entry.match)} as wanted"
        glob = self._entry.match[key]
        if not (seen := self._seen[key]):
            return f"matched no run: match {key}: {glob}; no run has {key!r}{suggestion(key, self._keys)}"
        meant = suggestion(glob, seen) if len(seen) > 1 else ""
        return f"matched no run: match {key}: {glob}; seen: {listed(seen, _SHOWN)}{meant}"

    def mistyped(self) -> Iterator[str]:
        """Yield a line for each tool that is named and was never called, with the one that was probably meant."""
        told = set()
        for tools, normalise, intended in self._named():
            called = {normalise(name): name for name in sorted(self._called)}
            others = [name for name in called if name not in intended][:_CALLED_COMPARED]
            for tool in tools:
                wanted = tool if is_glob(tool) else normalise(tool)
                if tool in told or any(map(glob_matcher(wanted), called)):
                    continue
                told.add(tool)
                if (near := mistyped(wanted, others)) is not None:
                    yield f"{self._entry.name}: no run called {short(tool)!r}; nearest: {short(called[near])!r}"

    def _named(self) -> Iterator[tuple[Iterable[str], Normalise, Collection[str]]]:
        """Yield names of tools, how they are compared with called ones, and the names that they rightly resemble."""
        yield self._entry.ignore_tools, exact, ()
        for evaluator in self._evaluators():
            if not isinstance(evaluator, Parameters):
                continue
            if isinstance(evaluator, _NamesTools):
                yield evaluator.named_tools(), normaliser(evaluator), ()
            plain = normaliser(Parameters(tool_names=evaluator.tool_names, namespaces=evaluator.namespaces))
            yield evaluator.aliases, plain, {*map(plain, evaluator.aliases), *map(plain, evaluator.aliases.values())}

    def _evaluators(self) -> Iterable[object]:
        if not is_built_in("evaluators", self._entry.type):
            return ()  # a plug-in's attribute of this name may be anything
        resolve = self._entry.resolve
        return resolve.evaluators() if isinstance(resolve, ByCase) else (resolve(Trajectory(calls=())),)
