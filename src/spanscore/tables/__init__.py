"""Spans from ClickHouse or a lakehouse, as Arrow batches, into rows of results.

for results in spanscore.tables.score(batches, "spanscore.yaml"):
    ...
"""

from spanscore.tables.history import score
from spanscore.tables.result_rows import RESULTS

__all__ = ["RESULTS", "score"]
