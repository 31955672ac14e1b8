"""How good what `spanscore learn` learns is: other good runs pass it, and runs with a fault do not.

    python tests/campaigns/learned.py [--seeds 3] [AGENT...]

Ten kinds of agents, ten kinds of faults: `spanscore learn` from 30 good runs, then `spanscore score` of 100 other good
ones and of 20 with each fault, through recordings. The exit status is 1 where fewer than 97 % of the good runs pass, or
fewer than 95 % of the runs with a kind of fault fail.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns.learned_agents import AGENTS, Call
from campaigns.learned_faults import FAULTS, facts

GOOD = "good"
TO_LEARN_FROM, OTHERS, OF_EACH_FAULT = 30, 100, 20
GOOD_PASS, FAULTS_FAIL = 0.97, 0.95
_MS = 1_000_000


class Judged(NamedTuple):
    """How many runs of each kind there were, and how many of them failed."""

    runs: Counter[str]
    failed: Counter[str]


def judge(agent: str, seed: int, directory: Path, others: int = OTHERS, of_each: int = OF_EACH_FAULT) -> Judged:
    """Learn from good runs of an agent, and score other ones."""
    chance = random.Random(f"{agent} {seed}")
    act, known = AGENTS[agent], facts(AGENTS[agent])
    good, scored, config = (directory / name for name in ("good.jsonl", "scored.jsonl", "learned.yaml"))
    _record(good, agent, [(GOOD, act(chance)) for _ in range(TO_LEARN_FROM)])
    runs = [(GOOD, act(chance)) for _ in range(others)]
    for name, put in FAULTS.items():
        faulty = (put(act(chance), known, chance) for _ in range(of_each))
        runs += [(name, run) for run in faulty if run is not None]
    _record(scored, agent, runs)
    _spanscore("learn", good, "-o", config)
    lines = _spanscore("score", scored, "--config", config, "--format", "json", "--allow-unscored").splitlines()
    reports = [json.loads(line) for line in lines]
    verdicts = [(report["attributes"]["kind"], report["verdict"]) for report in reports]
    assert Counter(kind for kind, _ in verdicts) == Counter(kind for kind, _ in runs), "every run is scored"
    return Judged(Counter(kind for kind, _ in verdicts), Counter(kind for kind, said in verdicts if said == "fail"))


def main() -> int:
    """Judge every agent, print how many runs failed, and return 1 where that is too many or too few."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=", ".join(AGENTS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'':10}{'good pass':>10}" + "".join(f"{name:>12}" for name in FAULTS))
    all_runs: Counter[str] = Counter()
    all_failed: Counter[str] = Counter()
    for agent in arguments.agents or AGENTS:
        runs, failed = Counter[str](), Counter[str]()
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as directory:
                found = judge(agent, seed, Path(directory))
            runs += found.runs
            failed += found.failed
        print(f"{agent:10}{_row(runs, failed)}", flush=True)
        all_runs += runs
        all_failed += failed
    print(f"{'all':10}{_row(all_runs, all_failed)}")
    return int(below(Judged(all_runs, all_failed)) != [])


def below(found: Judged) -> list[str]:
    """Return the kinds of runs that are judged wrongly too often."""
    wrong = [] if found.failed[GOOD] <= (1 - GOOD_PASS) * found.runs[GOOD] else [GOOD]
    return wrong + [name for name in FAULTS if found.failed[name] < FAULTS_FAIL * found.runs[name]]


def _row(runs: Counter[str], failed: Counter[str]) -> str:
    good = f"{100 * (1 - failed[GOOD] / runs[GOOD]):>9.1f}%"
    return good + "".join(
        f"{100 * failed[name] / runs[name]:>11.1f}%" if runs[name] else f"{'-':>12}" for name in FAULTS
    )


def _spanscore(*arguments: Any) -> str:
    command = [sys.executable, "-m", "spanscore", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.stderr or ended.returncode not in {0, 1}:
        message = f"{command} ended with {ended.returncode}: {ended.stderr}"
        raise RuntimeError(message)
    return ended.stdout


def _record(path: Path, agent: str, runs: Iterable[tuple[str, Sequence[Call]]]) -> None:
    """Write runs as spans by the GenAI conventions, as an OTLP/JSON Lines recording."""
    with path.open("w", encoding="utf-8") as file:
        for number, (kind, calls) in enumerate(runs, 1):
            file.write(
                json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(_spans(agent, kind, number, calls))}]}]})
            )
            file.write("\n")


def _spans(agent: str, kind: str, number: int, calls: Sequence[Call]) -> Iterable[dict[str, Any]]:
    trace = f"{number:032x}"
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, "kind": kind}
    yield _span(trace, 0, root, (len(calls) + 1) * 20 * _MS)
    for place, made in enumerate(calls, 1):
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": made["name"],
            "gen_ai.tool.call.id": f"call_{number}_{place}",
            "gen_ai.tool.call.arguments": json.dumps(made["arguments"]),
        }
        has_failed = "error" in made
        told |= {"error.type": made["error"]} if has_failed else {"gen_ai.tool.call.result": json.dumps(made["result"])}
        span = _span(trace, place, told, 15 * _MS)
        yield span | {"parentSpanId": f"{1:016x}"} | ({"status": {"code": 2}} if has_failed else {})


def _span(trace: str, place: int, told: dict[str, str], duration_ns: int) -> dict[str, Any]:
    start = 1_790_000_000_000 * _MS + int(trace, 16) * 60_000 * _MS + place * 20 * _MS
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + duration_ns)}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
    name = told["gen_ai.operation.name"]
    return {"traceId": trace, "spanId": f"{place + 1:016x}", "name": name, "attributes": pairs, **times}


if __name__ == "__main__":
    sys.exit(main())
