"""The recordings of real frameworks, as files and as spans."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dialects.spans import built_in_log_names
from spanscore.model import Span
from spanscore.recordings.files import Recording

CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in CORPUS.glob("*.jsonl.gz"))


@cache
def recorded(name: str) -> dict[str, list[Span]]:
    """Return the spans of a recording by their trace id, as they arrived."""
    spans: dict[str, list[Span]] = {}
    for batch in Recording([CORPUS / f"{name}.jsonl.gz"], log_names=built_in_log_names()).read():
        for span in batch.spans:
            spans.setdefault(span.trace_id.hex(), []).append(span)
    return spans
