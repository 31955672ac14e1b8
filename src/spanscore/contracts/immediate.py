"""The base of emitters of ours in which no report waits."""

from __future__ import annotations


class Immediate:
    """An emitter that is done with a report when `emit` returns: nothing is left to be flushed."""

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits
        """Do nothing."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Do nothing."""
        return True
