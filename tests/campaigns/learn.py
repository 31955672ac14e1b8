"""Judges `spanscore learn`: what it learns from good runs passes other good runs, and fails those with one fault.

    python tests/campaigns/learn.py                            all agents, three seeds
    python tests/campaigns/learn.py refund-agent --seeds 10    one of them
    python tests/campaigns/learn.py --show 5 --keep DIRECTORY  say which runs were judged wrongly, and keep all files

For each agent of learned_agents/agents.py and each seed, 30 good runs are learned from. 100 other good runs, and 20
with each of ten faults where the agent can have it, are scored with what was learned; a run passes or fails by the
verdict in the JSON, and one without a verdict does neither. Printed is the share of good runs that pass and of faulty
ones that fail, by agent and fault; `*` marks what is below the bar, and `-` what an agent cannot have.

The bar: of the good runs of each agent 97 % pass; of those with a fault, of each agent and of each kind, 95 % fail. The
exit status is 1 below it, and 2 where a command ends otherwise than it should. With `--each` every single cell counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.learned_agents.agents import AGENTS
from campaigns.learned_agents.faults import FAULTS, faulty
from campaigns.learned_agents.recording import write
from campaigns.learned_agents.runs import Agent, Run

GOOD: Final = "good"
PASS_AT_LEAST: Final = 0.97
FAIL_AT_LEAST: Final = 0.95

_SPANSCORE: Final = (sys.executable, "-m", "spanscore")
_NAMES: Final = [agent.name for agent in AGENTS]


Learn = Callable[[Path, Path], None]
"""Learns from a recording, and writes a configuration."""


class Said(NamedTuple):
    """What the scores say of a trace."""

    verdict: str
    values: tuple[float, ...]
    """Of the evaluators that gave one."""
    why: str
    """What the evaluators said that it did not pass."""


class UnusableError(Exception):
    """A command did something else than learn or score."""


class Sizes(NamedTuple):
    """How many runs there are."""

    learned: int = 30
    good: int = 100
    faulty: int = 20
    """Of each kind of fault."""


class Case(NamedTuple):
    """A run that is judged."""

    kind: str
    """`good`, or the fault."""
    what: str
    """What was done to it."""
    run: Run


class Trial(NamedTuple):
    """What is learned from, and what is judged by it."""

    agent: Agent
    seed: int
    learned: list[Run]
    cases: list[Case]


class Judged(NamedTuple):
    """What was said of a run."""

    agent: str
    seed: int
    case: Case
    said: Said
    trace_id: str

    @property
    def is_right(self) -> bool:
        """Whether a good run passed, or another failed."""
        return self.said.verdict == ("pass" if self.case.kind == GOOD else "fail")


def trial(agent: Agent, seed: int, sizes: Sizes) -> Trial:
    """Return good runs to learn from, and those to judge; how many there are of one kind changes no other."""
    chance = random.Random(f"{agent.name} {seed} learned")
    learned = [agent.draw(chance) for _ in range(sizes.learned)]
    chance = random.Random(f"{agent.name} {seed} {GOOD}")
    cases = [Case(GOOD, "nothing wrong", agent.draw(chance)) for _ in range(sizes.good)]
    for fault in FAULTS:
        chance = random.Random(f"{agent.name} {seed} {fault}")
        drawn = (faulty(agent, fault, chance) for _ in range(sizes.faulty))
        cases += [Case(fault, each.what, each.run) for each in drawn if each is not None]
    return Trial(agent, seed, learned, cases)


def learn(good: Path, learned: Path) -> None:
    """Have the command learn from a recording.

    Raises:
        UnusableError: it failed.
    """
    _do("learn", good, "-o", learned, wanted=learned)


def judged(trial: Trial, directory: Path, learn: Learn = learn) -> list[Judged]:
    """Learn, score, and say what became of each run.

    Raises:
        UnusableError: a command failed, or said nothing of a run.
    """
    agent, seed = trial.agent, trial.seed
    chance = random.Random(f"{agent.name} {seed} recording")
    place = directory / f"{agent.name}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    good, runs, learned, scores = (
        place / name for name in ("good.jsonl", "runs.jsonl", "learned.yaml", "scores.jsonl")
    )
    write(good, agent, trial.learned, chance)
    ids = write(runs, agent, (case.run for case in trial.cases), chance)
    for path in (learned, scores):
        path.unlink(missing_ok=True)
    learn(good, learned)
    _do("score", runs, "--config", learned, "--json", scores, wanted=scores)
    said = _said(scores)
    if missing := set(ids) - said.keys():
        message = f"{scores} says nothing of {len(missing)} of {len(ids)} runs, such as {min(missing)}"
        raise UnusableError(message)
    return [
        Judged(agent.name, seed, case, said[trace_id], trace_id)
        for case, trace_id in zip(trial.cases, ids, strict=True)
    ]


def _do(*arguments: object, wanted: Path) -> None:
    """Run the command; 1 is a status of `score` that runs with faults are to have."""
    command = [*_SPANSCORE, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 1} or not wanted.exists():
        said = "\n".join((ended.stdout + ended.stderr).splitlines()[-5:])
        message = f"{' '.join(command[2:])} ended with {ended.returncode}: {said}"
        raise UnusableError(message)


def _said(scores: Path) -> dict[str, Said]:
    """Return what was said of each trace; where it has several units, one that fails is the trace's verdict."""
    reports: dict[str, list[Any]] = {}
    for line in scores.read_text(encoding="utf-8").splitlines():
        report = json.loads(line)
        reports.setdefault(report["trace_id"], []).append(report)
    return {trace_id: _of_units(units) for trace_id, units in reports.items()}


def _of_units(reports: list[Any]) -> Said:
    verdicts = {report["verdict"] for report in reports}
    outcomes = [outcome for report in reports for outcome in report["outcomes"].items()]
    why = (
        f"{name}: {outcome.get('explanation') or outcome.get('reason') or outcome['outcome']}"
        for name, outcome in outcomes
        if outcome.get("passed") is not True
    )
    values = tuple(outcome["value"] for _, outcome in outcomes if "value" in outcome)
    return Said(next(each for each in ("fail", "pass", "none") if each in verdicts), values, "; ".join(why))


class Rate(NamedTuple):
    """How many were judged rightly."""

    right: int
    total: int
    bar: float

    @property
    def is_reached(self) -> bool:
        """Whether it is at least the bar; nothing judged has reached nothing."""
        return self.total > 0 and self.right >= self.bar * self.total

    def __str__(self) -> str:
        if not self.total:
            return "-"
        return f"{100 * self.right / self.total:.1f}{'' if self.is_reached else '*'}"


class Findings:
    """The rates by agent and kind."""

    def __init__(self, found: Iterable[Judged]) -> None:
        self.all: Final = list(found)
        self._total = Counter((each.agent, each.case.kind) for each in self.all)
        self._right = Counter((each.agent, each.case.kind) for each in self.all if each.is_right)
        self.agents: Final = list(dict.fromkeys(each.agent for each in self.all))

    def rate(self, agents: Sequence[str], kinds: Iterable[str]) -> Rate:
        """Return the rate of these agents and kinds together; good and faulty ones are not mixed."""
        cells = list(product(agents, kinds))
        bar = PASS_AT_LEAST if all(kind == GOOD for _, kind in cells) else FAIL_AT_LEAST
        return Rate(sum(self._right[cell] for cell in cells), sum(self._total[cell] for cell in cells), bar)

    def is_good_enough(self, *, each_cell: bool) -> bool:
        """Return whether the bar is reached everywhere."""
        sums = [self.rate([agent], kinds) for agent in self.agents for kinds in ([GOOD], FAULTS)]
        sums += [self.rate(self.agents, [kind]) for kind in (GOOD, *FAULTS)]
        cells = [self.rate([agent], [kind]) for agent in self.agents for kind in (GOOD, *FAULTS)]
        return all(rate.is_reached or not rate.total for rate in (sums + cells if each_cell else sums)) and bool(
            self.all
        )

    def table(self) -> Iterator[str]:
        """Yield the lines of the table: per cent of good runs that passed, and of those with a fault that failed."""
        rows = [["agent", GOOD, *FAULTS, "faults"]]
        for name, agents in [*((agent, [agent]) for agent in self.agents), ("all", self.agents)]:
            rates = [*(self.rate(agents, [kind]) for kind in (GOOD, *FAULTS)), self.rate(agents, FAULTS)]
            rows.append([name, *map(str, rates)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            first, *others = [
                cell.ljust(width) if not place else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield "  ".join((first, *others)).rstrip()


def campaign(agents: Sequence[Agent], seeds: int, sizes: Sizes, directory: Path, learn: Learn = learn) -> Findings:
    """Judge all agents with all seeds."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        trials = (trial(agent, seed, sizes) for agent, seed in product(agents, range(1, seeds + 1)))
        found = pool.map(lambda each: judged(each, directory, learn), trials)
        return Findings(each for judged_ones in found for each in judged_ones)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit status."""
    asked = _parser().parse_args(arguments)
    sizes = Sizes(asked.learned, asked.good, asked.faulty)
    with tempfile.TemporaryDirectory() if asked.keep is None else nullcontext(asked.keep) as directory:
        try:
            found = campaign(asked.agents, asked.seeds, sizes, Path(directory))
        except UnusableError as error:
            print(error, file=sys.stderr)
            return 2
    print(f"{len(asked.agents)} agents, {asked.seeds} seeds: {sizes.learned} runs learned, {sizes.good} good and")
    print(f"{sizes.faulty} of each fault judged; % of good runs that passed, % of faulty runs that failed\n")
    print(*found.table(), sep="\n")
    _show(found, asked.show)
    is_enough = found.is_good_enough(each_cell=asked.each)
    print(
        f"\n{len(found.all)} runs, {sum(not each.is_right for each in found.all)} judged wrongly: the bar of "
        f"{PASS_AT_LEAST:.0%} good and {FAIL_AT_LEAST:.0%} faulty is {'reached' if is_enough else 'MISSED'}"
    )
    return 0 if is_enough else 1


def _show(found: Findings, most: int) -> None:
    shown: Counter[tuple[str, str]] = Counter()
    for each in found.all:
        cell = (each.agent, each.case.kind)
        if not each.is_right and shown[cell] < most:
            shown[cell] += 1
            said = f"{each.said.verdict}: {each.said.why}" if each.said.why else each.said.verdict
            print(f"{each.agent} seed {each.seed} {each.trace_id} [{each.case.kind}] {each.case.what}: {said}")


def agent_of(name: str) -> Agent:
    """Return the agent of a name, for a command's argument.

    Raises:
        argparse.ArgumentTypeError: there is none.
    """
    for agent in AGENTS:
        if agent.name == name:
            return agent
    message = f"no agent {name!r}; there are {', '.join(_NAMES)}"
    raise argparse.ArgumentTypeError(message)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", type=agent_of, default=AGENTS, metavar="AGENT", help=", ".join(_NAMES))
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="how often with other runs (default: 3)")
    defaults = Sizes()
    parser.add_argument("--learned", type=int, default=defaults.learned, metavar="N", help="runs to learn from")
    parser.add_argument("--good", type=int, default=defaults.good, metavar="N", help="other good runs")
    parser.add_argument("--faulty", type=int, default=defaults.faulty, metavar="N", help="runs with each fault")
    parser.add_argument("--each", action="store_true", help="the bar is for each agent with each fault, too")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show so many of each cell judged wrongly")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep recordings, configurations and scores")
    return parser


if __name__ == "__main__":
    sys.exit(main())
