"""The same streams through a monitor, and through the shipped alerts on rates in a real Prometheus: their delays.

    PYTHONPATH=src:tests:deploy/proof python tests/campaigns/monitors_beside_alerts.py
    PYTHONPATH=src:tests:deploy/proof python tests/campaigns/monitors_beside_alerts.py --streams 20

Ten runs a minute fail at 5 % for six hours, then at 10 to 90 % for ten. Their counters, a sample a minute, are written
into a Prometheus, which is asked for the expressions of `AgentPassRateBurnsFast` and `AgentPassRateBurnsSlowly` at each
minute, with the recording rules put into them; an alert fires after its `for`. The monitor has the objective 5 % and
`one_false_alarm_per: 30d`.

The exit status is 1 if the monitor misses a change, or if the median of an alert is sooner.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import yaml

from campaigns.monitors import A_MONTH, Minute, steady
from past import serve
from processes import Running
from programs import Programs
from scores import Prometheus
from spanscore.contracts.settings import seconds
from spanscore.scoring.monitors.e_detector import Evidence, Objective

RULES: Final = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yaml"
ALERTS: Final = ("AgentPassRateBurnsFast", "AgentPassRateBurnsSlowly")
RATES: Final = (0.1, 0.15, 0.3, 0.5, 0.75, 0.9)
RUNS: Final = 10
BEFORE: Final = 6 * 60
AFTER: Final = 10 * 60
BEGIN_S: Final = 1_790_000_040


class Stream(NamedTuple):
    """A service whose runs fail more from a minute on."""

    name: str
    rate: float
    minutes: Sequence[Minute]


class Counters:
    """The samples of streams as Prometheus scrapes them, one a minute."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._streams: Final = streams

    def write(self, path: Path) -> None:
        """Write it for `promtool tsdb create-blocks-from openmetrics`."""
        with path.open("w", encoding="utf-8") as file:
            for stream in self._streams:
                labels = f'service_name="shop",gen_ai_agent_name="{stream.name}",gen_ai_evaluation_name="rules"'
                failed = counted = 0
                for minute, (bad, runs) in enumerate(stream.minutes):
                    failed, counted, at_s = failed + bad, counted + runs, BEGIN_S + 60 * minute
                    for outcome, number in (("fail", failed), ("pass", counted - failed)):
                        name = f'spanscore_evaluations_total{{{labels},spanscore_outcome="{outcome}"}}'
                        file.write(f"{name} {number} {at_s}\n")
                    file.write(f"gen_ai_evaluation_score_count{{{labels}}} {counted} {at_s}\n")
            file.write("# EOF\n")


def streams_of(number: int, seed: int) -> Iterator[Stream]:
    """Yield so many streams of each rate."""
    for rate in RATES:
        for each in range(number):
            chance = random.Random(f"{seed} {rate} {each}")
            minutes = [*islice(steady(chance, RUNS), BEFORE), *islice(steady(chance, RUNS, rate), AFTER)]
            yield Stream(f"{rate:g}-{each}", rate, minutes)


def alarm_of_monitor(stream: Stream) -> int | None:
    """Return the minute of the alarm of a monitor; None without one."""
    objective, found = Objective(0.05), Evidence()
    for minute, (bad, runs) in enumerate(stream.minutes):
        found = objective.after(found, minute, bad, runs, A_MONTH)
        if found.is_alarm:
            return minute
    return None


def alerts() -> dict[str, tuple[str, int]]:
    """Return the expression of each alert, without recorded series, and the minutes of its `for`."""
    rules = [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    recorded = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}
    names = re.compile("|".join(map(re.escape, sorted(recorded, key=len, reverse=True))))
    return {
        rule["alert"]: (
            names.sub(lambda found: f"({recorded[found[0]]})", rule["expr"]),
            round(seconds(rule["for"]) / 60),
        )
        for rule in rules
        if rule.get("alert") in ALERTS
    }


def firing(prometheus: Prometheus, expression: str, lasting: int) -> dict[str, int]:
    """Return the minute in which an alert fires for each stream."""
    found: dict[str, int] = {}
    end_s = BEGIN_S + 60 * (BEFORE + AFTER - 1)
    for series in prometheus.graph(expression, BEGIN_S, end_s, 60):
        minutes = [round((at_s - BEGIN_S) / 60) for at_s, _ in series["values"]]
        begin, last = minutes[0], minutes[0] - 1
        for minute in minutes:
            begin = begin if minute == last + 1 else minute
            last = minute
            if minute - begin >= lasting:
                found[_agent(series)] = minute
                break
    return found


def _agent(series: Mapping[str, Any]) -> str:
    return str(series["metric"]["gen_ai_agent_name"])


def measured(streams: Sequence[Stream]) -> dict[str, dict[str, int]]:
    """Return the minutes of the first alarm, by what raises it and by stream."""
    found = {"monitor": {each.name: at for each in streams if (at := alarm_of_monitor(each)) is not None}}
    with TemporaryDirectory() as directory, Running(Path(directory)) as running:
        prometheus = serve(Counters(streams), Programs(), running, Path(directory))  # type: ignore[arg-type]
        for name, (expression, lasting) in alerts().items():
            found[name] = firing(prometheus, expression, lasting)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the delays, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=5, help="of each rate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    streams = [*streams_of(asked.streams, asked.seed)]
    found = measured(streams)
    is_met = True
    print(f"Minutes from a change from 5 % to the alarm, {RUNS} runs a minute: median, and how many of {asked.streams}")
    for rate in RATES:
        of_rate = [each.name for each in streams if each.rate == rate]
        told, medians = [], {}
        for name, at in found.items():
            delays = [at[each] - BEFORE for each in of_rate if at.get(each, 0) >= BEFORE]
            medians[name] = statistics.median(delays) if delays else AFTER
            told.append(f"{name} {f'{medians[name]:g}' if delays else '-'} ({len(delays)})")
            is_met = is_met and (name != "monitor" or len(delays) == len(of_rate))
        is_met = is_met and medians["monitor"] <= min(medians.values())
        print(f"  to {rate:3.0%}: {', '.join(told)}")
    print("met" if is_met else "MISSED")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
