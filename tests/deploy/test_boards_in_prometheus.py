"""The Grafana boards over an hour of history in a real Prometheus: ten agents, six evaluators, fifteen tools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from answers import Series, answered, colour, shown_as
from cases import failing
from dashboards import Panel, boards, panels, resolved, text_boxes
from deadline import DEADLINE_S
from history import AGENTS, END_S, EVALUATORS, TOOLS, History
from intervals import View, seconds
from past import LAST_HOUR, serve
from processes import Running
from programs import PROMETHEUS, PROMTOOL, Programs
from scores import Prometheus

MISSING = Programs().missing(PROMETHEUS, PROMTOOL)
needs_prometheus = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

BOARDS = {board["uid"]: board for board in boards()}
PANELS = [(uid, panel) for uid, board in BOARDS.items() for panel in panels(board)]
MEASURED = [(uid, panel) for uid, panel in PANELS if not panel.in_jaeger]
CHOICES = {"service": ".*", "agent": ".*", "evaluator": ".*"}
DAY = View(end_s=END_S, range_s=86_400, width=1800, scrape_s=5)

MOST_SERIES = 12
MEANINGS = {"pass": "green", "fail": "red", "skipped": "#8e8e8e", "none": "#8e8e8e", "failed": "orange"}
FAILING = "Failing runs"
BY_REASON = "Failing runs by reason"
WINDOW = re.compile(r"(?:\[|offset )(\w+)")
SELECTOR = re.compile(r"\b(?:spanscore|gen_ai)_\w+\{.*?\}")


def failing_panels(check: Callable[[str, Panel], object], found: list[tuple[str, Panel]]) -> list[str]:
    """Return of which panels a check fails, by their boards, ids and titles, and how."""
    return failing(check, {f"{uid}-{panel.body['id']}-{panel.title}": (uid, panel) for uid, panel in found})


def of_kind(*kinds: str) -> list[tuple[str, Panel]]:
    """Return the panels that ask Prometheus and are of some kinds."""
    return [(uid, panel) for uid, panel in MEASURED if panel.kind in kinds]


def chosen(uid: str) -> dict[str, str]:
    """Return the variables as somebody sees the board at first."""
    board = BOARDS[uid]
    one = {"evaluator": EVALUATORS[0]} if uid == "spanscore-evaluator" else {}
    return CHOICES | one | text_boxes(board)


@dataclass(frozen=True, slots=True)
class Hour:
    """The history, and the Prometheus that has it."""

    history: History
    prometheus: Prometheus

    def series(self, uid: str, panel: Panel) -> list[Series]:
        """Return what a panel shows of the last hour."""
        return answered(self.prometheus, BOARDS[uid], panel, LAST_HOUR, chosen(uid))


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hour]:
    """Yield an hour of history in a Prometheus that runs."""
    directory = tmp_path_factory.mktemp("history")
    history = History()
    with Running(directory) as running:
        yield Hour(history, serve(history, Programs(), running, directory, DEADLINE_S))


def queries(panel: Panel, uid: str, view: View) -> Iterator[str]:
    """Yield the queries of a panel with all variables in their place."""
    values: Mapping[str, str] = {**view.values(BOARDS[uid], panel), **chosen(uid)}
    yield from (resolved(target["expr"], values) for target in panel.targets)


@pytest.mark.programs
@needs_prometheus
def test_history_is_as_large_as_it_says(hour: Hour) -> None:
    """What follows is seen with ten agents, six evaluators and fifteen tools, and some runs fail."""
    seen = [
        len(hour.prometheus.moment(f"count by ({label}) ({metric})", END_S))
        for label, metric in (
            ("gen_ai_agent_name", "spanscore_runs_total"),
            ("gen_ai_evaluation_name", "spanscore_evaluations_total"),
            ("gen_ai_tool_name", "gen_ai_execute_tool_duration_seconds_count"),
        )
    ]

    assert [10, 6, 15] == seen == [len(AGENTS), len(EVALUATORS), len(TOOLS)]
    assert 20 < len(hour.history.failures)


@pytest.mark.programs
@needs_prometheus
def test_panel_has_data(hour: Hour) -> None:
    """Each query has an answer; alerts are none's, as nothing evaluates rules here."""

    def check(uid: str, panel: Panel) -> None:
        answers = Counter(each.letter for each in hour.series(uid, panel))
        letters = {target["refId"] for target in panel.targets}

        assert (set() if panel.title == "Firing alerts" else letters) == answers.keys()

    assert [] == failing_panels(check, MEASURED)


@pytest.mark.programs
@needs_prometheus
def test_panel_shows_few_series(hour: Hour) -> None:
    """No panel has more series than can be told apart; a heat map has one for each bucket, and is one picture."""

    def check(uid: str, panel: Panel) -> None:
        found = hour.series(uid, panel)
        rows = {tuple(sorted(each.labels.items())) for each in found}

        assert panel.kind == "heatmap" or len(rows if panel.kind == "table" else found) <= MOST_SERIES

    assert [] == failing_panels(check, MEASURED)


@pytest.mark.programs
@needs_prometheus
def test_series_can_be_told_apart(hour: Hour) -> None:
    """No two series of a panel have the same name, and none has no name or half a one."""

    def check(uid: str, panel: Panel) -> None:
        names = [each.name for each in hour.series(uid, panel)]

        assert sorted(set(names)) == sorted(names)
        assert [] == [name for name in names if not name.strip(" ·:")]

    assert [] == failing_panels(check, of_kind("timeseries", "status-history"))


@pytest.mark.programs
@needs_prometheus
def test_each_failing_run_is_drawn_once(hour: Hour) -> None:
    """The bars of failing runs are whole, those of an agent add up to its failing runs, the very first included."""
    (panel,) = (panel for uid, panel in of_kind("timeseries") if (uid, panel.title) == ("spanscore-overview", FAILING))
    step_s = LAST_HOUR.step_s(panel)
    expected = Counter(
        (each.agent, -(-each.at_s // step_s) * step_s)
        for each in hour.history.failures
        if each.at_s > LAST_HOUR.start_s - step_s
    )
    drawn = {
        (each.name, at_s): value
        for each in hour.series("spanscore-overview", panel)
        for at_s, value in each.points
        if value
    }

    assert expected == drawn


@pytest.mark.programs
@needs_prometheus
def test_numbers_are_those_of_the_history(hour: Hour) -> None:
    """The pass rate of the runs and their count, of which the very first are no less than others."""
    numbers = {
        panel.title: hour.series(uid, panel)[0].points[0][1]
        for uid, panel in of_kind("stat")
        if uid == "spanscore-overview"
    }
    failing = sum(LAST_HOUR.start_s < each.at_s for each in hour.history.failures)

    assert failing == numbers["Failing runs"]
    assert numbers["Run pass rate"] == pytest.approx(1 - failing / numbers["Runs"], abs=0.02)


@pytest.mark.programs
@needs_prometheus
def test_colours_mean_the_same(hour: Hour) -> None:
    """What passes is green everywhere, what fails red, and nothing else is."""

    def check(uid: str, panel: Panel) -> None:
        fails = panel.title in {FAILING, BY_REASON, "Failing evaluations"}
        for each in hour.series(uid, panel):
            painted = colour(panel, each)

            assert painted is not None
            if each.name in MEANINGS:
                assert ("fixed", MEANINGS[each.name]) == painted
            else:
                assert fails == (painted[1] in MEANINGS.values())
                assert not fails or painted == ("shades", "red")

    assert [] == failing_panels(check, of_kind("timeseries"))


@pytest.mark.programs
@needs_prometheus
def test_an_evaluator_that_goes_wrong_is_no_failing_run(hour: Hour) -> None:
    """Nothing is called failed beside what is called fail: the outcome of that name is an evaluator error."""

    def check(uid: str, panel: Panel) -> None:
        shown = {each.name: shown_as(panel, each) for each in hour.series(uid, panel)}

        assert {"failed": "evaluator error"}.items() >= {
            each: shown[each] for each in shown if each != shown[each]
        }.items()
        assert "failed" not in shown.values()

    assert [] == failing_panels(check, of_kind("timeseries"))


@pytest.mark.programs
@needs_prometheus
def test_bars_begin_a_step_before_the_numbers(hour: Hour) -> None:
    """Without the first bar, of the step before the time range, runs by verdict add up to the number of runs."""
    found = {
        (panel.kind, panel.title): hour.series(uid, panel)
        for uid, panel in of_kind("stat", "timeseries")
        if uid == "spanscore-overview"
    }
    ((_, runs),) = found["stat", "Runs"][0].points
    points = [point for each in found["timeseries", "Runs by verdict"] for point in each.points]

    assert runs == sum(value for at_s, value in points if at_s > LAST_HOUR.start_s)
    assert runs < sum(value for _, value in points)


def test_no_window_is_short() -> None:
    """None is shorter than five minutes, but for bars and heat maps: those are a step each, a minute at least."""

    def check(uid: str, panel: Panel) -> None:
        for view in (LAST_HOUR, DAY):
            step_s = view.step_s(panel)
            windows = {seconds(window) for query in queries(panel, uid, view) for window in WINDOW.findall(query)}
            short = {window for window in windows if window < 300}

            assert panel.kind in {"stat", "table"} or step_s >= 60
            assert short <= ({step_s} if draws_steps(panel) else set())

    assert [] == failing_panels(check, MEASURED)


def draws_steps(panel: Panel) -> bool:
    """Return whether what is drawn adds up: bars do, and the cells of a heat map."""
    custom = panel.defaults.get("custom", {})
    return panel.kind == "heatmap" or custom.get("drawStyle") == "bars"


def test_windows_grow_with_the_time_range() -> None:
    """A moving window is never shorter than the step: no run falls between two points."""
    for view in (LAST_HOUR, DAY, View(end_s=END_S, range_s=7 * 86_400, width=1800, scrape_s=5)):
        for uid, panel in of_kind("timeseries", "status-history"):
            values = view.values(BOARDS[uid], panel)

            assert seconds(values["window"]) >= max(300, view.step_s(panel))


def test_time_series_have_legends() -> None:
    """Below the graph, with numbers of each series."""

    def check(uid: str, panel: Panel) -> None:
        legend = panel.body["options"]["legend"]

        assert (True, "bottom") == (legend["showLegend"], legend["placement"])
        assert legend["displayMode"] in {"list", "table"}
        assert legend["calcs"]

    assert [] == failing_panels(check, of_kind("timeseries"))


def test_panel_says_what_it_shows() -> None:
    """It has a title, a unit, and words for where there is nothing; traces have units of their own."""

    def check(uid: str, panel: Panel) -> None:
        assert panel.title
        assert panel.in_jaeger or panel.defaults["unit"]
        assert len(panel.defaults["noValue"]) > 15

    assert [] == failing_panels(check, PANELS)


def test_panel_has_no_thresholds_by_default() -> None:
    """Grafana paints 80 and more red where a panel has no thresholds; only shares are judged, all by the same."""

    def check(uid: str, panel: Panel) -> None:
        steps = [(step["value"], step["color"]) for step in panel.defaults["thresholds"]["steps"]]

        judged = [(None, "red"), (0.8, "yellow"), (0.95, "green")]
        assert steps in ([(None, "text")], judged, [(None, "text"), (0, "red")])
        assert steps != judged or panel.defaults["unit"] == "percentunit"
        assert ((0, "red") in steps) == (panel.title == "Evidence")

    assert [] == failing_panels(check, PANELS)


def test_whole_numbers_have_no_decimals() -> None:
    """Counts are written out, without decimals."""

    def check(uid: str, panel: Panel) -> None:
        assert panel.defaults["unit"] != "short"
        assert panel.defaults["unit"] != "none" or panel.defaults["decimals"] == 0

    assert [] == failing_panels(check, of_kind("stat", "timeseries", "table"))


def test_exemplars_are_of_failing_runs() -> None:
    """Only bars of failing runs have points, and Prometheus is asked for no other runs' points there."""

    def check(uid: str, panel: Panel) -> None:
        pointed = [target for target in panel.targets if target.get("exemplar")]

        assert (panel.kind == "timeseries" and panel.title in {FAILING, BY_REASON}) == (len(pointed) == 1)
        for target in pointed:
            selectors = SELECTOR.findall(target["expr"])
            assert selectors
            assert all('spanscore_outcome="fail"' in each or "spanscore_fail_reasons_" in each for each in selectors)

    assert [] == failing_panels(check, MEASURED)


@pytest.mark.parametrize("uid", BOARDS)
def test_panels_do_not_overlap(uid: str) -> None:
    """No two panels share a place, and one that is repeated has a row of its own, from edge to edge."""
    board = BOARDS[uid]
    taken = [cell for body in board["panels"] for cell in cells(body["gridPos"])]

    assert [] == [cell for cell, count in Counter(taken).items() if count > 1]
    for index, body in enumerate(board["panels"]):
        if body.get("repeat"):
            around = [board["panels"][index - 1], *board["panels"][index + 1 : index + 2]]
            assert 24 == body["gridPos"]["w"]
            assert {"row"} == {each["type"] for each in around}


def cells(place: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the cells of the grid that a panel covers."""
    across, down = (range(place[at], place[at] + place[long]) for at, long in (("x", "w"), ("y", "h")))
    yield from ((x, y) for x in across for y in down)


@pytest.mark.parametrize("uid", BOARDS)
def test_alerts_do_not_tint_the_graphs(uid: str) -> None:
    """Marks of alerts are there to be switched on."""
    (alerts,) = BOARDS[uid]["annotations"]["list"]

    assert (False, False) == (alerts["enable"], alerts["hide"])


def test_trace_ids_open_jaegers_own_page() -> None:
    """Not a page of Grafana's that only some viewers may see."""

    def check(uid: str, panel: Panel) -> None:
        (override,) = panel.overrides
        (link,) = override["properties"][0]["value"]
        opened = resolved(link["url"].replace("${__value.raw}", "4bf92f"), chosen(uid))

        assert ("byRegexp", "/^(traceID|Trace ID)$/") == (override["matcher"]["id"], override["matcher"]["options"])
        assert "http://localhost:16686/trace/4bf92f" == opened

    assert [] == failing_panels(check, [(uid, panel) for uid, panel in PANELS if panel.in_jaeger])
