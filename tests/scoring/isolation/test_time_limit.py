"""Evaluators that run elsewhere, under a time limit."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE_S
from scoring.isolation.hostile import Hostile
from scoring.isolation.slow_to_load import LOADING_S, SlowToLoad
from sdk_spans import recorded_spans
from spanscore import config
from spanscore.contracts import Evaluator
from spanscore.evaluators.tool_arguments_schema import ToolArgumentsSchema
from spanscore.evaluators.tool_call_count import ToolCallCount
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.model import (
    EMPTY,
    NOT_RECORDED,
    CloseReason,
    Failed,
    Outcome,
    Score,
    Skipped,
    Span,
    ToolCall,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.scoring.isolation.frames import decoded, encoded
from spanscore.scoring.isolation.patience import LOSSES, Patience
from spanscore.scoring.isolation.process import EvaluatorLost, EvaluatorProcess
from spanscore.scoring.isolation.time_limit import time_limited
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories

PLENTY_S = DEADLINE_S
SHORT_S = 0.05
CALLS = Trajectory.from_calls([{"name": "search", "arguments": {"city": "Bern"}}, {"name": "book"}])
PASSED = Score(1.0, passed=True, explanation="2 calls", details={"names": ["a"]})

OUTCOMES = {
    "pass": PASSED,
    "raise": Failed("ValueError", "broken"),
    "raise suddenly": Failed("Sudden", "now"),
    "raise the unprintable": Failed("Unprintable", "its message cannot be read: ValueError"),
    "exit": Failed("SystemExit", "3"),
    "interrupt": Failed("KeyboardInterrupt", ""),
    "stop": Failed("GeneratorExit", ""),
    "use up memory": Failed("MemoryError", ""),
    "print": Skipped("read ''"),
    "fork": PASSED,
    "leave": Failed("ProcessEnded", "its process ended with status 3"),
    "crash": Failed("ProcessEnded", "its process was ended by SIGKILL"),
    "answer nothing": Failed("InvalidResult", "an evaluator answers Score, Skipped or Failed, not 'NoneType'"),
    "answer no number": Failed("InvalidResult", "the score's value must be a finite number, not nan"),
    "answer with an object": Score(1.0, passed=True, details={"x": "{1, 2}", "y": float("inf")}),
    "answer with a loop": Failed("ValueError", "Circular reference detected"),
    "answer at length": Failed("InvalidResult", "an answer of 20000027 bytes is too long"),
}


def answer(evaluator: Evaluator, trajectory: Trajectory = CALLS, limit_s: float = PLENTY_S) -> Outcome:
    """Return what an evaluator answers elsewhere."""
    return time_limited(limit_s)(evaluator, trajectory).result()


@pytest.mark.parametrize("deed", OUTCOMES)
def test_whatever_an_evaluator_does_is_an_outcome_and_the_next_one_runs(deed: str) -> None:
    """Errors of every kind, a dead process and an answer that is none are failures of that evaluation alone."""
    assert OUTCOMES[deed] == answer(Hostile(deed))
    assert PASSED == answer(Hostile())


def test_recursion_without_end_is_a_failure() -> None:
    """As above; its message differs between versions of Python."""
    outcome = answer(Hostile("recurse"))

    assert isinstance(outcome, Failed)
    assert "RecursionError" == outcome.error_type


def test_nothing_is_left_when_nobody_asks_any_more() -> None:
    """When the other side is gone, the process ends, and what evaluators have started with it."""
    process = EvaluatorProcess()
    process.ask(Hostile("fork"), CALLS, PLENTY_S)
    group = process.pid
    assert group is not None
    process.forget()
    os.waitpid(group, 0)

    assert _ends(group)


@pytest.mark.parametrize("deed", ["hang", "spin"])
def test_an_evaluator_that_hangs_is_ended(deed: str) -> None:
    """After its time limit it has failed, and the next evaluation is not affected."""
    assert PASSED == answer(Hostile())
    assert Failed("TimeLimit", f"no answer within {SHORT_S:g} s") == answer(Hostile(deed), limit_s=SHORT_S)
    assert PASSED == answer(Hostile())


def test_the_time_to_load_is_not_the_evaluators() -> None:
    """Starting the process and importing the evaluator's module do not use up the time limit."""
    process = EvaluatorProcess()

    assert PASSED == process.ask(SlowToLoad(), CALLS, LOADING_S - 0.5)
    process.close()


def test_a_hung_process_and_what_it_started_are_gone() -> None:
    """Nothing is left behind: neither the process nor those that the evaluator forked."""
    process = EvaluatorProcess()
    process.ask(Hostile("fork"), CALLS, PLENTY_S)
    group = process.pid
    assert group is not None
    assert 2 == len(_members(group))
    with pytest.raises(EvaluatorLost):
        process.ask(Hostile("hang"), CALLS, SHORT_S)

    assert _ends(group)


def test_one_process_serves_all(capfd: pytest.CaptureFixture[str]) -> None:
    """Evaluators of several configurations share one process as long as none is lost."""
    process = EvaluatorProcess()
    assert PASSED == process.ask(Hostile(), CALLS, PLENTY_S)
    first = process.pid
    process.ask(Hostile("raise"), CALLS, PLENTY_S)
    process.ask(ToolCallCount(tool_calls_count={"search": ("=", 1)}), CALLS, PLENTY_S)

    assert first == process.pid
    process.close()


def test_what_an_evaluator_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """It goes to the standard error, and its standard input is empty."""
    process = EvaluatorProcess()
    assert Skipped("read ''") == process.ask(Hostile("print"), CALLS, PLENTY_S)
    process.close()

    assert ("", "what an evaluator prints is no answer\n") == tuple(capfd.readouterr())


def test_a_trajectory_arrives_as_it_is() -> None:
    """A built-in evaluator answers elsewhere what it answers here, also where things were not recorded."""
    call = ToolCall(name="search", arguments=NOT_RECORDED, result={"deep": [None, 1.5, "\ud800"]}, span_id=b"12345678")
    trajectory = Trajectory(calls=(call,), trace_id=b"\x01" * 16, attributes=EMPTY, tool_definitions=EMPTY)
    counts = ToolCallCount(tool_calls_count={"search": ("=", 1)})

    assert counts.evaluate(trajectory) == answer(counts, trajectory)


def test_what_an_evaluator_lacks_arrives() -> None:
    """Only what is known as such: the answer may be anything."""
    told: Any = ("results", "sleep", ["tokens"], "arguments")

    outcome = decoded(encoded(Skipped("not recorded", told)))
    assert isinstance(outcome, Skipped)
    assert ("not recorded", ("arguments", "results")) == (outcome.reason, outcome.lacks)


@pytest.mark.parametrize("name", ["strands", "openai-agents-oi", "google-adk"])
def test_recorded_trajectories_arrive_as_they_are(name: str) -> None:
    """What the spans of real agents are read as is scored elsewhere as here."""
    reader = DialectReader(config.default().dialects)
    traces: dict[bytes, list[Span]] = {}
    for span in recorded_spans(name):
        traces.setdefault(span.trace_id, []).append(span)
    for trace_id, spans in traces.items():
        trace = Trace(trace_id=trace_id, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
        for trajectory in trajectories(trace, reader, Unit.TRACE):
            for evaluator in (ToolCallTrajectory(), ToolArgumentsSchema()):
                here = json.loads(json.dumps(asdict(evaluator.evaluate(trajectory))))
                assert here == json.loads(json.dumps(asdict(answer(evaluator, trajectory))))


def test_what_cannot_be_sent_is_a_failure() -> None:
    """An evaluator that cannot be pickled fails, and nothing else."""
    outcome = answer(Hostile(lambda: None))  # type: ignore[arg-type]

    assert isinstance(outcome, Failed)
    assert outcome.error_type in {"PicklingError", "AttributeError"}


def test_an_evaluator_that_always_hangs_is_set_aside() -> None:
    """After some losses in a row it is not run for a while: it must not take its time limit from every trace."""
    patience = Patience()
    for _ in range(LOSSES):
        assert "" == patience.refusal(100.0)
        patience.learn(100.0, is_lost=True)

    told = "not run: it hung or ended its process 3 times in a row; tried again within 10 s"
    assert [told, told, ""] == [patience.refusal(now) for now in (100.0, 109.9, 110.0)]
    patience.learn(110.0, is_lost=True)
    assert ["not run", ""] == [patience.refusal(now)[:7] for now in (129.9, 130.0)]
    patience.learn(130.0, is_lost=False)
    patience.learn(130.0, is_lost=True)
    assert "" == patience.refusal(130.0)


def test_a_run_that_is_evaluated_several_times_is_one_loss() -> None:
    """The run is given up, and the evaluator is not set aside for others; later it may look at the run again."""
    patience = Patience()
    patience.learn(100.0, b"a", is_lost=True)

    told = "not run: it hung or ended its process at this run already"
    assert [told, told, "", ""] == [patience.refusal(100.0, run) for run in (b"a", b"a", b"b", b"")]
    patience.learn(100.0, b"b", is_lost=False)
    assert "" == patience.refusal(100.0, b"a")


def test_setting_aside_is_for_one_evaluator() -> None:
    """What one configured evaluator lost is not held against another."""
    hanging, other = time_limited(SHORT_S), time_limited(PLENTY_S)
    lost = [hanging(Hostile("hang"), CALLS).result() for _ in range(LOSSES + 1)]

    assert f"no answer within {SHORT_S:g} s" == lost[LOSSES - 1].message
    assert "SetAside" == lost[LOSSES].error_type
    assert PASSED == other(Hostile(), CALLS).result()


def _ends(group: int) -> bool:
    """Wait until no process of a group is running."""
    deadline = time.monotonic() + PLENTY_S
    while time.monotonic() < deadline:
        if not any(map(_is_running, _members(group))):
            return True
        time.sleep(0.01)
    return False


def _members(group: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _group(int(path.name)) == group]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
