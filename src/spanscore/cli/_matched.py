"""Which trajectories an evaluator's `match` found, and what there was where it found none."""

from __future__ import annotations

from typing import Final

from spanscore.compare.globs import glob_matcher, value_matches
from spanscore.compare.names import listed
from spanscore.model import Trajectory
from spanscore.pipeline import EvaluatorEntry
from spanscore.wording.nearest import suggestion

_SEEN: Final = 100
_KEYS: Final = 1_000
_SHOWN: Final = 5


class Matched:
    """Notes the values of the attributes that an evaluator matches by, until one trajectory matched.

    Args:
        entry: the evaluator as configured.
    """

    def __init__(self, entry: EvaluatorEntry) -> None:
        self._entry: Final = entry
        self._globs: Final = {key: glob_matcher(glob) for key, glob in entry.match.items()}
        self._seen: Final = {key: dict[str, None]() for key in entry.match}
        self._found: Final = dict.fromkeys(entry.match, False)
        self._matching = 0
        self._keys: Final[dict[str, None]] = {}
        """The attributes that trajectories have."""

    def add(self, trajectory: Trajectory) -> None:
        """Look at one more trajectory."""
        if self._entry.matches is None or self._entry.matches(trajectory.attributes):
            self._matching += 1
            return
        if len(self._keys) < _KEYS:
            self._keys.update(dict.fromkeys(trajectory.attributes))
        for key, matches in self._globs.items():
            if (value := trajectory.attributes.get(key)) is not None:
                self._found[key] |= value_matches(matches, value)
                if len(self._seen[key]) < _SEEN:
                    self._seen[key][str(value)] = None

    def why_none(self) -> str:
        """Return why the evaluator was asked about no trajectory at all."""
        if self._matching:
            return f"matched {self._matching}, but sample_ratio {self._entry.sample_ratio:g} took none of them"
        if not self._entry.match:
            return "there was no run"
        key = next((key for key, found in self._found.items() if not found), None)
        if key is None:
            return f"matched no run: none has all of {', '.join(self._entry.match)} as wanted"
        glob = self._entry.match[key]
        if not (seen := self._seen[key]):
            return f"matched no run: match {key}: {glob}; no run has {key!r}{suggestion(key, self._keys)}"
        return f"matched no run: match {key}: {glob}; seen: {listed(seen, _SHOWN)}{suggestion(glob, seen)}"
