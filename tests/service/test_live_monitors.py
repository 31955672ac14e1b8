"""Monitors in `spanscore serve`: alarms in metrics, log events, the log and the page, and their state over restarts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp_capture import capturing, records_of
from receivers.otlp_requests import request_of, simple_span, span_id, texts
from scoring.monitors.runs_of_shop import monitored, run_of_shop
from serving import ON_ANY_PORT, Running, eventually, serving
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.scoring.monitors.monitors import Monitors
from spanscore.service.live_monitors import LiveMonitors
from storage.test_durability import PROTOBUF, configuration, killed, scored

MONITORS = """
traces: {decision_delay: 0s}
evaluators:
  rules: {type: tool_call_count, tool_calls_count: {check_policy: [">=", 1]}}
monitors:
  refund_policy:
    of: {evaluator: rules, fails: true}
    at_most: 5%
    by: [gen_ai.agent.name]
    one_false_alarm_per: 30d
"""
SERIES = '{spanscore_monitor="refund_policy",spanscore_monitor_series="refund-agent"}'
BEGIN_S = 1_790_000_040.0
"""The begin of a minute."""


class Clock:
    """The time of day, as a test sets it."""

    def __init__(self) -> None:
        self.now = BEGIN_S

    def __call__(self) -> float:
        """Return it."""
        return self.now


def run(number: int, *, bad: bool) -> Iterable[Span]:
    """Yield the spans of a run; a bad one does not check the policy."""
    yield simple_span(
        number, attributes=texts({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refund-agent"})
    )
    name = "issue_refund" if bad else "check_policy"
    called = texts({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
    yield simple_span(number, 2, parent_span_id=span_id(1), attributes=called)


def send(running: Running, minute: int, *, bad: int, runs: int) -> None:
    """Send the runs of a minute, and wait until they are scored."""
    before = len(running.reports.emitted)
    for number in range(runs):
        spans = run(minute * 100 + number + 1, bad=number < bad)
        running.post(request_of(*reversed(list(spans))).SerializeToString())
    running.reports.wait_for(before + runs)


def metric(running: Running, name: str) -> float:
    """Return a number on the page for Prometheus."""
    (found,) = re.findall(rf"^{re.escape(name + SERIES)} (\S+)", running.page("/metrics")[1], re.MULTILINE)
    return float(found)


def test_an_alarm_goes_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    """Runs over the wire, minute by minute: metrics, one log event with a sentence, the log, and the page."""
    clock = Clock()
    caplog.set_level(logging.INFO)
    with capturing("http/protobuf") as capture:
        onward = f'exporters: {{otlp: {{endpoint: "{capture.endpoint}", signals: [logs]}}, '
        text = ON_ANY_PORT.replace("exporters: {", onward) + MONITORS
        with serving(text, clock=clock) as running:
            send(running, 0, bad=0, runs=6)
            assert (0, 6, 0) == tuple(
                metric(running, f"spanscore_monitor_{each}") for each in ("alarm", "runs_total", "runs_bad_total")
            )
            for minute in range(1, 7):
                clock.now += 60
                send(running, minute, bad=3, runs=3)
            assert 1 == metric(running, "spanscore_monitor_alarm")
            assert 1 == metric(running, "spanscore_monitor_alarms_total")
            assert 0 == metric(running, "spanscore_monitor_evidence")
            eventually(lambda: "Alarm: refund_policy (refund-agent) since" in running.page("/")[1])
        events = [each for each in records_of(capture.bodies()) if each.event_name == "spanscore.monitor.alarm"]

    (event,) = events
    told = {each.key: each.value for each in event.attributes}
    assert re.fullmatch(
        r"refund_policy: (\d+) of \1 runs of refund-agent failed since \d\d:\d\d UTC \(objective 5 %\)",
        event.body.string_value,
    )
    assert ("WARN", True) == (event.severity_text, told["spanscore.monitor.alarm"].bool_value)
    assert f"{503:032x}" in told["spanscore.monitor.traces"].string_value.split(", ")
    assert "rules: check_policy was called too rarely" == told["spanscore.monitor.reasons"].string_value
    (line,) = (record.message for record in caplog.records if record.message.startswith(event.body.string_value))
    assert f"{503:032x}; reasons: rules: check_policy was called too rarely" in line
    assert "; traces: " in line


def test_a_minute_ends_by_the_clock() -> None:
    """An alarm needs no further run: the minute of its last one ends by itself."""
    clock = Clock()
    with serving(ON_ANY_PORT + MONITORS, clock=clock) as running:
        for minute in range(3):
            clock.now += 60
            send(running, minute, bad=3, runs=3)
        before = metric(running, "spanscore_monitor_evidence")
        clock.now += 60
        eventually(lambda: metric(running, "spanscore_monitor_evidence") > before)


def test_evidence_survives_a_restart(tmp_path: Path) -> None:
    """Minutes before it count; a run that was scored before a kill is not counted again."""
    clock, text = Clock(), configuration(tmp_path, MONITORS)
    with serving(text, clock=clock) as running:
        for minute in range(4):
            send(running, minute, bad=2, runs=2)
            clock.now += 60
        send(running, 5, bad=0, runs=1)
        evidence = metric(running, "spanscore_monitor_evidence")
    with serving(text, clock=clock) as running:
        assert evidence == metric(running, "spanscore_monitor_evidence")
        assert 0 == metric(running, "spanscore_monitor_runs_bad_total")
        assert 0 == metric(running, "spanscore_monitor_runs_total")
        send(running, 6, bad=1, runs=1)
        assert 1 == metric(running, "spanscore_monitor_runs_bad_total")


def test_after_a_kill_monitors_go_on(tmp_path: Path) -> None:
    """A run that was scored before it is counted again by neither the metrics nor the monitor."""
    text = configuration(tmp_path, MONITORS)
    sent = request_of(*reversed(list(run(1, bad=True)))).SerializeToString()
    with killed(tmp_path, text, (sent, PROTOBUF), once=scored(tmp_path, 1)), serving(text) as running:
        running.post(sent)
        send(running, 6, bad=1, runs=1)
        runs = re.findall(r"^spanscore_runs_total\S* (\S+)", running.page("/metrics")[1], re.MULTILINE)
        assert sum(map(float, runs)) == metric(running, "spanscore_monitor_runs_bad_total")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (MONITORS.replace("at_most: 5%", "at_most: 10%"), "its settings changed"),
        (MONITORS.partition("monitors:")[0], "the monitor was removed"),
    ],
)
def test_a_changed_monitor_ends_its_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changed: str, said: str
) -> None:
    """In the log and as an event; once."""
    clock = Clock()
    caplog.set_level(logging.INFO)
    with serving(configuration(tmp_path, MONITORS), clock=clock) as running:
        for minute in range(7):
            send(running, minute, bad=3, runs=3)
            clock.now += 60
    said = f"refund_policy: {said}; its alarm of refund-agent and evidence are dropped"
    with capturing("http/protobuf") as capture:
        onward = f'exporters: {{otlp: {{endpoint: "{capture.endpoint}", signals: [logs]}}, '
        with serving(configuration(tmp_path, changed).replace("exporters: {", onward), clock=clock):
            pass
        with serving(configuration(tmp_path, changed), clock=clock):
            pass
        events = [each for each in records_of(capture.bodies()) if each.event_name == "spanscore.monitor.alarm"]

    assert [said] == [each.body.string_value for each in events]
    assert 1 == sum(record.message == said for record in caplog.records)


def test_a_monitor_without_runs_counts_zero() -> None:
    """Its counters are there from the start, so that one can ask for those at zero."""
    with serving(ON_ANY_PORT + MONITORS.replace("    by: [gen_ai.agent.name]\n", "")) as running:
        labels = '{spanscore_monitor="refund_policy",spanscore_monitor_series=""}'
        shown = running.page("/metrics")[1]
        assert f"spanscore_monitor_runs_total{labels} 0" in shown
        assert f"spanscore_monitor_runs_bad_total{labels} 0" in shown
        assert 'spanscore_monitor_objective{spanscore_monitor="refund_policy"} 0.05' in shown


def test_attributes_that_no_run_has_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """After a hundred runs."""
    clock = Clock()
    with serving(ON_ANY_PORT + MONITORS.replace("[gen_ai.agent.name]", "[gen_ai.agent]"), clock=clock) as running:
        send(running, 1, bad=0, runs=99)
        send(running, 2, bad=0, runs=1)
        said = "refund_policy: gen_ai.agent is on none of 100 runs; did you mean 'gen_ai.agent.name'?"
        eventually(lambda: said in [record.message for record in caplog.records])
        send(running, 3, bad=0, runs=1)
    assert 1 == sum("is on none of" in record.message for record in caplog.records)


def test_without_monitors_nothing_counts() -> None:
    """Neither an emitter nor a metric is there."""
    with serving(ON_ANY_PORT) as running:
        assert "monitors" not in running.service.engine.emitters
        assert "spanscore_monitor_runs_total{" not in running.page("/metrics")[1]


def test_in_a_process_sections_for_serve_are_checked_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log says so."""
    file = tmp_path / "spanscore.yaml"
    file.write_text(f"{MONITORS}\nkeep: {{mode: on}}\n", encoding="utf-8")
    ScoringSpanProcessor.from_config(file).shutdown()

    for section in ("monitors", "keep"):
        told = f"`{section}` has no effect inside an application"
        assert 1 == sum(told in record.message for record in caplog.records)


def test_series_that_are_written_alike_are_one() -> None:
    """No alarm is hidden behind the other, as a metric has one value for a name."""
    clock = Clock()
    live = LiveMonitors(Monitors({"one": monitored(by=("a", "b"))}), [], clock)
    for _ in range(20):
        for values, bad in ({"a": "x / y", "b": "z"}, True), ({"a": "x", "b": "y / z"}, False):
            report = run_of_shop(bad=bad)
            live.emit(replace(report, trajectory=replace(report.trajectory, attributes=values)))
        clock.now += 60

    ((names, state),) = live.states()
    assert (("one", "x / y / z"), True, 40, 20, 1) == (names, state.is_alarm, state.counted, state.bad, state.alarms)
