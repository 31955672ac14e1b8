"""The emitters: a file or a package for each, and their shared parts."""

from typing import Final

SHARED: Final = frozenset({"alarm_event", "sending"})
