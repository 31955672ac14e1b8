"""What `spanscore learn` learns from good runs, beside the models that pm4py discovers from the same.

python -m bench.learned                            # all agents, three seeds
python -m bench.learned refund-agent --seeds 1

The agents and faults are those of tests/campaigns/learned_agents. 30 good runs are learned from; 100 other good runs,
20 with each fault, and 100 good ones changed at random are judged. spanscore judges recordings by what it has learned,
and refuses a run by its verdict. pm4py (the inductive miner, without noise and with a threshold of 0.2) is given the
names of the tools in their order, "failed" behind those of calls that failed, and refuses a run whose optimal alignment
is not perfect. It sees no arguments: faults in them are shown apart.

- fitness: the share of other good runs that are accepted; behind it, for spanscore the mean value of all evaluators,
  for pm4py the mean fitness of the alignments.
- precision: of good runs changed at random in one place (a call gone, made again, exchanged with the next one, replaced
  by one of another tool of the agent, or such a call added) that are no runs of the agent any more, the share that is
  refused. It is the same definition, on the same runs, for both; ETC is pm4py's own, of escaping edges.
- each fault: the share of runs with it that are refused.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from bench import peers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from campaigns import learn  # type: ignore[import-not-found]

PEER: Final = "pm4py"
OURS: Final = "spanscore"
CHANGED: Final = "changed"
IN_ARGUMENTS: Final = ("type", "range", "new value")
"""The faults that the names of tools cannot show."""

_WORKER: Final = Path(__file__).parent / "peers" / "workers" / "with_pm4py.py"
_TRIES: Final = 50


class Verdict(NamedTuple):
    """What was said of a run."""

    agent: str
    kind: str
    is_accepted: bool
    value: float


class Side(NamedTuple):
    """All that one of them has said."""

    name: str
    verdicts: list[Verdict]
    etc: dict[str, float]
    """Precision by escaping edges, by agent; empty where it is not known."""

    def share(self, agents: Sequence[str], kinds: Sequence[str], *, accepted: bool) -> str:
        """Return how many of the runs of these kinds were accepted, or refused, in per cent."""
        found = [each.is_accepted is accepted for each in self._of(agents, kinds)]
        return f"{100 * fmean(found):.1f}" if found else "-"

    def value(self, agents: Sequence[str]) -> str:
        """Return the mean value of good runs."""
        return f"{fmean(each.value for each in self._of(agents, [learn.GOOD])):.3f}"

    def escaping(self, agents: Sequence[str]) -> str:
        """Return pm4py's own precision, the mean of these agents."""
        return f"{fmean(self.etc[agent] for agent in agents):.3f}" if self.etc else "-"

    def _of(self, agents: Sequence[str], kinds: Sequence[str]) -> Iterator[Verdict]:
        return (each for each in self.verdicts if each.agent in agents and each.kind in kinds)


def trial(agent: Any, seed: int, sizes: Any) -> Any:
    """Return the trial of the campaign with runs that were changed at random beside the others."""
    made = learn.trial(agent, seed, sizes)
    chance = random.Random(f"{agent.name} {seed} {CHANGED}")  # noqa: S311 - nothing secret
    changed = [case for case in (_refused(agent, chance) for _ in range(sizes.good)) if case is not None]
    return made._replace(cases=[*made.cases, *changed])


def _refused(agent: Any, chance: random.Random) -> Any:
    """Return a changed run that is none of the agent's; None where one is hard to find."""
    for _ in range(_TRIES):
        run = _changed(agent, agent.draw(chance), chance)
        if run.turns and not agent.accepts(run):
            return learn.Case(CHANGED, "changed at random", run)
    return None


def _changed(agent: Any, run: Any, chance: random.Random) -> Any:
    turns = [(call,) for call in run.calls]
    at = chance.randrange(len(turns))
    (call,) = turns[at]
    own = [tool.name for tool in agent.tools.values() if (tool.agent or agent.name) == call.agent]
    other = agent.call(chance.choice(own), chance, {"tools": ()})
    match chance.choice(("gone", "again", "exchanged", "replaced", "added")):
        case "gone":
            del turns[at]
        case "again":
            turns.insert(at, (call,))
        case "exchanged":
            turns[at : at + 2] = reversed(turns[at : at + 2])
        case "replaced":
            turns[at] = (other,)
        case _:
            turns.insert(at, (other,))
    return type(run)(tuple(turns))


def ours(trials: Sequence[Any], directory: Path) -> Side:
    """Learn and judge by the command.

    Raises:
        learn.UnusableError: it failed.
    """
    verdicts = [
        Verdict(each.agent, each.case.kind, each.said.verdict == "pass", fmean(each.said.values or (0.0,)))
        for trial in trials
        for each in learn.judged(trial, directory)
    ]
    return Side(OURS, verdicts, {})


def theirs(trials: Sequence[Any], directory: Path, python: Path) -> list[Side]:
    """Discover and judge by pm4py, once for each threshold of noise."""
    logs = {
        f"{trial.agent.name} {trial.seed}": {
            "learned": list(map(_names, trial.learned)),
            "judged": [_names(case.run) for case in trial.cases],
            "good": [_names(case.run) for case in trial.cases if case.kind == learn.GOOD],
        }
        for trial in trials
    }
    given, answers = directory / "logs.json", directory / "answers.json"
    given.write_text(json.dumps(logs), encoding="utf-8")
    subprocess.run([python, _WORKER, given, answers], check=True, capture_output=True)
    told = json.loads(answers.read_text(encoding="utf-8"))
    return [_side(f"{PEER}, noise {noise}", trials, answered) for noise, answered in told.items()]


def _side(name: str, trials: Sequence[Any], answered: dict[str, Any]) -> Side:
    verdicts: list[Verdict] = []
    etc: dict[str, list[float]] = {}
    for trial in trials:
        agent = trial.agent.name
        answer = answered[f"{agent} {trial.seed}"]
        verdicts += [
            Verdict(agent, case.kind, fitness == 1, fitness)
            for case, fitness in zip(trial.cases, answer["fitness"], strict=True)
        ]
        etc.setdefault(agent, []).append(answer["precision"])
    return Side(name, verdicts, {agent: fmean(found) for agent, found in etc.items()})


def _names(run: Any) -> list[str]:
    return [call.tool if call.error is None else f"{call.tool} failed" for call in run.calls]


def models(sides: Sequence[Side], agents: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of fitness and precision: for each agent, of each side."""
    in_steps = [fault for fault in learn.FAULTS if fault not in IN_ARGUMENTS]
    yield ["agent", "by", "fitness %", "mean", "precision %", "ETC", "faults in steps %", "in arguments %"]
    for name, part in [*((agent, [agent]) for agent in agents), ("all", agents)]:
        for side in sides:
            yield [
                name,
                side.name,
                side.share(part, [learn.GOOD], accepted=True),
                side.value(part),
                side.share(part, [CHANGED], accepted=False),
                side.escaping(part),
                side.share(part, in_steps, accepted=False),
                side.share(part, IN_ARGUMENTS, accepted=False),
            ]


def faults(sides: Sequence[Side], agents: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of the faults: for each, the share that each side refused."""
    yield ["fault, % refused", *(side.name for side in sides)]
    for fault in learn.FAULTS:
        yield [fault, *(side.share(agents, [fault], accepted=False) for side in sides)]


def _print(rows: Iterator[list[str]]) -> None:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; the status is 1 when one of the two could not be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.learned", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="*", type=learn.agent_of, default=learn.AGENTS, metavar="AGENT")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    asked = parser.parse_args(arguments)
    trials = [trial(agent, seed, learn.Sizes()) for agent, seed in product(asked.agents, range(1, asked.seeds + 1))]
    sides: list[Side] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            sides.append(ours(trials, Path(directory)))
        except learn.UnusableError as error:
            missing.append(f"{OURS} could not be asked: {error}")
        if (python := peers.interpreter(PEER)) is None:
            missing.append(f"not available: {PEER} (python -m bench.peers {PEER})")
        else:
            sides += theirs(trials, Path(directory), python)
    print(f"{OURS} {version(OURS)}, {PEER} {peers.version(PEER)}, {len(asked.agents)} agents, {asked.seeds} seeds\n")
    names = [agent.name for agent in asked.agents]
    for rows in (models, faults) if sides else ():
        _print(rows(sides, names))
        print()
    print(*missing, sep="\n", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
