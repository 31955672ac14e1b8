"""`spanscore serve` as a process of its own, as users run it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration.evaluation import EVALUATORS, in_order
from integration.processes import Lines, Pipe, Program

CONFIGURATION: Mapping[str, Any] = {
    "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}}},
    "traces": {"decision_delay": "300ms"},
    "evaluators": EVALUATORS,
}


class Receiver:
    """A receiver that runs."""

    def __init__(self, endpoints: Mapping[str, str], reports: Lines) -> None:
        self._endpoints = endpoints
        self._reports = reports

    def variables(self, protocol: str = "http/protobuf") -> Mapping[str, str]:
        """Return what makes an agent send its spans here."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self._endpoints[protocol], "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}

    def reports(self, service: str, count: int) -> Sequence[Mapping[str, Any]]:
        """Return the reports on a service in the order of its runs, as soon as there are so many."""
        wanted = f'"service":{json.dumps(service)}'

        def find(lines: Sequence[str]) -> list[str] | None:
            found = [line for line in lines if wanted in line]
            return found if len(found) >= count else None

        return in_order(self._reports.wait_for(find))


@contextmanager
def receiving(directory: Path) -> Iterator[Receiver]:
    """Run a receiver; it must end well, have scored each trace once, and have nothing to complain of."""
    pipe = Pipe()
    configuration = directory / "receiver.yaml"
    settings = {
        **CONFIGURATION,
        "storage": {"directory": str(directory / "storage")},
        "exporters": {"jsonl": {"path": pipe.path}},
    }
    configuration.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "spanscore", "serve", "--config", str(configuration)]
    program = Program(command, {"PATH": os.environ["PATH"], "HOME": str(directory)}, (pipe.writing,))
    try:
        lines = pipe.lines()
        yield Receiver(program.errors.wait_for(_endpoints), lines)
        program.signal(signal.SIGTERM)
        assert 0 == program.wait()
        traces = [json.loads(line)["trace_id"] for line in lines.to_the_end()]
        assert [] == [trace for trace, count in Counter(traces).items() if count > 1]
        assert [] == [line for line in program.errors.to_the_end() if re.search("WARN|ERROR|Traceback", line)]
    finally:
        program.kill()


def _endpoints(greeting: Sequence[str]) -> Mapping[str, str] | None:
    """Return where it listens, by protocol, once it has said so."""
    text = "".join(greeting)
    grpc = re.search(r"OTLP over gRPC +(\S+)", text)
    http = re.search(r"OTLP over HTTP +(\S+)/v1/traces", text)
    return {"grpc": grpc[1], "http/protobuf": http[1]} if grpc and http else None
