from __future__ import annotations

import logging
import sys

import pytest

from spanscore.cli._log import OneLine


def formatted(error: Exception, *, tool_content: bool = False) -> str:
    """Return the line that is logged when an error is caught."""
    try:
        try:
            raise KeyError("canary")  # noqa: TRY301 - what is logged of it matters
        except KeyError as cause:
            raise error from cause
    except Exception:  # noqa: BLE001 - any
        record = logging.LogRecord("spanscore", logging.ERROR, "", 0, "it\nfailed", None, sys.exc_info())
    return OneLine(tool_content=tool_content).format(record)


def test_what_errors_say_is_not_logged() -> None:
    """It may quote what was received: logged is of which types they were and where they were raised, on one line."""
    line = formatted(ValueError("canary"))
    assert (False, True) == ("canary" in line.replace('KeyError("canary")', ""), line.isprintable())
    assert line.endswith("ValueError")
    assert "KeyError\\n  File" in line


def test_what_the_system_says_is_logged() -> None:
    """Of errors of the operating system the reason is needed, and tells nothing."""
    assert formatted(OSError(28, "No space left on device", "canary")).endswith("OSError: No space left on device")


@pytest.mark.parametrize("error", [ValueError("canary")])
def test_what_errors_say_can_be_switched_on(error: Exception) -> None:
    """Where arguments and results may be told, errors may be quoted."""
    assert formatted(error, tool_content=True).endswith("ValueError: canary")
