"""P10: each evaluator against the fastest peer that computes the same."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import peers, workload
from bench.goals import GOALS, Row, Run, judged

SIZES: Final = (10, 100, 1_000)

SAME: Final = "the calls expected"
OTHER: Final = "other calls too"

_WORKERS: Final = Path(__file__).parent / "peers" / "workers"
_PEERS: Final = ("pydantic-evals", "ragas", "google-adk", "uipath", "deepeval", "agentevals")
_TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "tool_call_count": (OTHER,),
    "tool_call_order": (OTHER,),
    "tool_call_args": (OTHER,),
    "tool_call_output": (OTHER,),
    "tool_call_accuracy": (SAME,),
    "tool_call_f1": (OTHER,),
    "tool_correctness": (SAME,),
    "tool_policy": (SAME,),
    "trajectory_match exact": (SAME, OTHER),
    "trajectory_match in_order": (SAME, OTHER),
    "trajectory_match any_order": (SAME, OTHER),
    "trajectory_match unordered": (SAME, OTHER),
    "trajectory_match subset": (SAME, OTHER),
    "trajectory_match superset": (SAME, OTHER),
    "trajectory_match in_order, F1 of names": (OTHER,),
    "trajectory_match any_order, F1 of names": (OTHER,),
    "tool_call_trajectory": (SAME,),
    "tool_arguments_schema": (SAME,),
}
_FAR: Final = 20
"""What takes that many times as long need not be measured again."""
_AGREE_TO: Final = 1e-4  # Ragas rounds


def rows(run: Run) -> Iterator[Row]:
    """Have each evaluator and its peers score the same calls in turn."""
    rounds = 3 if run.quick else 7
    with ExitStack() as stack:
        cases = stack.enter_context(written(cases_of(SIZES)))
        own = stack.enter_context(worker("spanscore", sys.executable, cases))
        others = {
            peer: stack.enter_context(worker(peer, str(python), cases))
            for peer in _PEERS
            if (python := peers.interpreter(peer)) is not None
        }
        names = {peer: f"{peer} {peers.version(peer)}" for peer in others}
        for task, kinds in _TASKS.items():
            rivals = {names[peer]: worker for peer, worker in others.items() if task in worker.tasks}
            for kind in kinds:
                yield _compared(task, kind, own, rivals, rounds)
    if missing := set(_PEERS) - others.keys():
        why = f"not available: {', '.join(sorted(missing))} (python -m bench.peers)"
        yield Row(goal="", what="evaluators, the other peers", figure="", verdict=why)


def cases_of(sizes: Sequence[int]) -> dict[str, Any]:
    """Return the calls made and those expected, by kind and size."""
    found = {}
    for size in sizes:
        made = _calls(size)
        found[f"{SAME} {size}"] = {"made": made, "expected": made}
        found[f"{OTHER} {size}"] = {"made": made, "expected": _other_calls(made)}
    return found


def _calls(count: int) -> list[dict[str, Any]]:
    """Return the tool calls of a trace of the load; none of them failed, and their results are text."""
    key = "gen_ai.tool.call.arguments"
    spans = [dict(span.attributes) for span in workload.spans(1, calls=count)]
    tools = [span for span in spans if key in span]
    return [
        {"name": span["gen_ai.tool.name"], "arguments": json.loads(str(span[key])), "result": f"refund {index}"}
        for index, span in enumerate(tools)
    ]


def _other_calls(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls that differ: every tenth is missing, some come too early, and some have other arguments."""
    expected = [_changed(index, call) for index, call in enumerate(made) if index % 10 != 9]  # noqa: PLR2004 - all but every tenth
    for index in range(0, len(expected) - 1, 7):
        expected[index], expected[index + 1] = expected[index + 1], expected[index]
    return expected


def _changed(index: int, call: dict[str, Any]) -> dict[str, Any]:
    if index % 5:
        return call
    return {**call, "arguments": {**call["arguments"], "reason": "other"}, "result": f"other {index}"}


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that evaluates with spanscore or with a peer."""

    process: subprocess.Popen[str]
    tasks: frozenset[str]

    def evaluate(self, task: str, case: str) -> tuple[float, float]:
        """Return the seconds of one evaluation, and its value."""
        assert self.process.stdin is not None  # noqa: S101 - for the type checker: it was asked for
        print(json.dumps([task, case]), file=self.process.stdin, flush=True)
        seconds, value = json.loads(_line(self.process))
        return seconds, value


@contextmanager
def worker(peer: str, python: str, cases: Path) -> Iterator[Worker]:
    """Start a worker in an environment."""
    script = _WORKERS / f"with_{peer.replace('-', '_')}.py"
    command = [python, str(script), str(cases)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield Worker(process, frozenset(json.loads(_line(process))))
        finally:
            process.terminate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None  # noqa: S101 - as above
    for line in process.stdout:
        if line.startswith("["):  # a peer may have something else to say
            return line
    message = f"{process.args!r} has ended"
    raise RuntimeError(message)


@contextmanager
def written(cases: Mapping[str, Any]) -> Iterator[Path]:
    """Give a file with the cases."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cases.json"
        path.write_text(json.dumps(cases), encoding="utf-8")
        yield path


def _compared(task: str, kind: str, own: Worker, rivals: Mapping[str, Worker], rounds: int) -> Row:
    left = dict(rivals)
    found = [_beside_fastest(task, f"{kind} {size}", own, left, rounds) for size in SIZES]
    what = f"`{task}`, {kind}"
    figure = f"{' / '.join(_duration(each.own_s) for each in found)} for {' / '.join(map(str, SIZES))} calls"
    if not rivals:
        return Row(goal="", what=f"{GOALS['P10'].what}: {what}", figure=figure, yardstick="no Python peer")
    peers_named = ", ".join(dict.fromkeys(each.peer for each in found))
    notes = dict.fromkeys(each.note for each in found if each.note)
    yardstick = "; ".join([f"{peers_named} {' / '.join(_duration(each.peer_s) for each in found)}", *notes])
    row = judged("P10", min(each.ratio for each in found), figure=figure, yardstick=yardstick, what=what)
    return replace(row, ratio=" / ".join(f"{each.ratio:.1f}x" for each in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What one evaluation of ours and one of the fastest peer took."""

    own_s: float
    peer: str = ""
    peer_s: float = 0.0
    ratio: float = 0.0
    note: str = ""


def _beside_fastest(task: str, case: str, own: Worker, rivals: dict[str, Worker], rounds: int) -> _Beside:
    """Measure, and take out the peers that are far from the fastest: with more calls they take minutes."""
    first = {name: worker.evaluate(task, case) for name, worker in rivals.items()}
    best = min(first, key=lambda name: first[name][0], default=None)
    if best is None:
        return _Beside(own_s=median(own.evaluate(task, case)[0] for _ in range(rounds)))
    for name, (seconds, _) in first.items():
        if seconds > _FAR * first[best][0]:
            del rivals[name]
    if first[best][0] > _FAR * own.evaluate(task, case)[0]:
        rounds = 1
    taken = [(own.evaluate(task, case), rivals[best].evaluate(task, case)) for _ in range(rounds)]
    value, theirs = taken[0][0][1], taken[0][1][1]
    return _Beside(
        own_s=median(own_s for (own_s, _), _ in taken),
        peer=best,
        peer_s=median(peer_s for _, (peer_s, _) in taken),
        ratio=median(peer_s / own_s for (own_s, _), (peer_s, _) in taken),
        note="" if abs(value - theirs) < _AGREE_TO else f"it scores {theirs:.4g}, we {value:.4g}",
    )


def _duration(seconds: float) -> str:
    if seconds < 1e-3:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.1f} ms"
