"""Counts the functions of ours on a span's way, from an export over gRPC to its metric, where spans are stored.

python tests/campaigns/ways.py [--show]

A trace of two spans is sent to a service in this process, and every function of ours that is called until its scores
are emitted, and what was stored of it is let go, is counted once. Comprehensions belong to the function that they are
in. What is called while nothing comes, too, is on nobody's way; nor is the page of the last runs, which a thread of its
own writes. The exit status is 1 where there are more than there were; on a busy machine a few more or less are seen,
which is why no test asks for the number.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

import spanscore
from receivers.otlp_requests import request_of, simple_span, span_id
from serving import serving

MOST: Final = 232
"""More make the way of a span longer than it was."""

_EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_OURS: Final = str(Path(spanscore.__file__).parent)
_IDLE_S: Final = 2.5
"""In this time everything is looked at that is looked at from time to time."""
_REST_S: Final = 0.3
"""In this time what was written is synced."""
_TOOL: Final = [
    KeyValue(key=key, value=AnyValue(string_value=value))
    for key, value in {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fetch"}.items()
]
_CONFIGURATION: Final = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}}}}}}}
traces: {{decision_delay: 0s}}
evaluators: {{health: {{type: tool_call_trajectory}}}}
exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}}}
page: {{runs: 0}}
storage: {{durability: crash, directory: {directory}}}
"""


class Calls:
    """What is called, on every thread that begins later."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()

    def watch(self) -> None:
        """Look at every call from now on."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def during(self, work: Callable[[], object]) -> frozenset[str]:
        """Return which functions of ours are called while something is done."""
        self._codes = set()
        work()
        return frozenset(filter(None, map(_function, tuple(self._codes))))

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._codes.add(frame.f_code)


def _function(code: CodeType) -> str | None:
    if not code.co_filename.startswith(_OURS):
        return None
    name = code.co_qualname.partition(".<locals>.<")[0]
    return f"{Path(code.co_filename).relative_to(_OURS)} {name}"


def functions_on_the_way() -> frozenset[str]:
    """Return the functions of ours that a trace calls; it is the second one, as the first fills caches."""
    calls = Calls()
    with tempfile.TemporaryDirectory() as directory:
        calls.watch()
        try:
            with serving(_CONFIGURATION.format(directory=directory)) as running:
                address = running.grpc

                def export(number: int) -> None:
                    spans = [simple_span(number, 2, parent_span_id=span_id(1), attributes=_TOOL), simple_span(number)]
                    with grpc.insecure_channel(address) as channel:
                        channel.unary_unary(_EXPORT)(request_of(*spans).SerializeToString())
                    running.reports.wait_for(number)
                    time.sleep(_REST_S)

                export(1)
                idle = calls.during(lambda: time.sleep(_IDLE_S))
                return calls.during(lambda: export(2)) - idle
        finally:
            threading.setprofile(None)
            sys.setprofile(None)


def main() -> int:
    """Print how many there are, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print each of them, too")
    shown = parser.parse_args().show
    found = functions_on_the_way()
    if shown:
        print(*sorted(found), sep="\n")
    print(f"{len(found)} functions, at most {MOST}")
    return int(len(found) > MOST)


if __name__ == "__main__":
    sys.exit(main())
