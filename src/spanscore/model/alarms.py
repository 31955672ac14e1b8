"""An alarm of a monitor."""

from __future__ import annotations

from typing import NamedTuple


class MonitorAlarm(NamedTuple):
    """The begin of an alarm, or its end."""

    monitor: str
    series: str
    """The values of the attributes by which the monitor is split, with ` / ` between them; empty without any."""
    minute: int
    """The last minute that it looks at, since the Unix epoch."""
    since: int
    """The minute since which runs fail too often, as far as can be estimated, since the Unix epoch."""
    bad: int
    """The runs that failed since then; at the end of an alarm, those since `good_since`."""
    counted: int
    """The runs that were counted since then, failed ones included."""
    objective: float | None = None
    """The share of runs that may fail; None if two versions are compared."""
    stable: tuple[int, int] | None = None
    """The runs of the stable version that failed, and its runs, if two versions are compared."""
    is_over: bool = False
    """Whether it is the end."""
    good_since: int = 0
    """At the end, the first minute of the runs that met the objective."""
    dropped: str = ""
    """Why it ends, if not because runs met the objective."""
    traces: tuple[bytes, ...] = ()
    """The ids of the last traces that failed."""
    reasons: tuple[str, ...] = ()
    """The most frequent reasons of failures."""
