"""Messages of a worker of pytest-xdist to the process that the user sees, without those that change nothing there.

Six messages for each test take more of the processor's time than most tests.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

_UNUSED: Final = frozenset({"logstart", "logfinish"})
"""Events for live logs, and for the names of tests as they begin, neither of which is shown with workers."""


def spare(config: pytest.Config) -> None:
    """Leave out messages that change nothing, unless each report is wanted: for durations, or for a file of JUnit."""
    if config.getoption("durations", None) is not None or config.getoption("xmlpath", None):
        return
    for plugin in config.pluginmanager.get_plugins():
        if hasattr(plugin, "sendevent"):
            plugin.sendevent = _Sending(plugin.sendevent)


class _Sending:
    def __init__(self, send: Any) -> None:
        self._send = send

    def __call__(self, name: str, **event: Any) -> None:
        if name not in _UNUSED and not (name == "testreport" and is_spared(event["data"])):
            self._send(name, **event)


def is_spared(report: dict[str, Any]) -> bool:
    """Return whether a report says only that a set-up or a teardown passed."""
    is_plain = report["outcome"] == "passed" and not report["longrepr"] and not report["sections"]
    return is_plain and report["when"] != "call"
