from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spanscore

VECTORS = Path(__file__).parents[1] / "vectors"


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of vectors."""
    yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def has(actual: Any, expected: Any) -> bool:
    """Say whether a value has all that is expected: numbers to nine places, and of an object the keys given."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(key in actual and has(actual[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(has, actual, expected))
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        return not isinstance(actual, bool) and bool(actual == pytest.approx(expected, rel=0, abs=1e-9))
    return bool(actual == expected)


def difference(row: dict[str, Any]) -> str:
    """Say what differs from what a row expects; empty when nothing does."""
    try:
        evaluator = spanscore.evaluator(row["type"], row["params"])
    except spanscore.ConfigError as error:
        return "" if row["outcome"] == "config_error" else f"{row['id']}: {error}"
    outcome = evaluator.evaluate(spanscore.Trajectory.from_calls(row["tool_calls"]))
    if isinstance(outcome, spanscore.Skipped):
        return "" if row["outcome"] == "skipped" else f"{row['id']}: {outcome}"
    found = isinstance(outcome, spanscore.Score) and row["outcome"] == "score" and has(outcome.value, row["value"])
    details = dict(outcome.details) if isinstance(outcome, spanscore.Score) else {}
    return "" if found and has(details, row.get("details", {})) else f"{row['id']}: {outcome}"


@pytest.mark.parametrize("file", sorted(VECTORS.glob("*.jsonl")), ids=lambda file: file.stem)
def test_every_vector(file: Path) -> None:
    """What the peers were seen to answer, or what we say on purpose instead, is what we answer."""
    assert [] == [found for row in rows(file) if (found := difference(row))]
