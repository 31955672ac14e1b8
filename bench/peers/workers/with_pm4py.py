"""Process mining by pm4py: the inductive miner, and alignments. `python with_pm4py.py LOGS ANSWERS`.

LOGS is a JSON file of logs by name, each with the sequences to discover from (`learned`) and those to judge (`judged`).
For each log and each threshold of noise, ANSWERS gets the fitness of the alignment of each sequence that is judged, and
pm4py's own precision by alignments of those that are good (`good`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pm4py

NOISE = (0.0, 0.2)
"""Of the inductive miner: none is the miner of old, 0.2 its variant for infrequent behaviour."""


def _log(sequences: list[list[str]]) -> pd.DataFrame:
    """Return the sequences as cases, whose names keep them in their order when they are sorted."""
    begin = pd.Timestamp("2026-01-01", tz="UTC")
    rows = [
        (f"{case:06}", name, begin + pd.Timedelta(seconds=place))
        for case, names in enumerate(sequences)
        for place, name in enumerate(names)
    ]
    return pd.DataFrame(rows, columns=["case:concept:name", "concept:name", "time:timestamp"])


def _answer(log: dict[str, Any], noise: float) -> dict[str, Any]:
    net = pm4py.discover_petri_net_inductive(_log(log["learned"]), noise_threshold=noise, multi_processing=False)
    variants = [list(each) for each in dict.fromkeys(map(tuple, log["judged"]))]
    found = pm4py.conformance_diagnostics_alignments(_log(variants), *net, multi_processing=False)
    fitness = {tuple(names): each["fitness"] for names, each in zip(variants, found, strict=True)}
    return {
        "fitness": [fitness[tuple(names)] for names in log["judged"]],
        "precision": pm4py.precision_alignments(_log(log["good"]), *net, multi_processing=False),
    }


if __name__ == "__main__":
    given, answers = map(Path, sys.argv[1:])
    logs = json.loads(given.read_text(encoding="utf-8"))
    told = {f"{noise}": {name: _answer(log, noise) for name, log in logs.items()} for noise in NOISE}
    answers.write_text(json.dumps(told), encoding="utf-8")
