"""Pictures of what the stack answers: Prometheus' own page, and the scores in a trace as Jaeger has them."""

from __future__ import annotations

import urllib.parse
from functools import partial
from pathlib import Path
from typing import Any, Final

import drawing
from browser import opened, shot
from programs import Programs
from results import Results
from stack import Stack
from traces import EVENT, FAILING, root_events

_BY: Final = "sum by (gen_ai_evaluation_name)"
_SCORE: Final = "gen_ai_evaluation_score"
_GRAPH: Final = f"{_BY} (rate({_SCORE}_sum[30s])) / {_BY} (rate({_SCORE}_count[30s]))"


def take(results: Results, programs: Programs, stack: Stack, directory: Path) -> None:
    """Take every picture there is a program for."""
    directory.mkdir(parents=True, exist_ok=True)
    with opened(results, programs) as shown:
        if shown is None:
            return
        results.check("picture of Prometheus' page", partial(_prometheus_page, shown, stack, directory))
        answer = partial(_jaeger_page, stack)
        results.check("picture of Jaeger's answer", partial(shot, shown, answer, directory / "jaeger-answer.png"))


def _prometheus_page(shown: Any, stack: Stack, directory: Path) -> str:
    query = {"g0.expr": _GRAPH, "g0.tab": "0", "g0.range_input": "1m", "g0.show_exemplars": "1"}
    shown.goto(f"http://{stack.at['prometheus']}/graph?{urllib.parse.urlencode(query)}", wait_until="networkidle")
    shown.wait_for_timeout(2000)
    path = directory / "prometheus.png"
    shown.screenshot(path=str(path), full_page=True)
    return f"{path.name}: {shown.title()}"


def _jaeger_page(stack: Stack) -> str:
    trace = stack.traces(FAILING)[0]
    prefix = "gen_ai.evaluation."
    lines = [
        {key.removeprefix(prefix): str(value) for key, value in event.items() if key.startswith(prefix)}
        for event in root_events(trace)
    ]
    kept = [{key: line[key] for key in ("name", "score.value", "score.label", "explanation")} for line in lines]
    note = f"The events {EVENT} of the root span of trace {trace['traceID']}, as Jaeger's query API answers."
    return drawing.page("Jaeger", note, [drawing.rows(drawing.Frame("events of the root span", 24), kept)])
