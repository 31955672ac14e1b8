"""What is done at the interpreter's end; the ends of whole programs are in test_at_exit.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from opentelemetry.metrics import NoOpMeterProvider

from deadline import DEADLINE_S
from spanscore.in_process.exit_hook import Standby
from spanscore.sdk import providers


def test_a_standby_does_what_it_is_told() -> None:
    """On its own thread, one after the other; an error is nobody's."""
    standby = Standby()
    done: list[str] = []

    def fail() -> None:
        raise SystemExit

    assert standby.run(DEADLINE_S, lambda: done.append(threading.current_thread().name))
    assert standby.run(DEADLINE_S, fail)
    assert standby.run(DEADLINE_S, lambda: done.append("after an error"))
    assert ["spanscore-exit", "after an error"] == done
    standby.close()


def test_what_hangs_is_waited_for_once() -> None:
    """Behind an action that hangs nothing else is waited for."""
    standby = Standby()
    released = threading.Event()

    assert not standby.run(0.01, lambda: released.wait(DEADLINE_S))
    assert not standby.run(threading.TIMEOUT_MAX, lambda: None)  # at once
    released.set()
    standby.close()


def test_to_look_for_providers_loads_none() -> None:
    """OpenTelemetry's own functions load what the environment names: that takes long, and fails anew each time."""
    program = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from spanscore.in_process.exit_hook import ExitHook

class Ended:
    def tell(self):
        print("at the end")

ended, meters = Ended(), MeterProvider()
hook = ExitHook(ended.tell)
for _ in range(3):
    hook.stay_ahead()
metrics.set_meter_provider(meters)
print(metrics.get_meter_provider() is meters)
hook.stay_ahead()
"""
    named = {"OTEL_PYTHON_METER_PROVIDER": "sdk_meter_provider", "OTEL_PYTHON_LOGGER_PROVIDER": "nonsense"}
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **named}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert (run.stdout, run.stderr) == ("True\nat the end\nat the end\n", "")


def test_providers_are_found_where_the_api_keeps_them_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then OpenTelemetry's own function is asked; what it fails to load is none."""
    own = object()
    answers = iter([own, NoOpMeterProvider()])
    monkeypatch.setattr(providers, "_metrics", SimpleNamespace())
    monkeypatch.setattr(providers.metrics, "get_meter_provider", lambda: next(answers))
    assert [own, None] == [providers.global_meter_provider() for _ in range(2)]

    def fail() -> object:
        raise RuntimeError

    monkeypatch.setattr(providers.metrics, "get_meter_provider", fail)
    assert providers.global_meter_provider() is None
