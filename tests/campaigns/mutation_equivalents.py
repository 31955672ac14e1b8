"""Changes that no test can notice, because what the module does stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TUNED: Final = "how many outdated entries there are before they are removed is a matter of speed"
_REMEMBERED: Final = "how much is remembered is a matter of memory"
_FOUND_AGAIN: Final = "what is not remembered is found again"
_LOOKED_AT: Final = "how many are looked at is a matter of speed"
_SPENT: Final = "how much work a step stands for only shifts where too much begins"
_SHAPES: Final = "len(self._by_shape) >= _MOST_SHAPES"
_OFFERS: Final = "len(self._offers) >= _MOST_OFFERS"
_SHORT: Final = "sum(map(len, shape)) <= _LONGEST_SHAPE"
_COMBINATIONS: Final = "len(self._by_dialects) >= _MOST_COMBINATIONS"
_AROUND: Final = "self._models_beside and not self._outer.isdisjoint(self.calls)"
_AROUND_EITHER: Final = (
    "self._models_beside and (not self._outer.isdisjoint(self.calls)) ->"
    " self._models_beside or not self._outer.isdisjoint(self.calls)"
)
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
    "compare/alignment": {
        (
            "runs = list(islice(_runs([pair.status not in AS_EXPECTED for pair in aligned]), LIMIT + 1))",
            "1 -> 2",
        ): "one more than the limit shows that there are more",
    },
    "compare/bipartite": {
        ("return []", "return [] -> return None"): "no path is as false as an empty one",
    },
    "compare/matching": {
        ("_DEEP: Final = 32", "32 -> 33"): "keys may become flat at any depth",
        ("if value is True or value is False:", "False -> True"): "False then has another key, which only it has",
    },
    "compare/names": {
        (
            "_CACHED_LENGTH: Final = 256  # names may be a megabyte long; the cache must not keep thousands of those",
            "256 -> 257",
        ): _REMEMBERED,
        (
            "read = _cached_canonical if len(name) <= _CACHED_LENGTH else _canonical",
            "len(name) <= _CACHED_LENGTH -> len(name) < _CACHED_LENGTH",
        ): _REMEMBERED,
    },
    "compare/reference": {
        (
            "return _WRITER.encode(arguments)",
            "return _WRITER.encode(arguments) -> return None",
        ): "what is not written is compared by ==",
    },
    "compare/provenance": {
        ("_NEVER: Final = 1 << 62", "1 -> 2"): "any number behind all texts does",
        ("_WORK: Final = 1_000_000_000", "1000000000 -> 1000000001"): _LOOKED_AT,
    },
    "compare/rules/tool_rules": {
        (
            "rarest = counts.index(min(counts))",
            "min(counts) -> max(counts)",
        ): "where in a sequence the search begins is a matter of speed",
    },
    "compare/steps/_concurrency": {
        ("is_larger = False", "False -> True"): "before the first call no set is noted",
    },
    "compare/steps/_least_deviations": {
        ("self._work.spend(len(edges) + 1)", "1 -> 2"): _SPENT,
    },
    "compare/steps/graph": {
        ("pushed += 1", "pushed += 1 -> pushed -= 1"): "any order of equal costs does",
    },
    "evaluators/tool_call_accuracy": {
        ("too_many=0,", "0 -> 1"): "in mode flexible nothing is said of calls too many",
    },
    "trajectories/joined": {
        (
            "if len(ranks) < len(self.left) or len(ids) < len(calls) or None in ids or None in ranks:",
            "None in ranks -> None not in ranks",
        ): "requests with ids of their own are found by any way",
    },
    "trajectories/masks": {
        (
            'return _INPUT.fullmatch(".".join(path[-2:])) is not None',
            "2 -> 3",
        ): "the pattern takes any keys before the last two",
        ("_PATHS_KEPT: Final = 10_000", "10000 -> 10001"): _REMEMBERED,
        ("_TEXTS_KEPT: Final = 1_000", "1000 -> 1001"): _REMEMBERED,
    },
    "trajectories/model_calls": {
        ("_OPEN: Final = 16", "16 -> 17"): _LOOKED_AT,
    },
    "trajectories/reader": {
        ("self._offers[offered] = dialects", "without self._offers[offered] = dialects"): _FOUND_AGAIN,
        ("self._by_shape[shape] = known", "without self._by_shape[shape] = known"): _FOUND_AGAIN,
        ("_MOST_SHAPES: Final = 4_096", "4096 -> 4097"): _REMEMBERED,
        ("_MOST_OFFERS: Final = 1_024", "1024 -> 1025"): _REMEMBERED,
        ("_LONGEST_SHAPE: Final = 2_048", "2048 -> 2049"): _REMEMBERED,
        ("if len(self._by_shape) >= _MOST_SHAPES:", f"{_SHAPES} -> {_SHAPES.replace('>=', '>')}"): _REMEMBERED,
        ("if len(self._by_shape) >= _MOST_SHAPES:", f"{_SHAPES} -> {_SHAPES.replace('>=', '<')}"): _FOUND_AGAIN,
        ("if len(self._offers) >= _MOST_OFFERS:", f"{_OFFERS} -> {_OFFERS.replace('>=', '<')}"): _FOUND_AGAIN,
        ("if len(readings) <= 1:", "len(readings) <= 1 -> len(readings) < 1"): "one reading is joined to itself",
        (f"if {_SHORT}:", f"{_SHORT} -> {_SHORT.replace('<=', '<')}"): _REMEMBERED,
    },
    "trajectories/parts_of_runs": {
        (
            "latest_ns = max((self._tree.spans[index].start_ns for index in self._tree.models), default=-1)",
            "1 -> 2",
        ): "any time before all spans does",
    },
    "trajectories/readings": {
        ("self._models[index] = offered", "without self._models[index] = offered"): _FOUND_AGAIN,
    },
    "trajectories/same_calls": {
        ("MAX_SIDE_BY_SIDE: Final = 64", "64 -> 65"): _LOOKED_AT,
        ("return False", "return False -> return None"): "a condition that is None does not hold either",
    },
    "trajectories/tree": {
        ("_UNKNOWN: Final = -2", "2 -> 3"): "any number that is no position does",
        (f"if {_AROUND}:", _AROUND_EITHER): "where no call is around others, both ways find the same agents",
    },
    "trajectories/wanted": {
        ("_MAX_KEYS: Final = 4_096", "4096 -> 4097"): _REMEMBERED,
        ("_MOST_COMBINATIONS: Final = 1_024", "1024 -> 1025"): _REMEMBERED,
        (f"if {_COMBINATIONS}:", f"{_COMBINATIONS} -> {_COMBINATIONS.replace('>=', '>')}"): _REMEMBERED,
        (f"if {_COMBINATIONS}:", f"{_COMBINATIONS} -> {_COMBINATIONS.replace('>=', '<')}"): _FOUND_AGAIN,
    },
}
"""By module: the line and the change, and why it changes nothing."""
