from __future__ import annotations

import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from deadline import DEADLINE_S
from emitters.reports import NOT_PASSED, PASSED, ROOT_SPAN_ID, TRACE_ID, report
from spanscore.emitters.prometheus import Prometheus
from spanscore.metrics.exposition import Exposition


def test_score_is_on_the_page() -> None:
    """An emitted score is on the next page, with the scored trace as its exemplar."""
    exposition = Exposition()
    emitter = Prometheus(exposition)
    emitter.emit(report(NOT_PASSED))

    _, page = exposition.page("application/openmetrics-text")
    buckets = {
        sample.labels["le"]: sample
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name == "gen_ai_evaluation_score_bucket"
    }
    assert {"trace_id": TRACE_ID.hex(), "span_id": ROOT_SPAN_ID.hex()} == buckets["0.3"].exemplar.labels
    assert (0.0, 1.0, 1.0) == (buckets["0.2"].value, buckets["0.3"].value, buckets["+Inf"].value)
    assert emitter.flush(0)
    assert emitter.close(0)


def test_revisions_are_not_counted_again() -> None:
    """The second score of a trace that late spans reopened changes no metric."""
    exposition = Exposition()
    emitter = Prometheus(exposition)
    emitter.emit(report(PASSED))
    before = exposition.page(None)
    emitter.emit(report(NOT_PASSED, revision=1))

    assert before == exposition.page(None)


def test_serves_inside_a_process() -> None:
    """Without a server of spanscore's own, the page is served on a thread until the emitter is closed."""
    exposition = Exposition()
    server = exposition.serve_in_thread("localhost", 0)
    emitter = Prometheus(exposition, server)
    emitter.emit(report(PASSED))
    url = f"http://localhost:{server.port}/metrics"

    with urllib.request.urlopen(url) as response:
        assert b'gen_ai_evaluation_score_count{gen_ai_agent_name="refund"' in response.read()
    assert emitter.close(DEADLINE_S)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)
