from __future__ import annotations

import threading
import urllib.request
from importlib.metadata import version
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed_classic

from spanscore.contracts.instruments.instrument import (
    EVALUATIONS,
    SCORE,
    SCORE_INSTRUMENTS,
    TOOL_DURATION,
    InstrumentKind,
)
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS, QUEUE_SIZE, SPANS_LATE, STORAGE_SIZE
from spanscore.metrics.accumulation import Origin
from spanscore.metrics.exposition import Exposition, prometheus_name

ORIGIN = Origin(b"\xab" * 16, b"\xcd" * 8, 12.5)
LABELS = {"trace_id": "ab" * 16, "span_id": "cd" * 8}

OPENMETRICS = "application/openmetrics-text"

PROMETHEUS_2 = (
    f"{OPENMETRICS};version=1.0.0,{OPENMETRICS};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPENMETRICS};version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def samples(exposition: Exposition) -> dict[tuple[str, tuple[tuple[str, str], ...]], Any]:
    """Return the samples of the OpenMetrics page by name and labels."""
    _, page = exposition.page(OPENMETRICS)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample
        for family in parsed_openmetrics(page.decode())
        for sample in family.samples
    }


def test_histogram() -> None:
    """Values are counted in cumulative buckets; a bucket's last value carries its trace, span and time."""
    exposition = Exposition()
    for seconds in (0.005, 0.2, 400):
        exposition.record(TOOL_DURATION, seconds, ("search", None, None, "refund", "shop"), ORIGIN)

    named = {
        "gen_ai_tool_name": "search",
        "gen_ai_tool_type": "",
        "error_type": "",
        "gen_ai_agent_name": "refund",
        "service_name": "shop",
    }
    found = samples(exposition)
    labels = tuple(sorted(named.items()))
    buckets = {
        dict(key)["le"]: sample
        for (name, key), sample in found.items()
        if name == "gen_ai_execute_tool_duration_seconds_bucket"
    }
    assert [*map(float, TOOL_DURATION.boundaries), float("inf")] == [float(bound) for bound in buckets]
    assert [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3] == [sample.value for sample in buckets.values()]
    assert 3 == found["gen_ai_execute_tool_duration_seconds_count", labels].value
    assert 400.205 == found["gen_ai_execute_tool_duration_seconds_sum", labels].value
    assert (LABELS, 400, 12.5) == (
        buckets["+Inf"].exemplar.labels,
        buckets["+Inf"].exemplar.value,
        float(buckets["+Inf"].exemplar.timestamp),
    )
    assert buckets["0.08"].exemplar is None


def test_counter() -> None:
    """Counters add up, and lead to the trace counted last."""
    exposition = Exposition()
    values = ("e", "fail", "refund", "shop")
    exposition.record(EVALUATIONS, 1, values, ORIGIN)
    exposition.record(EVALUATIONS, 2, values)

    found = {
        dict(key)["spanscore_outcome"]: sample
        for (name, key), sample in samples(exposition).items()
        if name == "spanscore_evaluations_total"
    }
    assert (3, LABELS) == (found["fail"].value, found["fail"].exemplar.labels)
    # What never passed has a series of zero: the increase from there on is all of it.
    assert (0, None) == (found["pass"].value, found["pass"].exemplar)
    assert {"fail", "pass"} == set(found)


@pytest.mark.parametrize(("accept", "parsed"), [(OPENMETRICS, parsed_openmetrics), ("", parsed_classic)])
def test_replicas_are_told_apart(accept: str, parsed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both formats say which replica this is, in one series of its own, as the resource of OTLP metrics does."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=shop,service.instance.id=replica-2,color=red")
    _, page = Exposition().page(accept)

    (found,) = (sample for family in parsed(page.decode()) for sample in family.samples if sample.name == "target_info")
    assert {
        "service_namespace": "shop",
        "service_name": "spanscore",
        "service_instance_id": "replica-2",
        "service_version": version("spanscore"),
    } == found.labels


def test_looked_up_when_asked_for() -> None:
    """Observed numbers are those of the moment in which the page is made."""
    exposition = Exposition()
    late = {"ignored": 1}
    exposition.observe(SPANS_LATE, lambda: {(reason,): number for reason, number in late.items()})
    exposition.observe(STORAGE_SIZE, lambda: {(): 4096})
    late["ignored"] = 7

    found = samples(exposition)
    assert 7 == found["spanscore_spans_late_total", (("spanscore_reason", "ignored"),)].value
    assert 4096 == found["spanscore_storage_size_bytes", ()].value


@pytest.mark.parametrize("accept", [OPENMETRICS, PROMETHEUS_2, PROMETHEUS_3])
def test_openmetrics_where_accepted(accept: str) -> None:
    """A client that takes OpenMetrics gets it, with exemplars."""
    exposition = Exposition()
    exposition.record(SCORE, 0.5, ("e", "a", "s"), ORIGIN)
    content_type, page = exposition.page(accept)

    assert "application/openmetrics-text; version=1.0.0; charset=utf-8" == content_type
    assert page.endswith(b"# EOF\n")
    assert b'# {span_id="cdcdcdcdcdcdcdcd",trace_id="abababababababababababababababab"} 0.5 12.5' in page


@pytest.mark.parametrize("accept", [None, "", "*/*", "text/plain", "text/html;q=bad,;;=", "application/json\n"])
def test_classic_text_otherwise(accept: str | None) -> None:
    """Every other client gets the text that all of them can read, whatever its header holds."""
    exposition = Exposition()
    exposition.record(SCORE, 0.5, ("e", "a", "s"), ORIGIN)
    content_type, page = exposition.page(accept)

    assert "text/plain; version=0.0.4; charset=utf-8" == content_type
    assert 1 == sum(
        sample.value
        for family in parsed_classic(page.decode())
        for sample in family.samples
        if sample.name == "gen_ai_evaluation_score_count"
    )


def test_hostile_names_stay_in_their_label() -> None:
    """A name with quotes, braces and line breaks is one label of one sample, in both formats."""
    exposition = Exposition()
    exposition.record(SCORE, 0.5, ('"} evil{x="1', "back\\slash\nspanscore_evil 1\n# EOF", "\ud800\u202e"), ORIGIN)

    labels = (
        ("gen_ai_agent_name", "back\\slashspanscore_evil 1# EOF"),
        ("gen_ai_evaluation_name", '"} evil{x="1'),
        ("service_name", ""),
    )
    assert 1 == samples(exposition)["gen_ai_evaluation_score_count", labels].value
    (found,) = [
        sample
        for family in parsed_classic(exposition.page(None)[1].decode())
        for sample in family.samples
        if sample.name == "gen_ai_evaluation_score_count"
    ]
    assert dict(labels) == found.labels


def test_every_metric_is_described() -> None:
    """The page names every metric with its help, even before anything was measured, and no `_created` series."""
    exposition = Exposition()
    exposition.record(SCORE, 0.5, ("e", "a", "s"))
    _, page = exposition.page(None)

    for instrument in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS):
        assert f"# HELP {prometheus_name(instrument)} {instrument.description}\n" in page.decode()
        assert f"# TYPE {prometheus_name(instrument)} {instrument.kind}\n" in page.decode()
    assert b"_created" not in page


@pytest.mark.parametrize(
    ("instrument", "name"),
    [
        (SCORE, "gen_ai_evaluation_score"),
        (EVALUATIONS, "spanscore_evaluations_total"),
        (TOOL_DURATION, "gen_ai_execute_tool_duration_seconds"),
        (QUEUE_SIZE, "spanscore_queue_size"),
        (STORAGE_SIZE, "spanscore_storage_size_bytes"),
    ],
)
def test_names(instrument: Any, name: str) -> None:
    """Names follow the conventions of OpenTelemetry for Prometheus: a unit's word, and `total` for a counter."""
    assert name == prometheus_name(instrument)


def test_names_are_different() -> None:
    """No two instruments share a name, neither in OpenTelemetry nor in Prometheus."""
    instruments = (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)

    assert len(instruments) == len({instrument.name for instrument in instruments})
    assert len(instruments) == len({prometheus_name(instrument) for instrument in instruments})


def test_only_histograms_have_boundaries() -> None:
    """Every histogram of the table has ascending boundaries, nothing else has any."""
    for instrument in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS):
        assert (instrument.kind is InstrumentKind.HISTOGRAM) == bool(instrument.boundaries)
        assert sorted(set(instrument.boundaries)) == list(instrument.boundaries)


def test_pages_while_measuring() -> None:
    """Pages made while another thread measures are whole: the count and the buckets agree, and never go back."""
    exposition = Exposition()
    done = threading.Event()

    def measure() -> None:
        for number in range(20_000):
            exposition.record(SCORE, 0.5, (f"e{number % 50}", "a", "s"), ORIGIN)
        done.set()

    thread = threading.Thread(target=measure)
    thread.start()
    before = 0.0
    while not done.is_set():
        found = samples(exposition)
        total = sum(sample.value for (name, _), sample in found.items() if name == "gen_ai_evaluation_score_count")
        full = sum(
            sample.value
            for (name, key), sample in found.items()
            if name == "gen_ai_evaluation_score_bucket" and dict(key)["le"] == "0.5"
        )
        assert before <= total == full
        before = total
    thread.join()


def test_serves_the_page_in_a_thread() -> None:
    """The page can be served where spanscore has no server, and the port is free again afterwards."""
    exposition = Exposition()
    exposition.record(SCORE, 0.5, ("e", "a", "s"), ORIGIN)
    server = exposition.serve_in_thread("localhost", 0)
    request = urllib.request.Request(f"http://localhost:{server.port}/metrics", headers={"Accept": PROMETHEUS_3})
    with urllib.request.urlopen(request) as response:
        assert b"trace_id=" in response.read()
    server.close()

    again = exposition.serve_in_thread("localhost", server.port)
    again.close()


def test_port_in_use() -> None:
    """An address that is taken is an error."""
    exposition = Exposition()
    server = exposition.serve_in_thread("localhost", 0)
    with pytest.raises(OSError, match="in use"):
        exposition.serve_in_thread("localhost", server.port)
    server.close()
