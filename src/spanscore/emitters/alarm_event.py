"""The event `spanscore.monitor.alarm`, and the sentence in it, which the log and the page have, too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model.alarms import MonitorAlarm

ALARM_EVENT: Final = "spanscore.monitor.alarm"

_NAME_WIDTH: Final = 200
_LINE_WIDTH: Final = 2_000


def alarm_sentence(alarm: MonitorAlarm) -> str:
    """Return an alarm that begins or ends in one sentence."""
    whose = f" of {printable(alarm.series, _NAME_WIDTH)}" if alarm.series else ""
    if alarm.dropped:
        return f"{alarm.monitor}: {alarm.dropped}; its alarm{whose} and evidence are dropped"
    runs = f"{alarm.bad:,} of {plural(alarm.counted, 'run')}{whose} failed"
    since = time_of(alarm.since, as_of=alarm.minute)
    if alarm.stable is not None:
        bad, counted = alarm.stable
        return f"{alarm.monitor}: {runs}, and {bad:,} of {plural(counted, 'run')} of stable, since {since}"
    objective = f"(objective {(alarm.objective or 0) * 100:g} %)"
    if alarm.is_over:
        minutes = plural(alarm.minute - alarm.good_since + 1, "minute")
        return f"{alarm.monitor}: the alarm since {since} is over: in the last {minutes} {runs} {objective}"
    return f"{alarm.monitor}: {runs} since {since} {objective}"


def alarm_line(alarm: MonitorAlarm) -> str:
    """Return the line of the log: the sentence, and for the begin of an alarm the last traces, and the reasons."""
    sentence = alarm_sentence(alarm)
    if alarm.is_over or not alarm.traces:
        return sentence
    reasons = f"; reasons: {_reasons(alarm)}" if alarm.reasons else ""
    return printable(f"{sentence}; traces: {_traces(alarm)}{reasons}", _LINE_WIDTH)


def alarm_attributes(alarm: MonitorAlarm) -> dict[str, str | bool | float]:
    """Return the attributes of the event."""
    found: dict[str, str | bool | float] = {
        "spanscore.monitor": alarm.monitor,
        "spanscore.monitor.series": alarm.series,
        "spanscore.monitor.alarm": not alarm.is_over,
        "spanscore.monitor.since": datetime.fromtimestamp(alarm.since * 60, UTC).isoformat().replace("+00:00", "Z"),
        "spanscore.monitor.runs": alarm.counted,
        "spanscore.monitor.runs.bad": alarm.bad,
        "spanscore.monitor.traces": _traces(alarm),
        "spanscore.monitor.reasons": _reasons(alarm),
    }
    if alarm.objective is not None:
        found["spanscore.monitor.objective"] = alarm.objective
    if alarm.stable is not None:
        found["spanscore.monitor.stable.runs.bad"], found["spanscore.monitor.stable.runs"] = alarm.stable
    return {key: value for key, value in found.items() if value != ""}


def _traces(alarm: MonitorAlarm) -> str:
    return ", ".join(each.hex() for each in alarm.traces)


def _reasons(alarm: MonitorAlarm) -> str:
    return "; ".join(alarm.reasons)


def time_of(minute: int, *, as_of: int) -> str:
    """Return a minute since the Unix epoch as a time of day, with its date if that is another than that of `as_of`."""
    time, now = (datetime.fromtimestamp(each * 60, UTC) for each in (minute, as_of))
    return f"{time:%H:%M} UTC" if time.date() == now.date() else f"{time:%Y-%m-%d %H:%M} UTC"
