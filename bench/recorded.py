"""A second load: what real agent frameworks have sent, as recorded for the tests.

Where the bench load is all of one convention and lacks nothing, these are of forty instrumentations: arguments and
results have to be found in other spans, spans of one call joined, and models' messages read.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

from spanscore.otlp.from_json import decode_json
from spanscore.otlp.json_writing import accepting_only_from_json
from spanscore.otlp.slices import at_once

CORPUS: Final = Path(__file__).parents[1] / "tests" / "corpus"


def requests() -> list[bytes]:
    """Return the recorded requests with spans as ExportTraceServiceRequests in protobuf, as they were sent."""
    lines = [
        line
        for path in sorted(CORPUS.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
        if b"resourceSpans" in line
    ]
    return [at_once(accepting_only_from_json(line, decode_json(line).spans)) for line in lines]
