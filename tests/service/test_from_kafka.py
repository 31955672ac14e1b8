"""The standalone receiver as a member of a consumer group, with librdkafka's own cluster."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from one_trace import paused_runs
from otlp_capture import InMemory
from receivers.otlp_requests import request_of, simple_span, span_id, to_json
from serving import DEADLINE_S, Reports, Running, eventually, serving
from spanscore.emitters.otlp.otlp_logs import OtlpLogs
from spanscore.errors import ConfigError

pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

from receivers.kafka_cluster import TOPIC, Cluster, cluster

REBALANCES_S = DEADLINE_S
# A batch that cannot be read is sought by a dozen fetches; each would wait until another one ends.
WAITS = 'fetch.error.backoff.ms: "20", fetch.wait.max.ms: "20"'
SETTINGS = f'{{session.timeout.ms: "3500", heartbeat.interval.ms: "200", {WAITS}}}'


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    """A cluster for all tests; each has a group of its own."""
    with cluster() as running:
        yield running


def configuration(brokers: list[str], group: str, more: str = "") -> str:
    """Return the configuration of a member of a group."""
    return f"""
receivers:
  kafka: {{brokers: {json.dumps(brokers)}, group_id: {group}, settings: {SETTINGS}{more}}}
exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}}}
traces: {{decision_delay: 0s, trace_timeout: 10m}}
"""


def rebalanced(check: Callable[[], bool]) -> None:
    """Ask again and again until the answer is yes: the cluster takes some 5 s, or twice that, for each change."""
    deadline = time.monotonic() + REBALANCES_S
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def key(trace: int) -> bytes:
    """Return the key of a trace's records."""
    return f"{trace:032x}".encode()


def send(cluster: Cluster, *traces: int, span: int = 1, topic: str = TOPIC) -> None:
    """Write one record with one span for each trace: the root, or else a child of it."""
    for trace in traces:
        parent = b"" if span == 1 else span_id(1)
        body = request_of(simple_span(trace, span, parent_span_id=parent)).SerializeToString()
        cluster.send(body, key(trace), topic=topic)
    cluster.wait()


def traces_of(running: Running) -> list[int]:
    """Return the traces that were scored."""
    return sorted(int.from_bytes(report.trajectory.trace_id, "big") for report in running.reports.emitted)


def metrics(running: Running) -> dict[str, float]:
    """Return the metrics of the Kafka receiver."""
    lines = [line for line in running.page("/metrics")[1].splitlines() if line.startswith("spanscore_kafka_")]
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines)}


@pytest.mark.waits
def test_partitions_change_hands_while_traces_are_open(brokers: Cluster) -> None:
    """Offsets are held for open traces; a second member that joins, and one that ends, get whole traces, once each.

    What was scored before a hand-over is not scored again, though its records are read again.
    """
    everything = range(1, 25)
    scored_first, open_for_long, rest = everything[:8], everything[8:16], everything[16:]
    send(brokers, *open_for_long, span=2)
    send(brokers, *scored_first, span=2)
    send(brokers, *scored_first)
    text = configuration(brokers.brokers, "changing")
    with serving(text) as first:
        first.reports.wait_for(len(scored_first))
        rebalanced(lambda: brokers.committed("changing").keys() == brokers.ends().keys())
        assert all(offset < brokers.ends()[number] for number, offset in brokers.committed("changing").items())
        with serving(text) as second:
            rebalanced(lambda: metrics(second)["spanscore_kafka_partitions"] == 2)
            rebalanced(lambda: metrics(first)["spanscore_kafka_partitions"] == 2)
            send(brokers, *rest, span=2)
            send(brokers, *open_for_long)
            rebalanced(lambda: len(first.reports.emitted) + len(second.reports.emitted) == 16)
            first.stop()
            rebalanced(lambda: metrics(second)["spanscore_kafka_partitions"] == 4)
            send(brokers, *rest)
            second.reports.wait_for(24 - len(first.reports.emitted))
            rebalanced(lambda: brokers.committed("changing") == brokers.ends())

            assert sorted(traces_of(first) + traces_of(second)) == list(everything)
            assert all(report.complete for report in [*first.reports.emitted, *second.reports.emitted])
            for running in (first, second):
                counts = running.service.engine.counts()
                parts = counts.in_closed + counts.live + sum(counts.late.values()) + sum(counts.dropped.values())
                assert counts.received == parts
            assert first.service.engine.counts().dropped["handed_over"] > 0  # type: ignore[index]


def test_records_that_cannot_be_used_are_put_aside(brokers: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """They are counted and written to the dead-letter topic with their origin; all others are scored."""
    topic = "in_json"
    brokers.send(b"{canary", b"k", 0, topic)
    brokers.send(None, b"k", 0, topic)
    brokers.send(to_json(request_of(simple_span(1))), key(1), 0, topic)
    brokers.send(to_json(request_of(simple_span(2))), None, 0, topic)
    brokers.wait()
    more = f", topic: {topic}, encoding: otlp_json, dead_letter_topic: aside"
    with serving(configuration(brokers.brokers, "json", more)) as running:
        running.reports.wait_for(2)
        eventually(lambda: metrics(running)["spanscore_kafka_records_total"] == 4)
        assert {
            'spanscore_kafka_poison_records_total{spanscore_reason="malformed"}': 1,
            'spanscore_kafka_poison_records_total{spanscore_reason="empty"}': 1,
            'spanscore_kafka_misrouted_records_total{spanscore_reason="no_key"}': 1,
        }.items() <= metrics(running).items()
        eventually(lambda: running.readiness() == (200, {"kafka": "ok"}))

    origin = {"spanscore.topic": topic.encode(), "spanscore.partition": b"0"}
    expected = [
        (value, {"spanscore.reason": reason, **origin, "spanscore.offset": at})
        for value, reason, at in ((b"{canary", b"malformed", b"0"), (None, b"empty", b"1"))
    ]
    assert expected == [(message.value(), dict(message.headers() or ())) for message in brokers.read("aside")]
    assert "canary" not in caplog.text


def test_a_batch_that_cannot_be_read_blocks_no_partition(brokers: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """After three attempts its records are counted and logged, and the records behind it are scored."""
    topic = "broken"
    brokers.send(request_of(simple_span(1)).SerializeToString(), key(1), 0, topic)
    brokers.wait()
    brokers.send_broken(topic, 3)
    brokers.send(request_of(simple_span(2)).SerializeToString(), key(2), 0, topic)
    brokers.wait()
    with serving(configuration(brokers.brokers, "broken", f", topic: {topic}")) as running:
        running.reports.wait_for(2)
        name = 'spanscore_kafka_poison_records_total{spanscore_reason="unreadable"}'
        eventually(lambda: metrics(running).get(name) == 3)
        eventually(lambda: running.readiness() == (200, {"kafka": "ok"}))
        eventually(lambda: brokers.committed("broken", [0], topic) == {0: 5})
    (told,) = [text for record in caplog.records if "cannot be read" in (text := record.getMessage())]
    assert told.startswith("kafka: records 1 to 3 of partition 0 of topic 'broken' cannot be read and are lost (")


@pytest.mark.parametrize("commits", [0, 2])
def test_a_batch_at_the_end_that_cannot_be_read_is_committed(
    brokers: Cluster, commits: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No other record has to come first, and records that end transactions are behind it: the client returns none."""
    topic = f"broken_end_{commits}"
    brokers.send(request_of(simple_span(1)).SerializeToString(), key(1), 0, topic)
    brokers.wait()
    brokers.send_broken(topic, 10)
    for _ in range(commits):
        brokers.send_commit(topic)
    with serving(configuration(brokers.brokers, topic, f", topic: {topic}")) as running:
        running.reports.wait_for(1)
        name = 'spanscore_kafka_poison_records_total{spanscore_reason="unreadable"}'
        rebalanced(lambda: metrics(running).get(name) == 10)
        rebalanced(lambda: brokers.committed(topic, [0], topic) == {0: 11 + commits})
        found = metrics(running)
        eventually(lambda: running.readiness() == (200, {"kafka": "ok"}))
    assert (10, 1) == (found[name], found["spanscore_kafka_records_total"])
    (told,) = [text for record in caplog.records if "cannot be read" in (text := record.getMessage())]
    assert told.startswith("kafka: records 1 to 10 of partition 0")


def test_records_that_cannot_be_put_aside_are_counted(brokers: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """If a record cannot be written to the dead-letter topic, it is counted by the reason, and reading continues."""
    topic = "poisoned"
    brokers.send(b"\xff", b"k", 0, topic)
    brokers.send(request_of(simple_span(1)).SerializeToString(), key(1), 0, topic)
    brokers.wait()
    more = f", topic: {topic}, dead_letter_topic: {'x' * 600}"  # longer than names of topics may be
    with serving(configuration(brokers.brokers, "aside", more)) as running:
        running.reports.wait_for(1)
        name = 'spanscore_kafka_dead_letter_failures_total{spanscore_reason="_INVALID_ARG"}'
        eventually(lambda: metrics(running).get(name) == 1)
    assert "kafka: 1 of 1 records could not be written to the dead-letter topic" in caplog.text


def test_records_wait_until_their_events_can_be_sent(brokers: Cluster) -> None:
    """While the receiver of events takes none, no more records are taken than its queue has room for."""
    client = InMemory()
    client.hold()
    events = OtlpLogs(client, capacity=10)
    topic = "held_up"
    send(brokers, *range(1, 6), topic=topic)
    with serving(configuration(brokers.brokers, "held", f", topic: {topic}"), cast("Reports", events)) as running:
        eventually(lambda: events.outbox.size == 5)
        send(brokers, *range(6, 16), topic=topic)
        with serving(configuration(brokers.brokers, "not_held", f", topic: {topic}")) as other:
            other.reports.wait_for(15)  # it joins later, so the first has read them too
        assert (503, 5) == (running.readiness()[0], events.outbox.size)
        client.go_on()
        eventually(lambda: events.progress == (15, 15))
    assert {} == events.outbox.failures


def test_without_a_broker_it_is_not_ready() -> None:
    """It starts, says what is wrong, and ends at once."""
    with serving(configuration(["127.0.0.1:1"], "nobody")) as running:
        eventually(lambda: "no broker can be reached" in running.readiness()[1]["kafka"])
        assert 503 == running.readiness()[0]


def test_a_topic_that_is_not_there_is_told(brokers: Cluster) -> None:
    """The state names the topic."""
    with serving(configuration(brokers.brokers, "g", ", topic: nowhere")) as running:
        eventually(lambda: "topic 'nowhere'" in running.readiness()[1]["kafka"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{no.such.setting: "x"}', 'receivers.kafka.settings: No such configuration property: "no.such.setting"'),
        (
            "{security.protocol: secret}",
            'receivers.kafka.settings: Invalid value *** for configuration property "security.protocol"',
        ),
    ],
)
def test_settings_that_the_library_refuses(settings: str, message: str) -> None:
    """They are errors of the configuration, in which no value is shown."""
    text = configuration(["127.0.0.1:1"], "g").replace(SETTINGS, settings)

    with pytest.raises(ConfigError) as error, serving(text):
        pass
    assert message == str(error.value)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to install it."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(ConfigError) as error, serving(configuration(["127.0.0.1:1"], "g")):
        pass
    assert "Kafka needs confluent-kafka, of the extra 'kafka': pip install confluent-kafka" == str(error.value)


def test_offsets_do_not_wait_for_a_pause(brokers: Cluster) -> None:
    """All that was read is committed while the run waits; the same member scores it whole when it continues."""
    name = "langgraph-approval"
    (run,) = (run for run in paused_runs(name) if run.scenario == "interrupt-approved")
    first, second = run.requests(name)
    text = configuration(brokers.brokers, "pauses", ", topic: pauses, encoding: otlp_json")
    with serving(text.replace("decision_delay: 0s", "decision_delay: 50ms")) as running:
        for body in first:
            brokers.send(body, run.trace_id.encode(), 0, "pauses")
        brokers.wait()
        running.reports.wait_for(1)
        eventually(lambda: metrics(running).get("spanscore_kafka_uncommitted_records") == 0)
        assert running.thread.call(lambda: running.service.engine.table.past.is_paused(bytes.fromhex(run.trace_id)))
        for body in second:
            brokers.send(body, run.trace_id.encode(), 0, "pauses")
        brokers.wait()
        paused, whole = running.reports.wait_for(2)

    assert [("issue_refund",), ()] == [each.trajectory.completeness.paused for each in (paused, whole)]
    assert ("lookup_order", "issue_refund") == whole.trajectory.names
