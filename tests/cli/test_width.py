"""The table of `score` and `demo` in narrow outputs: whatever gives way, no head and no name does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from commands import spanscore
from spanscore.cli import main

RECORDING = str(Path(__file__).parents[1] / "corpus" / "strands.jsonl.gz")
LONG = "the_order_of_a_whole_trip_with_all_of_its_flights_and_hotels"
TOOL = "search_flights_of_all_airlines_there_are"
CONFIG = f"""
evaluators:
  health: {{type: tool_call_trajectory}}
  NAME:
    type: tool_call_order
    tool_calls_order: [get_weather, {TOOL}]
"""
COUNTS = ["passed", "failed", "skipped", "errors", "mean"]


@pytest.fixture
def told(
    named: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[int], list[str]]:
    """Give a function that returns the lines that are written to what is no terminal when COLUMNS is set."""

    def run(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        main(["score", RECORDING, "--config", str(named[1])])
        lines = capsys.readouterr().out.splitlines()
        assert columns >= max(map(len, lines))
        return lines

    return run


@pytest.fixture(params=["order", "the_order_of_a_whole_trip", LONG], ids=["short", "longer", "longest"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A name of an evaluator, and a configuration with it."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(CONFIG.replace("NAME", request.param))
    return request.param, path


def test_60_columns(named: tuple[str, Path], told: Callable[[int], list[str]]) -> None:
    """Every evaluator has its counts, heads are whole, and so are names that are not longer than the line."""
    name, _ = named
    lines = told(60)
    words = [line.split() for line in lines]

    if name == LONG:
        assert ["passed", "2,", "failed", "4,", "skipped", "0,", "errors", "0,", "mean", "0.675"] in words
    else:
        assert ["evaluator", *COUNTS] in words
        assert ["health", "2", "4", "0", "0", "0.675"] in words
    assert name in "".join(line.strip() for line in lines)
    assert "…" not in "".join(lines[-6:])


def test_wide_outputs_have_the_type_as_well(named: tuple[str, Path], told: Callable[[int], list[str]]) -> None:
    """Where there is room."""
    name, _ = named
    words = [line.split() for line in told(150)]

    assert ["evaluator", "type", *COUNTS] in words
    assert [name, "tool_call_order"] in [found[:2] for found in words]


def test_names_of_tools_are_folded(named: tuple[str, Path], told: Callable[[int], list[str]]) -> None:
    """In what was expected a long name goes on in the next line."""
    lines = told(60)
    head = next(line for line in lines if line.split()[:2] == ["expected", "actual"])
    expected = "".join(line[: head.index("actual")] for line in lines[lines.index(head) :])

    assert TOOL in "".join(expected.split())


def test_without_columns_a_pipe_has_a_width_of_its_own(
    named: tuple[str, Path], told: Callable[[int], list[str]]
) -> None:
    """The output in a file does not depend on who wrote it."""
    _, config = named
    done = spanscore("score", RECORDING, "--config", config)

    assert "\n".join(told(120)) == done.stdout.rstrip("\n")
