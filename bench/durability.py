"""P13: what keeping accepted spans on disk costs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import workload
from bench.clients import HttpClient
from bench.decoders import DECODERS
from bench.goals import Row, Run
from bench.serving import (
    NOT_DURABLE,
    PROMETHEUS,
    RECEIVER,
    Target,
    cpu_of,
    http_port,
    judged_by_decoder,
    spanscore,
)


def rows(run: Run) -> Iterator[Row]:
    """Send two receivers the same load; one of them keeps it until it is scored."""
    traces = 400 if run.quick else 1_000
    with ExitStack() as stack:
        targets = {}
        directories = {name: stack.enter_context(tempfile.TemporaryDirectory()) for name in DECODERS}
        for decoder, asked in DECODERS.items():
            kept = f"storage: {{durability: crash, directory: {directories[decoder]}, max_size: 8GiB}}\n"
            for name, storage in (("crash", kept), ("none", NOT_DURABLE)):
                server = stack.enter_context(spanscore(RECEIVER + PROMETHEUS + storage, asked))
                targets[f"{name}, {decoder}"] = Target(server, HttpClient(http_port(server)))
        samples = cpu_of(targets, workload.requests(traces), rounds=3 if run.quick else 7)
        for decoder, directory in directories.items():
            if not any(path.is_file() for path in Path(directory).rglob("*")):
                message = f"{decoder} keeps nothing in {directory}"
                raise RuntimeError(message)
    yield from judged_by_decoder("P13", samples, "crash", "none", workload.span_count(traces))
