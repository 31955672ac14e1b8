"""A program that forks while its spans are scored: run by host_safety.py with the number of forks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

from spanscore import config
from spanscore.in_process.processor import ScoringSpanProcessor

WATCHDOG_S = 5


def run_agent(provider: TracerProvider, tool: str) -> None:
    """Run an agent that calls one tool."""
    tracer = provider.get_tracer("agent")
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    with (
        tracer.start_as_current_span("invoke_agent a"),
        tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes),
    ):
        pass


def main(forks: int, scores: str) -> int:
    """Fork that often under load; return how many children did not end well."""
    settings = config.loads(f"exporters: {{jsonl: {{path: '{scores}'}}}}\nannotate: none", "test", Path())
    processor = ScoringSpanProcessor(settings)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    ended = threading.Event()

    def load() -> None:
        while not ended.is_set():
            run_agent(provider, "load")

    thread = threading.Thread(target=load)
    thread.start()
    bad = 0
    for number in range(forks):
        child = os.fork()
        if child == 0:
            signal.alarm(WATCHDOG_S)  # a deadlock ends here, with another status than 0
            run_agent(provider, f"child-{number}")
            os._exit(0 if processor.force_flush(WATCHDOG_S * 1000) else 1)
        bad += os.waitpid(child, 0)[1] != 0
    ended.set()
    thread.join()
    processor.shutdown()
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
