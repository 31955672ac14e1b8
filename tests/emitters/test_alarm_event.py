"""The event of an alarm: its sentence, and its attributes."""

from __future__ import annotations

from deadline import DEADLINE_S
from emitters.otlp_server import OtlpServer
from spanscore.emitters.alarm_event import alarm_attributes, alarm_line, alarm_sentence
from spanscore.emitters.otlp.otlp_logs import OtlpLogs
from spanscore.model.alarms import MonitorAlarm

NOON = 20_139 * 24 * 60 + 12 * 60
ALARM = MonitorAlarm(
    monitor="refund_policy",
    series="shop / refund-agent",
    minute=NOON,
    since=NOON - 209,
    bad=31,
    counted=204,
    objective=0.05,
    traces=(b"\1" * 16, b"\2" * 16),
    reasons=("rules: check_policy was not called", "rules: failed"),
)


def test_sentences() -> None:
    """With the date if it began on another day; the end says so, too."""
    assert (
        "refund_policy: 31 of 204 runs of shop / refund-agent failed since 08:31 UTC (objective 5 %)"
    ) == alarm_sentence(ALARM)
    assert "refund_policy: 1 of 1 run failed since 2025-02-19 12:00 UTC (objective 0.1 %)" == alarm_sentence(
        ALARM._replace(series="", bad=1, counted=1, since=NOON - 1440, objective=0.001)
    )
    assert (
        "refund_policy: the alarm since 08:31 UTC is over: in the last 60 minutes 6 of 120 runs of shop / refund-agent "
        "failed (objective 5 %)"
    ) == alarm_sentence(ALARM._replace(is_over=True, good_since=NOON - 59, bad=6, counted=120))
    assert "refund_policy: its settings changed; its alarm of shop / refund-agent and evidence are dropped" == (
        alarm_sentence(ALARM._replace(is_over=True, dropped="its settings changed"))
    )


def test_the_line_of_the_log() -> None:
    """It has the last traces and the reasons, too; the end of an alarm has none."""
    assert (
        f"{alarm_sentence(ALARM)}; traces: {'01' * 16}, {'02' * 16}; "
        "reasons: rules: check_policy was not called; rules: failed"
    ) == alarm_line(ALARM)
    for each in (ALARM._replace(is_over=True), ALARM._replace(traces=())):
        assert alarm_sentence(each) == alarm_line(each)


def test_attributes() -> None:
    """Only those that there are."""
    assert {
        "spanscore.monitor": "refund_policy",
        "spanscore.monitor.series": "shop / refund-agent",
        "spanscore.monitor.alarm": True,
        "spanscore.monitor.since": "2025-02-20T08:31:00Z",
        "spanscore.monitor.runs": 204,
        "spanscore.monitor.runs.bad": 31,
        "spanscore.monitor.traces": f"{'01' * 16}, {'02' * 16}",
        "spanscore.monitor.reasons": "rules: check_policy was not called; rules: failed",
        "spanscore.monitor.objective": 0.05,
    } == alarm_attributes(ALARM)
    bare = alarm_attributes(ALARM._replace(series="", traces=(), reasons=(), is_over=True))
    assert bare["spanscore.monitor.alarm"] is False
    assert {"spanscore.monitor.series", "spanscore.monitor.traces", "spanscore.monitor.reasons"}.isdisjoint(bare)


def test_it_is_sent(otlp: OtlpServer) -> None:
    """Over OTLP, as a warning; its end for information."""
    emitter = OtlpLogs(otlp.destination.connect())
    emitter.alarm(ALARM)
    emitter.alarm(ALARM._replace(is_over=True))

    assert emitter.close(DEADLINE_S)
    assert [("spanscore.monitor.alarm", "WARN"), ("spanscore.monitor.alarm", "INFO")] == [
        (each.event_name, each.severity_text) for each in otlp.log_records()
    ]
