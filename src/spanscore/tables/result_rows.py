"""The results of evaluations as rows: the same run, scored again by the same configuration, gives the same keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from spanscore import __version__
from spanscore.messages.printable import encodable
from spanscore.model import Report
from spanscore.reports.cases import named_case
from spanscore.reports.evaluation_event import attributes_of_evaluation
from spanscore.reports.reasons import reasons_of

_TEXT: Final = pa.string()

RESULTS: Final = pa.schema(
    [
        pa.field("evaluation_id", _TEXT, nullable=False),
        pa.field("trace_id", _TEXT, nullable=False),
        pa.field("span_id", _TEXT, nullable=False),
        pa.field("start_unix_nano", pa.int64(), nullable=False),
        pa.field("service", _TEXT),
        pa.field("agent", _TEXT),
        pa.field("conversation_id", _TEXT),
        pa.field("test_case", _TEXT),
        pa.field("evaluator", _TEXT, nullable=False),
        pa.field("type", _TEXT, nullable=False),
        pa.field("label", _TEXT),
        pa.field("value", pa.float64()),
        pa.field("explanation", _TEXT, nullable=False),
        pa.field("error_type", _TEXT),
        pa.field("reasons", pa.list_(_TEXT), nullable=False),
        pa.field("complete", pa.bool_(), nullable=False),
        pa.field("close_reason", _TEXT, nullable=False),
        pa.field("verdict", _TEXT, nullable=False),
        pa.field("config", _TEXT, nullable=False),
        pa.field("spanscore_version", _TEXT, nullable=False),
    ]
)
"""The columns of results. Key: `trace_id`, `span_id`, `evaluator` and `config`."""

_ROWS_AT_ONCE: Final = 4_096
_LATEST_NS: Final = 2**63 - 1


class ResultRows:
    """Collects the rows of reports.

    Args:
        config: the digest of the configuration, or another name for it.
        content: whether explanations may have arguments and results in them.
    """

    def __init__(self, config: str, *, content: bool) -> None:
        self._config: Final = config
        self._content: Final = content
        self._rows: list[dict[str, Any]] = []

    def add(self, report: Report) -> pa.RecordBatch | None:
        """Add the rows of a report, and return all rows if there are enough for a batch."""
        self._rows += self._of(report)
        return self.take() if len(self._rows) >= _ROWS_AT_ONCE else None

    def take(self) -> pa.RecordBatch:
        """Return the rows that were added since the last batch."""
        rows, self._rows = self._rows, []
        return pa.RecordBatch.from_pylist(rows, schema=RESULTS)

    def _of(self, report: Report) -> Iterator[dict[str, Any]]:
        run = report.trajectory
        if report.tool_content and not self._content:
            report = replace(report, tool_content=False)
        of_run = {
            "trace_id": run.trace_id.hex(),
            "span_id": run.root_span_id.hex(),
            "start_unix_nano": min(run.start_ns or 0, _LATEST_NS),
            "service": _text(run.service),
            "agent": _text(run.agent),
            "conversation_id": _text(run.conversation_id),
            "test_case": _text(named_case(run)),
            "complete": report.complete,
            "close_reason": report.close_reason.value,
            "verdict": report.verdict,
            "config": self._config,
            "spanscore_version": __version__,
        }
        for evaluation in report.evaluations:
            told = attributes_of_evaluation(report, evaluation)
            yield {
                **of_run,
                "evaluation_id": told["spanscore.evaluation.id"],
                "evaluator": told["gen_ai.evaluation.name"],
                "type": told["spanscore.evaluator.type"],
                "label": told.get("gen_ai.evaluation.score.label"),
                "value": told.get("gen_ai.evaluation.score.value"),
                "explanation": told["gen_ai.evaluation.explanation"],
                "error_type": told.get("error.type"),
                "reasons": [encodable(each.text) for each in reasons_of(evaluation, report)],
            }


def _text(value: str | None) -> str | None:
    return None if value is None else encodable(value)
