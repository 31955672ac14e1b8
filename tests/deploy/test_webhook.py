"""Failures reach a webhook: by the Collector, which gets spanscore's events, and by Alertmanager."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.recorded_runs import recorded
from commands import serve, spanscore
from deadline import DEADLINE_S
from otlp_capture import capturing
from processes import HOST, Running, free_ports
from programs import AMTOOL, COLLECTOR, Programs
from shipped import placed

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
MISSING = {name: Programs().missing(name) for name in (AMTOOL, COLLECTOR)}
CONFIGURATION = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
traces: {decision_delay: 0s}
evaluators:
  order: {type: tool_policy, must_precede: [[look, refund]]}
  calls: {type: tool_call_count, tool_calls_count: {refund: 1}}
exporters:
  otlp: {protocol: grpc, endpoint: "http://COLLECTOR", signals: [logs]}
storage: {durability: none}
"""
PASSING, FAILING = ("passing", "look", "refund"), ("failing", "refund", "look")


@pytest.mark.programs
@pytest.mark.skipif(MISSING[COLLECTOR] is not None, reason=MISSING[COLLECTOR] or "")
@pytest.mark.parametrize("runs", [(PASSING, FAILING), (FAILING, PASSING), (PASSING,)], ids=len)
def test_the_collector_posts_failing_runs(runs: tuple[tuple[str, ...], ...], tmp_path: Path) -> None:
    """One POST with the trace id, the evaluator and the label for a failing run; none for evaluations that passed.

    Both programs have ended, and so have sent all they had.
    """
    (port,) = free_ports(1)
    with capturing("http/protobuf") as webhook:
        moved = {"0.0.0.0:14317": f"{HOST}:{port}", "http://webhook:8080": webhook.endpoint}
        with Running(tmp_path) as running:
            path = placed("collector/webhook.yaml", tmp_path, moved)
            running.start("collector", [Programs().path(COLLECTOR), "--config", path])
            running.wait_for("the Collector is ready", lambda: "Everything is ready" in running.said("collector"))
            assert len(runs) == scored(recorded(tmp_path / "runs.jsonl", *runs), f"{HOST}:{port}", tmp_path)
        seen = list(webhook.seen)

    assert [number for number, run in enumerate(runs, 1) if run is FAILING] == [
        int(record["traceId"], 16) for request in seen for record in records(request.body)
    ]
    assert runs.count(FAILING) == len(seen)
    for request in seen:
        (record,) = records(request.body)
        told = {each["key"]: each["value"] for each in record["attributes"]}
        assert "gen_ai.evaluation.result" == record["eventName"]
        assert {"stringValue": "order"} == told["gen_ai.evaluation.name"]
        assert {"stringValue": "fail"} == told["gen_ai.evaluation.score.label"]
        assert "/failing-runs" == request.path
        assert "application/json" == request.headers["Content-Type"]


def scored(recording: str, collector: str, directory: Path) -> int:
    """Send a recording to spanscore, which sends its events to the Collector, and return how many runs it scored."""
    path = directory / "spanscore.yaml"
    jsonl = directory / "scores.jsonl"
    exporters = f"exporters:\n  jsonl: {{path: {jsonl}}}"
    path.write_text(CONFIGURATION.replace("COLLECTOR", collector).replace("exporters:", exporters))
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)/v1/traces")[1]
        assert 0 == spanscore("send", recording, "--endpoint", url).returncode
        command.process.send_signal(signal.SIGTERM)
        status, _ = command.finish()
        assert 0 == status, command.told
        assert [] == [line for line in command.told if "is lost" in line]
    return len(jsonl.read_text().splitlines())


def records(body: bytes) -> list[Mapping[str, Any]]:
    """Return the log records of a request in OTLP/JSON."""
    return [
        record
        for resource in json.loads(body)["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


@pytest.mark.programs
@pytest.mark.skipif(MISSING[AMTOOL] is not None, reason=MISSING[AMTOOL] or "")
def test_alertmanager_takes_its_file() -> None:
    """Nothing is wrong with it by amtool, and alerts of each severity go to the webhook."""
    path = PROMETHEUS / "alertmanager.yaml"
    groups = yaml.safe_load((PROMETHEUS / "rules.yaml").read_text(encoding="utf-8"))["groups"]
    severities = {rule["labels"]["severity"] for group in groups for rule in group["rules"] if "alert" in rule}

    assert {"critical", "warning"} == severities
    assert "1 receivers" in amtool("check-config", path)
    for severity in severities:
        asked = ("config", "routes", "test", f"--config.file={path}", f"severity={severity}")
        assert "webhook\n" == amtool(*asked)


def amtool(*arguments: object) -> str:
    """Return what amtool prints; it finds nothing wrong."""
    command = [str(shutil.which(AMTOOL)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout
