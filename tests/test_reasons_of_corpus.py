"""The reasons of every run of the corpus: the same with and without content, and without any of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from corpora import CORPUS, NAMES
from dialects.spans import built_in_log_names
from evaluators.test_places import check_places
from spanscore import config as configuration
from spanscore.config import parts as wiring
from spanscore.model import NOT_RECORDED, Report, Score, Trace, Trajectory
from spanscore.recordings.files import Recording
from spanscore.reports.reasons import reasons
from spanscore.runs import offline

EVALUATORS: Final[dict[str, dict[str, Any]]] = {
    "args": {
        "type": "tool_call_args",
        "tool_calls": [{"name": "book_hotel", "args": {"city": "Nowhere", "x": 1}}],
        "ignore_tools": ["lookup_*"],
    },
    "accuracy": {"type": "tool_call_accuracy", "expected": [{"name": "book_hotel", "input": {"city": "Nowhere"}}]},
    "budget": {"type": "run_budget", "tool_calls": 0, "duration_s": 0, "output_tokens": 0},
    "count": {"type": "tool_call_count", "tool_calls_count": {"book_hotel": 0, "charge_card": [">", 1]}},
    "correctness": {"type": "tool_correctness", "expected_tools": ["charge_card"]},
    "f1": {"type": "tool_call_f1", "reference_tool_calls": [{"name": "book_hotel", "arguments": {"city": "Nowhere"}}]},
    "health": {"type": "tool_call_trajectory", "max_consecutive_same_tool": 0, "max_latency_p95_ms": 0},
    "loops": {"type": "tool_loops", "identical": 2},
    "match": {
        "type": "trajectory_match",
        "reference": [{"name": "lookup_policy"}, {"name": "book_hotel"}],
        "include_failed": False,
    },
    "order": {"type": "tool_call_order", "tool_calls_order": ["charge_card", "book_hotel"], "strict": True},
    "output": {"type": "tool_call_output", "tool_outputs": [{"name": "book_hotel", "output": {"id": 1}}]},
    "policy": {
        "type": "tool_policy",
        "forbidden": ["book_*"],
        "max_calls": 1,
        "required": ["ask"],
        "ignore_tools": ["l*"],
    },
    "provenance": {"type": "argument_provenance", "derived": 0},
    "recovery": {"type": "tool_recovery", "within": 1},
    "schema": {"type": "tool_arguments_schema"},
    "sources": {
        "type": "tool_call_args",
        "tool_calls": [{"name": "book_hotel", "args": {"city": {"$from": "lookup_policy", "path": "/city"}}}],
    },
    "steps": {"type": "expected_trajectory", "steps": [{"parallel": ["book_hotel", "charge_card"]}, "ask"]},
}

WORDS: Final = "result failed: error missing other value was not expected called"
"""Words of reasons that may be values as well."""


class Both:
    """Scores each trace with and without content, and notes the reports in pairs."""

    def __init__(self, path: Path) -> None:
        path.write_text(yaml.safe_dump({"evaluators": EVALUATORS}), encoding="utf-8")
        self.config = configuration.load(path)
        self._pipelines = [wiring.pipeline(self.config.for_files(tool_content=content)) for content in (True, False)]
        self.reader = self._pipelines[0].reader
        self.pairs: list[tuple[Report, Report]] = []

    def run(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> tuple[Report, ...]:
        """Score a trace twice."""
        shown, hidden = (each.run(trace, wanted) for each in self._pipelines)
        self.pairs += zip(shown, hidden, strict=True)
        return shown


def texts_of(value: object) -> Iterator[str]:
    """Yield the texts in a value, and the keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (key, *texts_of(each))
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
    elif isinstance(value, str):
        yield value


def content(report: Report) -> Iterator[str]:
    """Yield the texts that no reason of a run may hold, except those that are names, too."""
    known = "\n".join((*report.trajectory.names, *texts_of(EVALUATORS), WORDS))
    for call in report.trajectory.calls:
        for value in (call.arguments, call.result):
            if value is not NOT_RECORDED:
                yield from (text for text in texts_of(value) if len(text) > 3 and text not in known)
        if call.error and call.error != call.error_without_content:
            yield call.error


@pytest.mark.full_size
def test_reasons_are_the_same_with_content_and_without(tmp_path: Path) -> None:
    """Each evaluator fails somewhere, and has a reason wherever it does."""
    both = Both(tmp_path / "spanscore.yaml")
    paths = [CORPUS / f"{name}.jsonl.gz" for name in NAMES]
    for _ in offline.score(Recording(paths, log_names=built_in_log_names()), both.config, both):
        pass

    failing, distinct = set[str](), set[str]()
    for shown, hidden in both.pairs:
        found = reasons(shown)
        assert found == reasons(hidden)
        assert set(shown.failing) == {each.evaluator for each in found}
        failing.update(shown.failing)
        distinct.update(each.text for each in found)
        told = "\n".join(each.text for each in found if each.evaluator != "schema")
        assert [] == [text for text in content(shown) if text in told]
        names = shown.trajectory.names
        assert all(each.call is None or names[each.call] in each.text for each in found)
        for evaluation in shown.evaluations:
            if isinstance(evaluation.outcome, Score):
                check_places(evaluation.outcome, shown.trajectory)
    assert len(both.pairs) > 1_000
    assert failing == EVALUATORS.keys()
    assert not [text for text in distinct if text.endswith((": failed", "the threshold")) or len(text) > 128]
