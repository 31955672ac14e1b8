"""How long a recording of 100 MB takes to score, and whether memory grows with the number of closed traces.

Run: python -m bench.recordings
"""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parents[1] / "tests" / "corpus"
SIZES_MB: Final = (10, 100)
CONFIG: Final = """
evaluators:
  health: {type: tool_call_trajectory}
  order: {type: tool_call_order, tool_calls_order: [get_weather, search_flights, book_hotel]}
  booked: {type: tool_call_args, tool_calls: [{name: book_hotel, args: {hotel: Ritz}}]}
  allowed: {type: tool_policy, max_calls: 20, must_precede: [[search_flights, book_hotel]]}
"""

_TRACE_ID: Final = re.compile(rb'("traceId": ?")([0-9a-f]{32})')


def lines() -> Iterator[bytes]:
    """Yield the lines of all recordings again and again, each time with trace ids of their own."""
    recorded = [
        line
        for path in sorted(CORPUS.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    ]
    for generation in range(1 << 16):
        suffix = b"%04x" % generation
        for line in recorded:
            yield _TRACE_ID.sub(lambda match: match[1] + match[2][:28] + suffix, line)  # noqa: B023 - used at once


def measured(path: Path, config: Path) -> tuple[float, int, int]:
    """Score a file in a process of its own; return seconds, trajectories, and the peak of its memory in bytes."""
    command = [sys.executable, "-m", "spanscore", "score", str(path), "--config", str(config), "--format", "json"]
    began = time.perf_counter()
    # Scored trajectories fail on purpose in the recordings: the status is 1.
    output = subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout
    seconds = time.perf_counter() - began
    return seconds, output.count(b"\n"), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def main() -> None:
    """Print one line for each size."""
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "bench.yaml"
        config.write_text(CONFIG, encoding="utf-8")
        print(f"{'size':>8} {'time':>8} {'rate':>10} {'trajectories':>13} {'peak memory':>12}")
        for size_mb in SIZES_MB:
            path = Path(directory) / f"{size_mb}.jsonl"
            with path.open("wb") as file:
                for line in lines():
                    if file.tell() > size_mb * 1e6:
                        break
                    file.write(line)
            seconds, trajectories, peak = measured(path, config)
            rate = path.stat().st_size / 1e6 / seconds
            print(f"{size_mb:>5} MB {seconds:>6.1f} s {rate:>5.0f} MB/s {trajectories:>13} {peak / 1e6:>9.0f} MB")


if __name__ == "__main__":
    main()
