"""Pictures of what is on the pages: Prometheus' own, and the boards' queries drawn here, since there is no Grafana."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import drawing
from dashboards import Board, boards, jaeger_tags, resolved, variables
from programs import CHROMIUM, Programs
from results import Results
from scores import Prometheus
from stack import SERVICE, Stack
from traces import EVENT, FAILING, LABEL, NAME, root_events

_NOTE: Final = "Every query of the board, answered by Prometheus and Jaeger, drawn by deploy/prove and not by Grafana."
_BY: Final = "sum by (gen_ai_evaluation_name)"
_SCORE: Final = "gen_ai_evaluation_score"
_GRAPH: Final = f"{_BY} (rate({_SCORE}_sum[30s])) / {_BY} (rate({_SCORE}_count[30s]))"


def take(results: Results, programs: Programs, stack: Stack, directory: Path) -> None:
    """Take every picture there is a program for."""
    claim = "pictures"
    chromium = programs.find(CHROMIUM)
    if chromium is None:
        results.not_run(claim, programs.missing(CHROMIUM) or "")
        return
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only those who want pictures need it
    except ImportError:
        results.not_run(claim, "pip install playwright")
        return
    directory.mkdir(parents=True, exist_ok=True)
    prometheus = Prometheus(stack.at["prometheus"])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1212, "height": 240})
        results.check("picture of Prometheus' page", partial(_prometheus_page, shown, stack, directory))
        for board in boards():
            html = partial(_board_page, prometheus, stack, board)
            results.check(
                f"picture of what {board['uid']} asks for",
                partial(_shot, shown, html, directory / f"{board['uid']}.png"),
            )
        answer = partial(_jaeger_page, stack)
        results.check("picture of Jaeger's answer", partial(_shot, shown, answer, directory / "jaeger-answer.png"))
        browser.close()


def _prometheus_page(shown: Any, stack: Stack, directory: Path) -> str:
    query = {"g0.expr": _GRAPH, "g0.tab": "0", "g0.range_input": "1m", "g0.show_exemplars": "1"}
    shown.goto(f"http://{stack.at['prometheus']}/graph?{urllib.parse.urlencode(query)}", wait_until="networkidle")
    shown.wait_for_timeout(2000)
    path = directory / "prometheus.png"
    shown.screenshot(path=str(path), full_page=True)
    return f"{path.name}: {shown.title()}"


def _shot(shown: Any, html: Any, path: Path) -> str:
    shown.set_content(html())
    shown.screenshot(path=str(path), full_page=True)
    return path.name


def _board_page(prometheus: Prometheus, stack: Stack, board: Board) -> str:
    chosen = {
        name: ".*" if everything else prometheus.label_values(label, selector)[0]
        for name, selector, label, everything in _asked(board)
    }
    return drawing.page(board["title"], _NOTE, _sections(prometheus, stack, board, chosen))


def _asked(board: Board) -> Iterator[tuple[str, str, str, bool]]:
    everything = dict.fromkeys(("service", "agent", "evaluator"), ".*")
    for name, selector, label, wide in variables(board):
        yield name, resolved(selector, everything), label, wide


def _sections(prometheus: Prometheus, stack: Stack, board: Board, chosen: Mapping[str, str]) -> Iterator[str]:
    for panel in board["panels"]:
        title = resolved(panel["title"], {**chosen, "service": SERVICE}).replace(".*", "all")
        unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "short")
        match panel["type"]:
            case "stat":
                found = prometheus.series(resolved(panel["targets"][0]["expr"], chosen))
                yield drawing.number(title, drawing.written(float(found[0]["value"][1]), unit))
            case "timeseries" | "status-history":
                yield drawing.graph(title, list(_lines(prometheus, panel, chosen)), unit)
            case "heatmap":
                yield drawing.heat_map(title, list(_lines(prometheus, panel, chosen)))
            case "table" if panel["targets"][0]["datasource"]["type"] == "jaeger":
                yield drawing.rows(title, list(_traces(stack, jaeger_tags(panel["targets"][0]["tags"], chosen))))
            case "table":
                yield drawing.rows(title, list(_rows(prometheus, panel, chosen)))


def _lines(prometheus: Prometheus, panel: Mapping[str, Any], chosen: Mapping[str, str]) -> Iterator[drawing.Series]:
    for target in panel["targets"]:
        for found in prometheus.series(resolved(target["expr"], chosen), instant=False, minutes=2):
            name = target["legendFormat"]
            for label in re.findall(r"\{\{(\w+)\}\}", name):
                name = name.replace(f"{{{{{label}}}}}", found["metric"].get(label, ""))
            yield name, drawing.points(found)


def _rows(prometheus: Prometheus, panel: Mapping[str, Any], chosen: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    names = next(each["options"]["renameByName"] for each in panel["transformations"] if each["id"] == "organize")
    merged: dict[str, dict[str, str]] = {}
    for target in panel["targets"]:
        column = names.get(f"Value #{target['refId']}", names.get("Value", ""))
        unit = "percentunit" if column.endswith(("rate", "score")) else "short"
        for found in prometheus.series(resolved(target["expr"], chosen)):
            labels = {names[key]: value for key, value in found["metric"].items() if key in names}
            row = merged.setdefault(str(sorted(labels.items())), labels)
            row[column] = drawing.written(float(found["value"][1]), unit)
    yield from merged.values()


def _traces(stack: Stack, tags: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    for trace in stack.traces(tags)[:8]:
        failing = [event for event in root_events(trace) if event[LABEL] == "fail"]
        yield {
            "trace id": trace["traceID"],
            "failing": ", ".join(str(event[NAME]) for event in failing),
        }


def _jaeger_page(stack: Stack) -> str:
    trace = stack.traces(FAILING)[0]
    prefix = "gen_ai.evaluation."
    lines = [
        {key.removeprefix(prefix): str(value) for key, value in event.items() if key.startswith(prefix)}
        for event in root_events(trace)
    ]
    kept = [{key: line[key] for key in ("name", "score.value", "score.label", "explanation")} for line in lines]
    note = f"The events {EVENT} of the root span of trace {trace['traceID']}, as Jaeger's query API answers."
    return drawing.page("Jaeger", note, [drawing.rows("events of the root span", kept)])
