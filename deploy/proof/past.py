"""A real Prometheus that has nothing but the hour of history."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from history import END_S, History
from intervals import View
from processes import HOST, READY_S, Running, free_ports, get
from programs import PROMETHEUS, PROMTOOL, Programs
from scores import Prometheus

LAST_HOUR: Final = View(end_s=END_S, range_s=3600, width=1800, scrape_s=5)
"""The range in which the boards open, on a wide screen, by the data source that is shipped."""


def serve(
    history: History, programs: Programs, running: Running, directory: Path, timeout_s: float = READY_S
) -> Prometheus:
    """Start Prometheus on a free port with the history in it.

    Raises:
        AssertionError: promtool does not take the history, or Prometheus does not start.
    """
    written, blocks = directory / "history.txt", directory / "blocks"
    history.write(written)
    command = [programs.path(PROMTOOL), "tsdb", "create-blocks-from", "openmetrics", written, blocks]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written.unlink()
    nothing = directory / "nothing.yaml"
    nothing.write_text("scrape_configs: []\n", encoding="utf-8")
    (port,) = free_ports(1)
    flags = {
        "config.file": nothing,
        "storage.tsdb.path": blocks,
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": f"{HOST}:{port}",
    }
    running.start("prometheus", [programs.path(PROMETHEUS), *(f"--{name}={value}" for name, value in flags.items())])
    running.wait_for("Prometheus is ready", lambda: get(f"http://{HOST}:{port}/-/ready", "*/*"), timeout_s)
    return Prometheus(f"{HOST}:{port}")
