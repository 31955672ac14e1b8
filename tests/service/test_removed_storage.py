"""The directory of the storage, removed while the receiver runs: nothing is lost silently, through whichever door."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.doors import AS_JSON, GRPC, HTTP, UNAVAILABLE, over_grpc, post
from receivers.otlp_requests import request_of, simple_span, span_id
from service.test_logs import FIRST
from serving import eventually, serving
from storage.test_durability import configuration

LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
OPEN = request_of(simple_span(1, 2, parent_span_id=span_id(1)))


@pytest.mark.parametrize("is_written_to", [True, False])
def test_every_door_asks_to_retry_until_it_is_mended(tmp_path: Path, *, is_written_to: bool) -> None:
    """Spans and logs are refused for now, readiness names the directory and what to do, and a restart makes it anew."""
    state = tmp_path / "parent" / "state"
    text = configuration(state.parent, "traces: {trace_timeout: 1h}")
    with serving(text) as running:
        if is_written_to:
            running.post(OPEN.SerializeToString())
        shutil.rmtree(state.parent)
        told = [door.send(running, OPEN) for door in (GRPC, HTTP, AS_JSON)]
        told.append(over_grpc(running, FIRST, LOGS))
        assert [(UNAVAILABLE, True)] * 4 == [(each.code, (each.retry_after_s or 0) >= 1) for each in told]
        assert 503 == post(running, FIRST, path="/v1/logs").status
        assert not any(str(tmp_path) in each.message for each in told)

        why = f"cannot use '{state}': no such file or directory; make it again, or restart spanscore"
        eventually(lambda: running.readiness() == (503, {"otlp": "ok", "storage": f"storage.directory: {why}"}))
    with serving(text) as running:
        running.post(OPEN.SerializeToString())
        assert 200 == running.readiness()[0]
        assert 1 == len([*state.glob("*.requests")])
