"""A picture of what the stack answers, on Prometheus' own page."""

from __future__ import annotations

import urllib.parse
from functools import partial
from pathlib import Path
from typing import Any, Final

from browser import opened
from programs import Programs
from results import Results
from stack import Stack

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


def _prometheus_page(shown: Any, stack: Stack, directory: Path) -> str:
    query = {"g0.expr": _GRAPH, "g0.tab": "0", "g0.range_input": "1m", "g0.show_exemplars": "1"}
    shown.goto(f"http://{stack.at['prometheus']}/graph?{urllib.parse.urlencode(query)}", wait_until="networkidle")
    shown.wait_for_timeout(2000)
    path = directory / "prometheus.png"
    shown.screenshot(path=str(path), full_page=True)
    return f"{path.name}: {shown.title()}"
