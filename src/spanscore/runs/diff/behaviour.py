"""The behaviour of two versions: tools, their order, the form of their arguments, failures and time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from statistics import median
from typing import Any, Final, NamedTuple, TypeAlias

from scipy import stats

from spanscore.compare.differences import type_name
from spanscore.messages.plural import plural
from spanscore.model import JSON, NOT_RECORDED, Report, Trajectory, tokens_of
from spanscore.reports.reasons import reasons
from spanscore.trajectories.masked import has_mark

_EXAMPLES: Final = 3
_CHANCE: Final = 0.01
"""The probability of chance below which a changed share of runs is reported; new behaviour is always reported."""
_CHANCE_OF_NONE: Final = 0.1
_MUCH: Final = 1.2
"""The least factor by which a changed duration or number of tokens is reported, if the change is no chance."""
_FEW: Final = 5
_SHORT: Final = {"duration": 1.0, "run duration": 0.1}
"""Durations below so many milliseconds, or seconds, are noise of the machine."""
_DEEPEST: Final = 4
_BEGIN: Final = "(start)"
_END: Final = "(end)"

Share: TypeAlias = tuple[int, int]
"""In how many runs, of how many."""


class Change(NamedTuple):
    """Something that the new version does otherwise."""

    what: str
    """The change in words; `tools` has the names of tools."""
    tools: tuple[str, ...]
    base: str
    """The value in the base version, as text."""
    new: str
    examples: tuple[str, ...]
    """Trace ids of runs of the new version that do so; if fewer do than before, of runs that do not."""


@dataclass
class _VersionBehaviour:
    """The behaviour of the runs of one version."""

    traces: list[str] = field(default_factory=list)
    having: dict[Hashable, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The trace ids of runs, by behaviour."""
    numbers: dict[Hashable, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The values of runs, by measure."""

    _calling: dict[str, frozenset[str]] = field(default_factory=dict)
    """The traces of runs that call a tool, or all traces for its start and end."""

    def calling(self, tools: Iterable[str]) -> frozenset[str]:
        """Return the traces of the runs that call all of some tools: there may be very many pairs of tools."""
        return frozenset.intersection(*map(self._of, tools or (_BEGIN,)))

    @cached_property
    def _times(self) -> Counter[str]:
        return Counter(self.traces)

    def count(self, traces: frozenset[str]) -> int:
        """Return the number of runs in some of the traces."""
        times = self._times
        return len(traces) if len(times) == len(self.traces) else sum(times[trace] for trace in traces)

    def _of(self, tool: str) -> frozenset[str]:
        if tool not in self._calling:
            traces = self.traces if tool in {_BEGIN, _END} else self.having.get(("tool", tool), ())
            self._calling[tool] = frozenset(traces)
        return self._calling[tool]


def changes(base: Iterable[Report], new: Iterable[Report]) -> list[Change]:
    """Return the changes, the most important first.

    Reasons of failures, tools, failed calls, order, arguments, calls a run, time, tokens.
    """
    before, after = _side(base), _side(new)
    if not before.traces or not after.traces:
        return []
    kinds: Mapping[str, Callable[[Any], tuple[str, tuple[str, ...]]]] = {
        "reason": lambda what: (f"reason {what}", ()),
        "tool": lambda what: ("called", (what,)),
        "failed": lambda what: ("fails", (what,)),
        "order": lambda what: ("one right after the other", what),
        "shape": lambda what: (f"argument {what[1]}", (what[0],)),
    }
    found = [change for kind, words in kinds.items() for change in _shares(kind, words, before, after)]
    measures = {
        "calls": ("calls a run", "{:.3g}"),
        "all calls": ("calls a run, of all tools", "{:.3g}"),
        "duration": ("duration of a call", "{:.3g} ms"),
        "run duration": ("duration of a run", "{:.3g} s"),
        "tokens": ("tokens of the requests that asked for it", "{:.0f}"),
        "run tokens": ("tokens of a run", "{:.0f}"),
    }
    return [*found, *(change for kind, how in measures.items() for change in _measures(kind, *how, before, after))]


def _side(reports: Iterable[Report]) -> _VersionBehaviour:
    side = _VersionBehaviour()
    for report in reports:
        run = report.trajectory
        trace = run.trace_id.hex()
        side.traces.append(trace)
        for reason in reasons(report):
            side.having["reason", reason.text].append(trace)
        for what in dict.fromkeys(_done(run)):
            side.having[what].append(trace)
        for measured, number in _measured(run):
            side.numbers[measured].append(number)
    return side


def _done(run: Trajectory) -> Iterator[Hashable]:
    names = [_BEGIN, *run.names, _END]
    for call in run.calls:
        yield "tool", call.name
        if call.error is not None:
            yield "failed", call.name
        if call.arguments is not NOT_RECORDED:
            for path, kind in _shape(call.arguments, "", 0):
                yield "shape", (call.name, f"{path}: {kind}" if path else kind)
    for pair in pairwise(names):
        yield "order", pair


def _measured(run: Trajectory) -> Iterator[tuple[Hashable, float]]:
    counts: dict[str, int] = defaultdict(int)
    for call in run.calls:
        counts[call.name] += 1
        if call.was_timed:
            yield ("duration", call.name), call.duration_ms
        if call.turn is not None and (spent := run.model_calls[call.turn].tokens) is not None:
            yield ("tokens", call.name), spent
    for name, count in counts.items():
        yield ("calls", name), count
    yield ("all calls", ""), len(run.calls)
    if run.start_ns is not None and run.end_ns is not None:
        yield ("run duration", ""), (run.end_ns - run.start_ns) / 1e9
    if (spent := tokens_of(run.model_calls)) is not None:
        yield ("run tokens", ""), spent


def _shape(value: JSON, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the paths of arguments with the type of the value; items of an array share one path."""
    if has_mark(value):
        yield path, "masked"
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, each in value.items():
            yield from _shape(each, f"{path}.{key}" if path else key, depth + 1)
        if not value and path:
            yield path, "object"
    elif isinstance(value, list) and value and depth < _DEEPEST:
        for each in value:
            yield from _shape(each, f"{path}[]", depth + 1)
    else:
        yield path, type_name(value) or "object"


def _shares(
    kind: str, words: Callable[[Any], tuple[str, tuple[str, ...]]], before: _VersionBehaviour, after: _VersionBehaviour
) -> Iterator[Change]:
    """Yield behaviours whose share of runs changed, the largest change first."""
    found: list[tuple[float, Change]] = []
    keys = [key for key in dict.fromkeys([*after.having, *before.having]) if isinstance(key, tuple) and key[0] == kind]
    for key in keys:
        what, tools = words(key[1])
        # Beside a tool itself: of the runs that call it, so that a tool that is called less often is told once.
        calling = [side.calling(() if kind == "tool" else tools) for side in (before, after)]
        was, is_now = (side.having.get(key, []) for side in (before, after))
        if not all(calling):
            continue  # that the tool is new or gone says it
        runs = before.count(calling[0]), after.count(calling[1])
        chance = _chance(len(was), runs[0] - len(was), len(is_now), runs[1] - len(is_now))
        is_new = not was and kind != "order"
        if not is_new and chance > (_CHANCE_OF_NONE if not is_now else _CHANCE):
            continue
        what = f"{'new: ' if not was else 'gone: ' if not is_now else ''}{what}"
        grown = len(is_now) / runs[1] - len(was) / runs[0]
        others = calling[1].difference(is_now)
        examples = is_now if grown > 0 else (trace for trace in after.traces if trace in others)
        shares = (_of(len(was), runs[0]), _of(len(is_now), runs[1]))
        found.append((abs(grown), Change(what, tools, *shares, tuple(islice(examples, _EXAMPLES)))))
    yield from (change for _, change in sorted(found, key=lambda each: -each[0]))


@lru_cache(maxsize=4_096)
def _chance(was: int, was_not: int, is_now: int, is_not: int) -> float:
    """Return the probability that the shares of both versions differ so by chance, by Fisher's exact test."""
    return float(stats.fisher_exact([[was, was_not], [is_now, is_not]]).pvalue)


def _measures(kind: str, what: str, how: str, before: _VersionBehaviour, after: _VersionBehaviour) -> Iterator[Change]:
    """Yield the numbers whose median changed, if that is no chance."""
    for key, was in before.numbers.items():
        is_now = after.numbers.get(key, [])
        if not isinstance(key, tuple) or key[0] != kind or min(len(was), len(is_now)) < _FEW:
            continue
        old, new = median(was), median(is_now)
        if kind in {"calls", "all calls"}:
            old, new = sum(was) / len(was), sum(is_now) / len(is_now)
        if (
            not _is_much(old, new)
            or max(old, new) < _SHORT.get(kind, 0)
            or float(stats.mannwhitneyu(was, is_now).pvalue) > _CHANCE
        ):
            continue
        yield Change(what, (key[1],) if key[1] else (), how.format(old), how.format(new), ())


def _is_much(old: float, new: float) -> bool:
    low, high = sorted((old, new))
    return high > 0 and high >= _MUCH * low


def _of(runs: int, all_runs: int) -> str:
    return f"{runs} of {plural(all_runs, 'run')}"
