"""Runs the standalone receiver for tests: a real one, in an event loop on a thread of its own, on ports of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from deadline import DEADLINE_S
from spanscore import config
from spanscore.model import Report
from spanscore.service.exposure import GRPC, HTTP, PAGES
from spanscore.service.service import Service

ON_ANY_PORT = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0"}
      http: {endpoint: "127.0.0.1:0"}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
storage: {durability: none}
"""

_Result = TypeVar("_Result")


def eventually(check: Callable[[], bool]) -> None:
    """Ask again and again until the answer is yes."""
    deadline, pause_s = time.monotonic() + DEADLINE_S, 0.001
    while not check():
        assert time.monotonic() < deadline
        time.sleep(pause_s)  # lets those work who are waited for
        pause_s = min(pause_s * 1.5, 0.02)


class Reports:
    """An emitter that keeps what is emitted."""

    def __init__(self) -> None:
        self.emitted: list[Report] = []
        self.closed = False
        self._changed = threading.Condition()

    def emit(self, report: Report) -> None:
        """Keep a report."""
        with self._changed:
            self.emitted.append(report)
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    def close(self, timeout_s: float) -> bool:
        """Note it."""
        self.closed = True
        return True

    def wait_for(self, count: int) -> Sequence[Report]:
        """Return what is emitted, as soon as it is that much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.emitted) >= count, DEADLINE_S)
            return list(self.emitted)


class Sparing(Reports):
    """One that does not look at what tools returned, as no exporter of ours does that shows no content."""

    needs_results = False


class LoopThread:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop under test")
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Start a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine in the loop and return its result."""
        return self.start(work).result(DEADLINE_S)

    def call(self, function: Callable[[], _Result]) -> _Result:
        """Call a function in the loop and return its result."""
        result: Future[_Result] = Future()

        def run() -> None:
            try:
                result.set_result(function())
            except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
                result.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return result.result(DEADLINE_S)

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(self._cancel_rest())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE_S)
        self.loop.close()

    async def _cancel_rest(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


@contextmanager
def loop_thread() -> Iterator[LoopThread]:
    """Give an event loop on a thread of its own."""
    thread = LoopThread()
    try:
        yield thread
    finally:
        thread.close()


class Running:
    """A service that runs, and what it emitted."""

    def __init__(self, thread: LoopThread, service: Service, reports: Reports) -> None:
        self.thread = thread
        self.service = service
        self.reports = reports

    @property
    def grpc(self) -> str:
        """Where it takes OTLP over gRPC, host:port."""
        return str(self.service.addresses[GRPC][0])

    @property
    def http(self) -> str:
        """The base URL where it takes OTLP over HTTP."""
        return f"http://{self.service.addresses[HTTP][0]}"

    @property
    def pages(self) -> str:
        """The base URL of the pages."""
        return f"http://{self.service.addresses[PAGES][0]}"

    def page(self, path: str) -> tuple[int, str]:
        """Ask for a page, and return its status and text."""
        connection = http.client.HTTPConnection(self.pages.removeprefix("http://"), timeout=DEADLINE_S)
        with closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def readiness(self) -> tuple[int, dict[str, str]]:
        """Ask whether requests are taken, and return the status and the state of each part."""
        status, states = self.page("/readyz")
        return status, json.loads(states)

    def post(self, body: bytes, content_type: str = "application/x-protobuf", path: str = "/v1/traces") -> bytes:
        """Send a request over HTTP and return the answer, which is no error."""
        request = urllib.request.Request(f"{self.http}{path}", body, {"Content-Type": content_type})
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return bytes(answer.read())

    def stop(self) -> None:
        """Stop it, and wait until it has."""
        self.thread.run(self.service.stop())


@contextmanager
def serving(
    configuration: str = ON_ANY_PORT,
    reports: Reports | None = None,
    *,
    is_ready: bool = True,
    revision_delay_s: float | None = None,
    **how: Any,
) -> Iterator[Running]:
    """Run a service with this configuration, from when it is ready; or, if not asked for that, from when it listens."""
    if "storage:" not in configuration:  # nothing is kept but where that is tested
        configuration = f"{configuration}\nstorage: {{durability: none}}"
    loaded = config.loads(configuration, "test.yaml", Path()).for_serve()
    if revision_delay_s is not None:
        loaded = replace(loaded, traces=replace(loaded.traces, revision_delay_s=revision_delay_s))
    _take_no_port_of_others(loaded)
    reports = reports or Reports()
    with loop_thread() as thread:
        service = thread.call(lambda: Service(loaded, {"reports": reports}, **how))
        thread.run(service.start())
        try:
            if is_ready:
                thread.run(service.ready())
            yield Running(thread, service, reports)
        finally:
            thread.run(service.stop())


def _take_no_port_of_others(loaded: config.Config) -> None:
    """Refuse a configuration that listens where others may: another spanscore on this machine has the default ports."""
    default = config.default().for_serve()
    ours = loaded.exporters.get("prometheus")
    assert ours is None or ours != default.exporters["prometheus"], (
        "exporters.prometheus.endpoint: a test listens on any free port"
    )
    if "otlp" in loaded.receivers:
        found, known = loaded.receivers["otlp"].protocols, default.receivers["otlp"].protocols
        for listening, taken in ((found.grpc, known.grpc), (found.http, known.http)):
            assert listening is None or listening.endpoint != taken.endpoint, "a test listens anywhere"
