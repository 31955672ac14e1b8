"""P13: what keeping accepted spans on disk costs."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import workload
from bench.clients import HttpClient
from bench.goals import Row, Run, judged, unavailable
from bench.measure import ratio, typical
from bench.serving import NOT_DURABLE, PROMETHEUS, RECEIVER, Target, cpu_of, http_port, spanscore


def rows(run: Run) -> Iterator[Row]:
    """Send two receivers the same load; one of them keeps it until it is scored."""
    if importlib.util.find_spec("spanscore.storage") is None:
        yield unavailable("P13", "spanscore.storage does not exist yet")
        return
    traces = 400 if run.quick else 1_000
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        kept = f"storage: {{durability: crash, directory: {directory}, max_size: 8GiB}}\n"
        targets = {}
        for name, storage in (("crash", kept), ("none", NOT_DURABLE)):
            server = stack.enter_context(spanscore(RECEIVER + PROMETHEUS + storage))
            targets[name] = Target(server, HttpClient(http_port(server)))
        samples = cpu_of(targets, workload.requests(traces), rounds=3 if run.quick else 7)
        if not any(path.is_file() for path in Path(directory).rglob("*")):
            yield unavailable("P13", "spanscore serve keeps nothing yet")
            return
    spans = workload.span_count(traces)
    yield judged(
        "P13",
        ratio(samples, "crash", "none"),
        figure=f"{typical(samples, 'crash', spans):.2f} µs of CPU a span",
        yardstick=f"none {typical(samples, 'none', spans):.2f} µs",
    )
