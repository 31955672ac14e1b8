"""Files that commit 8ac537f wrote, before the first release, are read by this version.

`0000000000000001.requests` and `.closed` are its storage after a kill. Traces 1 and 4 are closed. Of trace 2, one call
is stored, and of trace 3 two calls, one of them in JSON. `scores.jsonl` has its line for trace 1, and `every_key.yaml`
sets every key that its configuration had.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import yaml

from receivers.otlp_requests import request_of, simple_span
from serving import eventually, serving
from spanscore import config
from storage.test_durability import configuration

WRITTEN = Path(__file__).with_name("written_by_8ac537f")


def root(trace: int) -> bytes:
    """Return a request with the root of a trace."""
    return request_of(simple_span(trace, 1)).SerializeToString()


def test_its_storage_is_continued(tmp_path: Path) -> None:
    """Open traces are scored with the stored calls once their roots are there; closed ones are known."""
    (tmp_path / "state").mkdir(mode=0o700)
    for file in WRITTEN.glob("0*"):
        shutil.copy(file, tmp_path / "state")

    with serving(configuration(tmp_path)) as running:
        engine = running.service.engine
        assert 3 == engine.counts().live
        running.post(root(1))
        running.post(root(4))
        eventually(lambda: engine.counts().late == {"not_kept": 2})
        running.post(root(2))
        running.post(root(3))
        reports = running.reports.wait_for(2)

    assert {
        f"{2:032x}": [("lookup_order", {"order": 7}, "done")],
        f"{3:032x}": [("lookup_order", {"order": 7}, "done"), ("issue_refund", {"order": 7}, "done")],
    } == {
        report.trajectory.trace_id.hex(): [(call.name, call.arguments, call.result) for call in report.trajectory.calls]
        for report in reports
    }


def test_its_configuration_is_accepted() -> None:
    """Every key that it had still exists and takes the value."""
    text = (WRITTEN / "every_key.yaml").read_text(encoding="utf-8")
    sections = yaml.safe_load(text)
    loaded = config.loads(text, "every_key.yaml", Path())

    assert {entry["type"] for entry in sections["evaluators"].values()} == {each.type for each in loaded.evaluators}
    assert set(sections["receivers"]) == set(loaded.receivers)
    assert set(sections["exporters"]) == set(loaded.exporters)


def test_its_fields_are_still_written(tmp_path: Path) -> None:
    """A line of JSON has all fields that it had, down to those of an outcome."""
    path = tmp_path / "scores.jsonl"
    text = configuration(tmp_path).replace("exporters: {", f"exporters: {{jsonl: {{path: {path}}}, ")
    with serving(text) as running:
        running.post(root(5))
        running.reports.wait_for(1)
    line, earlier = (json.loads(each.read_text(encoding="utf-8")) for each in (path, WRITTEN / "scores.jsonl"))

    assert earlier.keys() <= line.keys()
    assert earlier["outcomes"]["health"].keys() <= line["outcomes"]["health"].keys()
