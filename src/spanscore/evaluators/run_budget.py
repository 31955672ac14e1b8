"""Whether a run kept within limits of calls, tokens, time and money."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge

from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import Deviation
from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.names import listed
from spanscore.contracts import Parameters
from spanscore.model import Lack, ModelCall, Outcome, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

Count: TypeAlias = Annotated[int, Ge(0)]
Amount: TypeAlias = Annotated[float, Ge(0)]

_LIMITS: Final = (
    "model_calls",
    "tool_calls",
    "steps",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "duration_s",
    "tool_duration_s",
    "cost",
)
_PER: Final = 1_000_000
_NOISE: Final = 1e-9
"""Sums of fractions are off by as much, relative to the limit: 0.1 + 0.2 is within 0.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a million tokens of a model, in any currency."""

    input: Amount
    """Of input tokens."""
    output: Amount
    """Of output tokens."""
    cache_read: Amount | None = None
    """Of input tokens that are read from the cache; without it, they cost as others do."""
    cache_write: Amount | None = None
    """Of input tokens that are written to the cache; without it, they cost as others do."""
    cache_creation: Amount | None = None
    """The older name of `cache_write`."""

    def __post_init__(self) -> None:
        if self.cache_write is not None and self.cache_creation is not None:
            raise ValueError("cache_write and cache_creation are two names of one price: give cache_write alone")


@dataclass(frozen=True, kw_only=True)  # without slots: the prices are kept in its __dict__
class RunBudget(Parameters):
    """Checks that a run kept within limits of calls, tokens, time and money.

    The value is 1 when the run is within all limits that are given, else 0. A limit itself is within. Failed calls
    count. The details hold every number that could be measured, limited or not, and null for the others. Skipped where
    the number for a limit was not recorded, in whole or for one of the calls, or the trace was truncated, unless a
    limit is exceeded by what was recorded alone.
    """

    expectation: ClassVar[str | None] = None
    needs_results: ClassVar[bool] = False
    needs_model_calls: ClassVar[bool] = True

    model_calls: Count | None = None
    """At most so many requests to models."""
    tool_calls: Count | None = None
    """At most so many tool calls."""
    steps: Count | None = None
    """At most so many requests to models and tool calls together."""
    input_tokens: Count | None = None
    """At most so many tokens are sent to models."""
    output_tokens: Count | None = None
    """At most so many tokens come from models."""
    total_tokens: Count | None = None
    """At most so many tokens in both directions."""
    duration_s: Amount | None = None
    """The evaluated span takes at most so many seconds."""
    tool_duration_s: Amount | None = None
    """Tool calls take at most so many seconds; those that run at the same time are added up."""
    cost: Amount | None = None
    """The tokens cost at most this, by `prices`."""
    prices: Mapping[str, Price] | None = None
    """The price of a million tokens by model, which may be a glob: `{"gpt-4o*": {input: 2.5, output: 10}}`. A model's
    own name goes before globs, of which the first that matches counts."""

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in _LIMITS):
            raise ValueError(f"at least one limit is needed: {', '.join(_LIMITS[:-1])} or {_LIMITS[-1]}")
        if self.cost is not None and self.prices is None:
            raise ValueError("prices: needed for cost, such as {'gpt-4o*': {input: 2.5, output: 10}}")

    @cached_property
    def _prices(self) -> tuple[tuple[Callable[[str], bool], Price], ...]:
        ordered = sorted((self.prices or {}).items(), key=lambda each: is_glob(each[0]))
        return tuple((glob_matcher(glob), price) for glob, price in ordered)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Compare what the run took with the limits."""
        measured = self._measured(trajectory)
        limits = {name: limit for name in _LIMITS if (limit := getattr(self, name)) is not None}
        exceeded = [name for name, limit in limits.items() if measured[name].least > limit * (1 + _NOISE)]
        if not exceeded:
            if lacking := next((found for name in limits if (found := measured[name]).missing), None):
                return Skipped(lacking.missing, lacking.lacks)
            if trajectory.completeness.truncated:
                return Skipped("the trace was cut off by a limit; the part not received may exceed the budget")
        value = float(not exceeded)

        def account() -> Account:
            kept = len(limits) - len(exceeded)
            told = [
                f"{name} is {_shown(measured[name].least)}, the limit is {_shown(limits[name])}" for name in exceeded
            ]
            explanation = f"{kept} of {len(limits)} limits were kept{': ' if told else ''}{'; '.join(told)}."
            details = {
                "measured": {name: None if found.missing else found.least for name, found in measured.items()},
                "limits": limits,
                "exceeded": exceeded,
            }
            return Account(explanation, details, told=[Deviation.of_limit(name) for name in exceeded])

        return scored(value, value >= self.threshold, account, mended_by=MendedBy.NOTHING)

    def _measured(self, trajectory: Trajectory) -> dict[str, _Measured]:
        requests, calls = trajectory.model_calls, trajectory.calls
        none = () if requests else _NO_REQUESTS[1:]
        sent = _tokens("input", [call.input_tokens for call in requests])
        said = _tokens("output", [call.output_tokens for call in requests])
        found = {
            "model_calls": _Measured(len(requests), *none),
            "tool_calls": _Measured(len(calls)),
            "steps": _Measured(len(requests) + len(calls), *none),
            "input_tokens": sent,
            "output_tokens": said,
            "total_tokens": _Measured(sent.least + said.least, *(sent if sent.missing else said)[1:]),
            "duration_s": _duration(trajectory),
            "tool_duration_s": _tool_duration(calls),
            "cost": self._cost(requests),
        }
        if not trajectory.completeness.resumed:
            return found
        known = {"tool_calls"}  # those before the pause are restored
        return {
            name: each if name in known else each._replace(missing=each.missing or _BEFORE)
            for name, each in found.items()
        }

    def _cost(self, requests: Sequence[ModelCall]) -> _Measured:
        if self.prices is None:
            return _Measured(0, "there are no prices")
        unnamed = sum(call.model is None for call in requests)
        prices = {model: self._price(model) for model in {call.model for call in requests} if model is not None}
        unknown = sorted(model for model, price in prices.items() if price is None)
        lacking = next(_lacking_cost(requests, unnamed, unknown), _Measured(0))[1:]
        priced = [(call, prices.get(call.model or "")) for call in requests]
        return _Measured(math.fsum(_cost_of(call, price) for call, price in priced if price is not None), *lacking)

    def _price(self, model: str) -> Price | None:
        return next((price for matches, price in self._prices if matches(model)), None)


_BEFORE: Final = "the run continues after a pause; what it took before is in another trace"


class _Measured(NamedTuple):
    least: float
    """The number, or what is recorded of it."""
    missing: str = ""
    """Why it may be more."""
    lacks: tuple[Lack, ...] = ()
    """The kinds of data whose lack is the reason."""


_NO_REQUESTS: Final = _Measured(0, "no model calls were recorded", ("model requests",))


def _tokens(side: str, found: Sequence[int | None]) -> _Measured:
    if not found:
        return _NO_REQUESTS
    least = sum(filter(None, found))
    if lacking := sum(tokens is None for tokens in found):
        missing = f"{side} tokens of {lacking} of {len(found)} model calls were not recorded"
        return _Measured(least, missing, ("tokens",))
    return _Measured(least)


def _duration(trajectory: Trajectory) -> _Measured:
    start_ns, end_ns = trajectory.start_ns, trajectory.end_ns
    if start_ns is None or end_ns is None or not trajectory.completeness.root_seen:
        return _Measured(0, "the duration of the run was not recorded", ("run duration",))
    return _Measured(max(0, end_ns - start_ns) / 1e9)


def _tool_duration(calls: Iterable[ToolCall]) -> _Measured:
    calls = list(calls)
    least = math.fsum(max(0, call.end_ns - call.start_ns) / 1e9 for call in calls if call.end_ns)
    untimed = [call for call in calls if call.end_ns == 0 or (call.span_id is None and call.end_ns == call.start_ns)]
    if untimed:
        names = listed(dict.fromkeys(call.name for call in untimed))
        missing = f"the durations of {len(untimed)} of {len(calls)} calls were not recorded: {names}"
        return _Measured(least, missing, ("durations",))
    return _Measured(least)


def _lacking_cost(requests: Sequence[ModelCall], unnamed: int, unknown: Sequence[str]) -> Iterator[_Measured]:
    if not requests:
        yield _NO_REQUESTS
    if unnamed:
        missing = f"the models of {unnamed} of {len(requests)} model calls were not recorded"
        yield _Measured(0, missing, ("model names",))
    if unknown:
        yield _Measured(0, f"there is no price for {listed(unknown)}")
    tokens = (
        _tokens("input", [call.input_tokens for call in requests]),
        _tokens("output", [call.output_tokens for call in requests]),
    )
    yield from (each for each in tokens if each.missing)


def _cost_of(call: ModelCall, price: Price) -> float:
    """Return the cost of a request. Input tokens include those of the cache, unless there are more of those."""
    sent, read, written = call.input_tokens or 0, call.cache_read_tokens or 0, call.cache_creation_tokens or 0
    plain = sent - read - written if read + written <= sent else sent
    writing = price.cache_creation if price.cache_write is None else price.cache_write
    rates = (
        (plain, price.input),
        (read, price.input if price.cache_read is None else price.cache_read),
        (written, price.input if writing is None else writing),
        (call.output_tokens or 0, price.output),
    )
    return math.fsum(tokens * rate / _PER for tokens, rate in rates)


def _shown(number: float) -> str:
    return f"{number:.12g}"
