"""Runs the benchmarks and prints their table."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from bench.decoders import DECODERS, FAST
from bench.goals import GOALS, Cell, Row, Run, unavailable
from bench.table import HEADER, by_row, machine, markdown, update_readme, users_table

BENCHES: Final = (
    (("F1", "F2", "F3", "F4", "P5"), "servers"),
    (("F5",), "events"),
    (("F6",), "latency"),
    (("F7", "P14"), "starting"),
    (("F8",), "recordings"),
    (("F9",), "memory"),
    (("P6",), "in_process"),
    (("P10",), "evaluators"),
    (("P11",), "growth"),
    (("P12", "P13"), "added"),
    (("P15",), "expected_trajectories"),
    (("P16",), "hostile_expectations"),
)
"""The goals, and the module that measures them."""
BY_DECODER: Final = (
    "F1",
    "F2",
    "F3 HTTP",
    "F3 gRPC",
    "F4 HTTP",
    "F4 gRPC",
    "F6",
    "F9 load",
    "F9 recordings",
    "P5",
    "P11 traces",
    "P12",
    "P13",
)
"""Those that are measured with each decoder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; the status says only whether it could be measured, never whether a goal was reached."""
    parsed = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped
    wanted, run = parsed.only, Run(quick=parsed.quick, write=parsed.write)
    found: list[Row] = []
    cells: list[Cell] = []
    failed = False
    print(machine(), "", *HEADER, sep="\n", flush=True)
    for goals, name in BENCHES:
        if not wanted & set(goals):
            continue
        began = time.perf_counter()
        try:
            for row in rows(goals, name, run):
                if isinstance(row, Cell):
                    cells.append(row)
                    continue
                print(markdown(row), flush=True)
                found.append(row)
        except Exception as error:  # noqa: BLE001 - the other benchmarks are still worth running
            failed = True
            print(f"{', '.join(goals)} could not be measured: {type(error).__name__}: {error}", file=sys.stderr)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print("", *users_table(by_row(cells)), sep="\n")
    if parsed.write:
        update_readme(found, cells, run, whole=wanted == _goals(""))
    return 1 if failed else 0


def rows(goals: Sequence[str], name: str, run: Run) -> Iterator[Row | Cell]:
    """Measure, and say of which goals the compiled decoder's figure is missing."""
    yield from importlib.import_module(f"bench.{name}").rows(run)
    if FAST not in DECODERS:
        yield from (unavailable(goal, "pip install ./fast", FAST) for goal in BY_DECODER if goal.split()[0] in goals)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=_goals, default=_goals(""), metavar="F1,P5", help="only these goals")
    parser.add_argument("--quick", action="store_true", help="less load and fewer rounds: figures swing more")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    return parser


def _goals(text: str) -> set[str]:
    known = {number.split()[0] for number in GOALS}
    wanted = {part.strip().upper() for part in text.split(",") if part.strip()} or known
    if unknown := wanted - known:
        message = f"no such goal: {', '.join(sorted(unknown))}; there are {', '.join(known)}"
        raise argparse.ArgumentTypeError(message)
    return wanted


if __name__ == "__main__":
    sys.exit(main())
