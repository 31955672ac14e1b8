"""Changes that no test can notice, because what the module does stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TUNED: Final = "how many outdated entries there are before they are removed is a matter of speed"
_REBUILT: Final = "len(self._heap) > 2 * len(self.traces) + _FEW"

EQUIVALENT: Final[Mapping[str, Mapping[tuple[str, str], str]]] = {
    "collect/deadlines": {
        ("_FEW: Final = 64  # so many outdated entries are not worth the work", "64 -> 65"): _TUNED,
        (f"if {_REBUILT}:", f"{_REBUILT} -> {_REBUILT.replace('>', '>=')}"): _TUNED,
        (f"if {_REBUILT}:", "2 * len(self.traces) + _FEW -> 2 * len(self.traces) - _FEW"): _TUNED,
    },
    "collect/held_trace": {
        (
            "closed_at: float = -math.inf",
            "-math.inf -> math.inf",
        ): "it is read of closed traces only, which have another",
    },
    "compare/matching": {
        ("_DEEP: Final = 32", "32 -> 33"): "keys may become flat at any depth",
        ("if value is True or value is False:", "False -> True"): "False then has another key, which only it has",
    },
    "compare/names": {
        (
            "_CACHED_LENGTH: Final = 256  # names may be a megabyte long; the cache must not keep thousands of those",
            "256 -> 257",
        ): "how much is remembered is a matter of memory",
    },
    "compare/provenance": {
        ("_NEVER: Final = 1 << 62", "1 -> 2"): "any number behind all texts does",
    },
    "compare/rules/tool_rules": {
        (
            "rarest = counts.index(min(counts))",
            "min(counts) -> max(counts)",
        ): "where in a sequence the search begins is a matter of speed",
    },
    "evaluators/tool_call_accuracy": {
        ("too_many=0,", "0 -> 1"): "in mode flexible nothing is said of calls too many",
    },
    "trajectories/reader": {
        (
            "self._offers[offered] = dialects",
            "without self._offers[offered] = dialects",
        ): "what is not remembered is found again",
    },
    "trajectories/tree": {
        ("_UNKNOWN: Final = -2", "2 -> 3"): "any number that is no position does",
    },
}
"""By module: the line and the change, and why it changes nothing."""
