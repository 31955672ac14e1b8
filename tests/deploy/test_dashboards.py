"""The Grafana boards are what their source makes, and ask only for what spanscore measures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import pictured
from cases import failing
from deadline import DEADLINE_S
from spanscore.contracts.instruments.instrument import SCORE_INSTRUMENTS, Instrument, InstrumentKind
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.metrics.exposition import prometheus_label, prometheus_name

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
BOARDS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((GRAFANA / "dashboards").glob("*.json"))]

SELECTOR = re.compile(r"(?<![\w$])([a-z]\w*)\{(.*?)\}(?=[\[\s),]|$)")
LABEL = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
GROUPING = re.compile(r"\bby \(([^)]*)\)")
NAME = re.compile(r"\b(?:spanscore|gen_ai)_\w+")
TARGET = {"job", "instance"}  # which Prometheus adds to every series that it scrapes
GRAFANAS_OWN = {"__range", "__interval", "__auto_interval_window"}


def names_of(instrument: Instrument) -> set[str]:
    """Return the names of the series of a metric in Prometheus."""
    name = prometheus_name(instrument)
    return {f"{name}{end}" for end in ("_bucket", "_sum", "_count")} if _is_histogram(instrument) else {name}


def _is_histogram(instrument: Instrument) -> bool:
    return instrument.kind is InstrumentKind.HISTOGRAM


INSTRUMENTS = {name: each for each in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS) for name in names_of(each)}
LABELS = {prometheus_label(attribute) for each in INSTRUMENTS.values() for attribute in each.attributes}


def expressions() -> Iterator[str]:
    """Yield every query and every variable's selector."""
    for board in BOARDS:
        for panel in board["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()) if "expr" in target)
        yield from (each["query"] for each in board["templating"]["list"] if each["type"] == "query")


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a board."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for each in value.values() for text in texts(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in texts(each))


def test_boards_are_what_their_source_makes() -> None:
    """`python deploy/grafana` has nothing to write."""
    pytest.importorskip(
        "grafana_foundation_sdk", reason="needs the package grafana-foundation-sdk: pip install --group manifests"
    )
    done = subprocess.run(
        [sys.executable, GRAFANA, "--check"], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )

    assert (0, "") == (done.returncode, done.stdout.strip())


def test_pictures_are_of_the_boards_as_they_are() -> None:
    """After a change of a board, take its pictures again: `deploy/prove compose --pictures deploy/pictures`.

    Or take them in another way, and say so with `python deploy/proof/pictured.py`.
    """
    assert pictured.now() == pictured.noted()


def test_queries_name_metrics_and_labels_that_exist() -> None:
    """Every metric is one of spanscore's, and every label that selects or groups is one that its series have."""

    def check(expression: str) -> None:
        found = {name for name in NAME.findall(expression) if name not in LABELS}
        for metric, inside in SELECTOR.findall(expression):
            if metric in INSTRUMENTS:
                known = {prometheus_label(each) for each in INSTRUMENTS[metric].attributes}
                assert set(LABEL.findall(inside)) <= known | {"le"}

        assert found <= INSTRUMENTS.keys()
        for grouping in GROUPING.findall(expression):
            assert {label.strip() for label in grouping.split(",")} <= LABELS | TARGET | {"le"}

    assert [] == failing(check, {expression: (expression,) for expression in expressions()})


def test_every_board_variable_that_is_used_is_there() -> None:
    """A query, title or link never names a variable that the board, or Grafana itself, does not have."""
    for board in BOARDS:
        defined = {each["name"] for each in board["templating"]["list"]}
        used = {name for text in texts(board) for name in re.findall(r"\$\{?(\w+)", text)}
        grafanas = {name for name in used if name.startswith("__")}

        assert used - grafanas <= defined
        assert grafanas <= GRAFANAS_OWN | {"__all", "__data", "__value", "__url_time_range"}


def test_links_lead_to_boards_that_are_there() -> None:
    """Each data link names a board of ours, and variables that this board has."""
    variables = {board["uid"]: {each["name"] for each in board["templating"]["list"]} for board in BOARDS}
    links = [text for board in BOARDS for text in texts(board["panels"]) if text.startswith("/d/")]

    assert links
    for link in links:
        uid = link.removeprefix("/d/").partition("?")[0]
        assert set(re.findall(r"&var-(\w+)=", link)) <= variables[uid]


def test_panels_can_be_told_apart() -> None:
    """The panels of a board have ids of their own: links to a single panel need them."""
    for board in BOARDS:
        ids = [panel["id"] for panel in board["panels"]]
        assert sorted(set(ids)) == sorted(ids)


def test_every_metric_of_scores_is_on_a_board() -> None:
    """What is measured of trajectories is looked at somewhere, but for what tool_call_trajectory merely adds up."""
    shown = {
        prometheus_name(INSTRUMENTS[name])
        for text in expressions()
        for name in NAME.findall(text)
        if name in INSTRUMENTS
    }
    measured = {
        prometheus_name(each) for each in SCORE_INSTRUMENTS if not each.name.startswith("spanscore.trajectory.")
    }

    assert measured <= shown


def test_kubectl_can_apply_each_board() -> None:
    """A config map fits into the annotation in which `kubectl apply` keeps what it applied."""
    generated = yaml.safe_load((GRAFANA / "dashboards" / "kustomization.yaml").read_text(encoding="utf-8"))
    for config_map in generated["configMapGenerator"]:
        data = {name: (GRAFANA / "dashboards" / name).read_text(encoding="utf-8") for name in config_map["files"]}

        assert len(json.dumps({"data": data})) < 250_000
    assert sorted(path.name for path in (GRAFANA / "dashboards").glob("*.json")) == sorted(
        name for config_map in generated["configMapGenerator"] for name in config_map["files"]
    )


def test_the_folder_is_not_called_like_a_board() -> None:
    """Grafana refuses such a board: "Dashboard name cannot be the same as folder"."""
    written = (GRAFANA / "provisioning" / "dashboards" / "spanscore.yaml").read_text(encoding="utf-8")
    folders = {provider["folder"] for provider in yaml.safe_load(written)["providers"]}

    assert folders.isdisjoint(board["title"] for board in BOARDS)


def test_text_boxes_begin_with_their_default() -> None:
    """Grafana leaves a box empty that has no current value, and the links that are made of it lead nowhere."""
    boxes = [each for board in BOARDS for each in board["templating"]["list"] if each["type"] == "textbox"]

    assert boxes
    for box in boxes:
        assert box["query"] == box["current"]["value"] != ""


def test_evidence_is_drawn() -> None:
    """It is a logarithm from -12 to 0: an axis that begins at 0 hides all of it."""
    panels = [
        panel
        for board in BOARDS
        for panel in board["panels"]
        if any(
            "spanscore_monitor_evidence)" in each.get("expr", "").split(" and ")[0] for each in panel.get("targets", ())
        )
    ]

    assert panels
    for panel in panels:
        drawn = panel["fieldConfig"]["defaults"]
        assert (-6, 1) == (drawn["min"], drawn["max"])
        assert {"color": "red", "value": 0} in drawn["thresholds"]["steps"]
        assert "line" == drawn["custom"]["thresholdsStyle"]["mode"]


def test_words_for_an_empty_graph_do_not_stand_on_its_axis() -> None:
    """Where only whole numbers are shown, Grafana puts the field's `noValue` at every mark between two of them."""
    whole = [
        panel
        for board in BOARDS
        for panel in board["panels"]
        if panel["type"] == "timeseries" and panel["fieldConfig"]["defaults"].get("decimals") == 0
    ]

    assert whole
    for panel in whole:
        assert {
            "matcher": {"id": "byRegexp", "options": "/.*/"},
            "properties": [{"id": "noValue", "value": ""}],
        } in panel["fieldConfig"]["overrides"]
