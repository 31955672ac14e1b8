"""Spans that are stored already: batches of Arrow in, rows of results out, for an engine that shares the work out.

for results in spanscore.tables.score(batches, "spanscore.yaml"):
    ...
"""

from spanscore.tables.history import score
from spanscore.tables.result_rows import RESULTS

__all__ = ["RESULTS", "score"]
