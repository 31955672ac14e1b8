"""What spanscore says of a run, by the configuration that a peer's expectation was translated to."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import spanscore
from spanscore import Score, Trajectory

Configuration: TypeAlias = dict[str, Any]
"""A configuration of spanscore: `{evaluators: {NAME: {type, ...}}}`. One with `traces: {unit: agent}` is for the runs
of agents by themselves; each of its evaluators is for one agent, `match: {gen_ai.agent.name: AGENT}`."""

AGENT: Final = "gen_ai.agent.name"

NEVER: Final = {"type": "tool_policy", "required": ["*"], "max_calls": 0}
"""No run keeps both rules: for what no run is as expected."""

_ROUNDING: Final = 0.005
"""Peers round values to two decimals."""


class UnsayableError(ValueError):
    """An expectation that has no translation."""


class Said(NamedTuple):
    """What was said of a run."""

    verdict: bool | None
    """Whether it passed all evaluators; None where one refuses its parameters, or skips the run."""
    values: Mapping[str, float]
    """By the names of the evaluators."""
    reason: str = ""
    """Why there is no verdict."""


def configured(evaluator: Mapping[str, Any]) -> list[Configuration]:
    """Return the configuration of a single evaluator."""
    return [{"evaluators": {"expected": dict(evaluator)}}]


def said(configurations: Iterable[Configuration], run: Trajectory) -> Said:
    """Score a run."""
    values: dict[str, float] = {}
    passed = True
    for configuration in configurations:
        for name, entry in configuration["evaluators"].items():
            parameters = {key: value for key, value in entry.items() if key not in {"type", "match"}}
            try:
                outcome = spanscore.evaluator(entry["type"], parameters).evaluate(_matching(run, entry))
            except spanscore.ConfigError as error:
                return Said(None, values, str(error))
            if not isinstance(outcome, Score):
                return Said(None, values, f"{name}: {outcome}")
            values[name] = outcome.value
            passed = passed and outcome.passed
    return Said(passed, values)


def differs(row: Mapping[str, Any], found: Said, *, is_of_one_scale: bool = False) -> bool:
    """Return whether spanscore says something else than the peer, of the value, too, where the scale is the same."""
    if found.verdict is not row["verdict"]:
        return True
    return is_of_one_scale and abs(found.values["expected"] - row["value"]) > _ROUNDING + 1e-9


def rows(file: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the head of a file of vectors, and its rows."""
    head, *lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    return json.loads(head), map(json.loads, lines)


def _matching(run: Trajectory, entry: Mapping[str, Any]) -> Trajectory:
    """Return a run, or of it the run of the agent that an evaluator is for."""
    if "match" not in entry:
        return run
    agent = entry["match"][AGENT]
    return replace(run, calls=tuple(call for call in run.calls if call.agent == agent), agent=agent)
