"""The boards in a real Grafana: that it takes them, draws them, and leads from them to the traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from browser import opened
from dashboards import boards, text_boxes
from history import END_S, History
from past import serve
from pictured import note
from processes import HOST, Running, free_ports, get, get_json
from programs import COLLECTOR, GRAFANA, JAEGER, PROMETHEUS, PROMTOOL, Programs
from results import Results
from shipped import DEPLOY, placed
from stack import COMPOSE, RUNS, SERVICE, Stack

_READY_S: Final = 180.0
_TABLE_MS: Final = 30_000
_WIDTH: Final = 1600
_PICTURE: Final = {"x": 0, "y": 80, "width": _WIDTH, "height": 976}
_HOUR: Final = f"from={(END_S - 3600) * 1000}&to={END_S * 1000}&var-prometheus=history&theme=light"
_NOW: Final = "from=now-15m&to=now&var-prometheus=prometheus&theme=light"
_JAEGER_PAGE: Final = "http://localhost:16686"
_PROMETHEUS: Final = "  - name: Prometheus\n"

_WRONG: Final = "[aria-label*='Panel status'], [data-testid*='Panel status'], .panel-info-corner--error"
_POINTS: Final = "[aria-label*='xemplar'], [data-testid*='xemplar']"


def prove(results: Results, programs: Programs, directory: Path, pictures: Path | None) -> None:
    """Run Grafana with what is provisioned, over the compose stack and over an hour of history."""
    results.section("Grafana: the boards, drawn over the stack of deploy/compose and an hour of history")
    if results.lacks(programs, "Grafana draws the boards", COLLECTOR, JAEGER, PROMETHEUS, PROMTOOL, GRAFANA):
        return
    with Running(directory) as running:
        stack = Stack(running, programs, directory, COMPOSE)
        results.check("Grafana takes the data sources and every board as they ship", partial(_start, stack, programs))
        with opened(results, programs) as page:
            if page is not None:
                drawn = _Drawn(stack, page, pictures)
                for board in boards():
                    claim = f"every panel of the board {board['title']!r} is drawn without an error"
                    results.check(claim, partial(drawn.board, board))
                results.check("a point and a row of the table lead to the trace in Jaeger", drawn.links)
                if pictures is not None:
                    note(pictures)


def _start(stack: Stack, programs: Programs) -> str:
    running, directory = stack.running, stack.directory
    stack.start_jaeger()
    stack.start_scoring()
    stack.start_prometheus()
    stack.run_agent()
    running.wait_for("all traces are in Jaeger", lambda: len(stack.traces()) == RUNS)
    past = directory / "past"
    past.mkdir()
    history = serve(History(), programs, running, past)
    provisioning = directory / "provisioning"
    _provision(provisioning, stack.at, history.address)
    home = programs.path(GRAFANA).parents[1]
    (port,) = free_ports(1)
    stack.at["grafana"] = f"{HOST}:{port}"
    environment = {
        "GF_SERVER_HTTP_ADDR": HOST,
        "GF_SERVER_HTTP_PORT": str(port),
        "GF_PATHS_DATA": str(directory / "grafana"),
        "GF_PATHS_LOGS": str(directory / "grafana" / "logs"),
        "GF_PATHS_PROVISIONING": str(provisioning),
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_NEWS_NEWS_FEED_ENABLED": "false",
        "GF_SECURITY_ANGULAR_SUPPORT_ENABLED": "false",
    }
    running.start("grafana", [programs.path(GRAFANA), "server", "--homepath", home], environment)
    health = f"http://{stack.at['grafana']}/api/health"
    running.wait_for("Grafana is ready", lambda: get(health), _READY_S)
    expected = {board["uid"] for board in boards()}
    search = f"http://{stack.at['grafana']}/api/search?type=dash-db"
    running.wait_for("every board is there", lambda: {each["uid"] for each in get_json(search)} == expected)
    return f"{', '.join(sorted(expected))} in Grafana {get_json(health)['version']}"


def _provision(directory: Path, at: Mapping[str, str], history: str) -> None:
    for name in ("datasources", "dashboards", "plugins", "alerting"):
        (directory / name).mkdir(parents=True)
    moved = {"http://prometheus:9090": f"http://{at['prometheus']}", "http://jaeger:16686": f"http://{at['query']}"}
    path = placed("grafana/provisioning/datasources/spanscore.yaml", directory / "datasources", moved)
    text = path.read_text(encoding="utf-8")
    source = _PROMETHEUS + text.partition(_PROMETHEUS)[2].partition("  - name: ")[0]
    for old, new in (("name: Prometheus", "name: history"), ("uid: prometheus", "uid: history")):
        source = source.replace(old, new)
    source = source.replace(at["prometheus"], history).replace("isDefault: true", "isDefault: false")
    path.write_text(text + source, encoding="utf-8")
    folder = {"/etc/grafana/dashboards": str(DEPLOY / "grafana" / "dashboards")}
    placed("grafana/provisioning/dashboards/spanscore.yaml", directory / "dashboards", folder)


class _Drawn:
    """The boards in a browser."""

    def __init__(self, stack: Stack, page: Any, pictures: Path | None) -> None:
        self._stack: Final = stack
        self._page: Final = page
        self._pictures: Final = pictures

    def board(self, board: Mapping[str, Any]) -> str:
        """Look at a board over the hour of history."""
        self._open(board["uid"], f"{_HOUR}&var-evaluator=policy" if "evaluator" in board["uid"] else _HOUR)
        wrong = self._page.locator(_WRONG).count()
        assert wrong == 0, f"{wrong} panels have an error"
        seen = self._page.evaluate("document.body.innerText")
        assert "Panel plugin not found" not in seen, "Grafana does not know a kind of panel"
        for title in (each["title"] for each in board["panels"] if "$" not in each["title"]):
            assert title in seen, f"{title!r} is not to be seen"
        for name, value in text_boxes(board).items():
            assert self._page.locator(f"#var-{name}").input_value() == value, f"the box {name} does not have {value!r}"
        self._picture(board["uid"].replace("spanscore", "grafana"))
        return f"{len(board['panels'])} panels and rows"

    def links(self) -> str:
        """Click a point, and look where the table leads."""
        self._stack.running.wait_for("there is a point", self._has_points, _READY_S)
        failing = {trace["traceID"] for trace in self._stack.traces({"spanscore.verdict": "fail"}, SERVICE)}
        rows = self._page.locator(f"a[href^='{_JAEGER_PAGE}/trace/']")
        rows.first.wait_for(timeout=_TABLE_MS)
        ids = self._trace_ids(rows.all)
        assert ids <= failing, f"{ids - failing} is not in Jaeger"
        self._page.set_viewport_size({"width": _WIDTH, "height": 1400})  # so that what opens finds its place beside it
        self._page.wait_for_timeout(3000)
        self._page.locator(_POINTS).first.click(force=True)
        self._page.wait_for_timeout(1000)
        self._picture("grafana-point")
        (point,) = self._trace_ids(lambda: self._page.get_by_text("Trace in Jaeger").locator("xpath=ancestor::a").all())
        assert point in failing, f"{point} is not in Jaeger"
        return f"{len(ids)} traces in the table; a point leads to {_JAEGER_PAGE}/trace/{point}"

    def _has_points(self) -> bool:
        """There are points where there are bars, and a bar is of a minute: let runs fail until there is one."""
        self._stack.run_agent()
        self._open("spanscore-overview", _NOW)
        return bool(self._page.locator(_POINTS).count())

    def _trace_ids(self, links: Callable[[], list[Any]]) -> set[str]:
        return {link.get_attribute("href").rpartition("/")[2] for link in links()}

    def _open(self, uid: str, query: str) -> None:
        """Open a board so high that all of its panels are drawn."""
        self._page.set_viewport_size({"width": _WIDTH, "height": 6000})
        self._page.goto(f"http://{self._stack.at['grafana']}/d/{uid}/x?{query}")
        self._page.wait_for_load_state("networkidle")
        self._page.wait_for_timeout(5000)  # queries begin behind the page, and each panel by itself

    def _picture(self, name: str) -> None:
        if self._pictures is not None:
            self._page.screenshot(path=str(self._pictures / f"{name}.png"), clip=_PICTURE)
