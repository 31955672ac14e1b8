"""P11: what more calls in a trace, and more open traces, cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import scoring, workload
from bench.decoders import DECODERS, PLAIN
from bench.evaluators import OTHER, SAME, cases_of, worker, written
from bench.goals import Row, Run, judged
from bench.measure import collect_rarely, interleaved
from bench.memory import with_open_traces

PLOT: Final = Path(__file__).with_name("growth.png")

_CALLS: Final = (10, 100, 1_000, 10_000)
_OPEN_TRACES: Final = (1_000, 10_000, 50_000)
_LCS: Final = {"tool_call_order": OTHER, "trajectory_match in_order": OTHER}
_LINEAR: Final = {
    "tool_call_count": OTHER,
    "tool_call_args": OTHER,
    "tool_call_output": OTHER,
    "tool_call_accuracy": OTHER,
    "tool_call_f1": OTHER,
    "tool_correctness": SAME,
    "tool_policy": SAME,
    "tool_call_trajectory": SAME,
    "tool_arguments_schema": SAME,
    "trajectory_match exact": OTHER,
    "trajectory_match any_order": OTHER,
}
_SETTINGS: Final = "traces: {decision_delay: 0s, span_limit: 100000, max_trace_bytes: 1GiB}\n"


def rows(run: Run) -> Iterator[Row]:
    """Measure the evaluators, the whole way of a trace, and a table with many open traces."""
    sizes = _CALLS[:-1] if run.quick else _CALLS
    yield from _evaluators(sizes, rounds=2 if run.quick else 3)
    by_calls = _whole_traces(sizes, rounds=2 if run.quick else 3)
    worst, of = max(
        (cost / less, f"{fewer:,} to {calls:,} calls") for (fewer, less), (calls, cost) in pairwise(by_calls)
    )
    yield Row(
        goal="",
        what="growth: cost of 10 times the calls, from the request's bytes to four scores",
        figure=", ".join(f"{calls:,} calls {_duration(cost)}" for calls, cost in by_calls),
        yardstick=of,
        ratio=f"{worst:.1f}x",
    )
    counts = _OPEN_TRACES[:-1] if run.quick else _OPEN_TRACES
    by_open = {decoder: _by_open_traces(counts, 1 if run.quick else 3, decoder) for decoder in DECODERS}
    for decoder, found in by_open.items():
        yield from _open_traces(found, decoder)
    if run.write:
        from bench.growth_plot import plot  # noqa: PLC0415 - matplotlib is needed only here

        plot(by_open[PLAIN], by_calls, PLOT)


def _evaluators(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    with ExitStack() as stack:
        cases = stack.enter_context(written(cases_of(sizes)))
        own = stack.enter_context(worker("spanscore", sys.executable, cases))
        for goal, tasks in (("P11", _LINEAR), ("P11 LCS", _LCS)):
            worst: tuple[float, str] = (0.0, "")
            for task, kind in tasks.items():
                samples = [[own.evaluate(task, f"{kind} {size}")[0] for size in sizes] for _ in range(rounds)]
                typical = [median(times) for times in zip(*samples, strict=True)]
                for (fewer, less), (more, cost) in pairwise(zip(sizes, typical, strict=True)):
                    about = f"`{task}`, {fewer:,} calls {_duration(less)}, {more:,} calls {_duration(cost)}"
                    worst = max(worst, (cost / less, about))
            yield judged(goal, worst[0], figure=worst[1], yardstick=f"the worst of {len(tasks)}")


def _whole_traces(sizes: Sequence[int], rounds: int) -> list[tuple[int, float]]:
    """Return the CPU seconds of a trace by its number of calls: decoded, grouped and scored."""
    collect_rarely()
    config = scoring.loaded(_SETTINGS + scoring.FOUR_EVALUATORS)
    pipeline, keys = scoring.receiving(config)
    found = []
    for calls in sizes:
        traces = max(1, 10_000 // calls)
        bodies = workload.requests(traces, calls=calls)

        def scored(bodies: Sequence[bytes] = bodies) -> None:
            engine = scoring.engine(config, pipeline, time.monotonic)
            for body in bodies:
                request = scoring.decoded(body, keys)
                engine.add(request.spans, request.sizes)

        found.append((calls, median(interleaved({"": scored}, rounds)[""]) / traces))
    return found


def _by_open_traces(counts: Sequence[int], rounds: int, decoder: str) -> dict[int, dict[str, Any]]:
    found = [{count: with_open_traces(count, decoder) for count in counts} for _ in range(rounds)]
    return {count: {key: median(each[count][key] for each in found) for key in found[0][count]} for count in counts}


def _open_traces(by_open: Mapping[int, Mapping[str, Any]], decoder: str) -> Iterator[Row]:
    for (fewer, less), (more, cost) in pairwise(by_open.items()):
        yield judged(
            "P11 traces",
            cost["µs a span"] / less["µs a span"],
            figure=f"{cost['µs a span']:.2f} µs, {cost['bytes a span']:.0f} B, p99 {cost['p99 ms']:.1f} ms",
            yardstick=f"{less['µs a span']:.2f} µs, {less['bytes a span']:.0f} B, p99 {less['p99 ms']:.1f} ms",
            what=f"{fewer:,} to {more:,}: {decoder}",
        )


def _duration(seconds: float) -> str:
    if seconds < 1e-3:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.1f} ms"
