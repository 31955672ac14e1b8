"""Prometheus takes the rules, and each alert fires when it should and not when it should not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cases import failing
from deadline import DEADLINE_S
from spanscore.contracts.instruments.instrument import SCORE_INSTRUMENTS, InstrumentKind
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.metrics.exposition import prometheus_name

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
GRAFANA = PROMETHEUS.with_name("grafana")
UNIT_TESTS = sorted((PROMETHEUS / "tests").glob("*.yaml"))
RULES = [rule for group in yaml.safe_load((PROMETHEUS / "rules.yaml").read_text())["groups"] for rule in group["rules"]]
ALERTS = [rule["alert"] for rule in RULES if "alert" in rule]

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="needs the program promtool: on Debian and Ubuntu, apt-get install prometheus",
)


def promtool(*arguments: str | Path) -> tuple[int, str]:
    """Run promtool; return its status and what it says."""
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.programs
@needs_promtool
def test_prometheus_takes_its_configuration() -> None:
    """Nothing is wrong, by promtool, with the configuration and the rules in it."""
    status, said = promtool("check", "config", PROMETHEUS / "prometheus.yaml")

    assert 0 == status, said
    assert f"{len(RULES)} rules found" in said


@pytest.mark.programs
@needs_promtool
@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path: Path) -> None:
    """The unit tests of the rules hold."""
    status, said = promtool("test", "rules", path)

    assert 0 == status, said


@pytest.mark.programs
@needs_promtool
@pytest.mark.parametrize(("expression", "noticed"), [("vector(1) == 0", "fires"), ("vector(1)", "is silent")])
def test_unit_tests_notice_alerts_that_are_wrong(expression: str, noticed: str, tmp_path: Path) -> None:
    """When alerts never fire, each case in which one should fails; when they always do, each in which it should not."""
    document = yaml.safe_load((PROMETHEUS / "rules.yaml").read_text(encoding="utf-8"))
    for rule in (rule for group in document["groups"] for rule in group["rules"] if "alert" in rule):
        rule["expr"] = expression
        rule.pop("for", None)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "tests").mkdir()
    for path in UNIT_TESTS:
        tests = yaml.safe_load(path.read_text(encoding="utf-8"))
        # Such an alert is at all times the same: the first minutes tell it, of the hours that some cases take.
        for query in (query for case in tests["tests"] for query in case["promql_expr_test"]):
            query["eval_time"] = "5m"
        (tmp_path / "tests" / path.name).write_text(yaml.safe_dump(tests), encoding="utf-8")
    _, said = promtool("test", "rules", *(tmp_path / "tests").iterdir())
    asked = {"fires": r'ALERTS\{alertname=\\?"(\w+)\\?",alertstate', "is silent": r'ALERTS\{alertname=\\?"(\w+)\\?"\}'}

    assert set(ALERTS) == set(re.findall(asked[noticed], said))


def test_each_alert_has_a_case_for_and_a_case_against() -> None:
    """A unit test shows that it fires, and another that it is silent; it says what to do, and how bad it is."""
    cases = "".join(path.read_text(encoding="utf-8") for path in UNIT_TESTS)

    def check(alert: str) -> None:
        (rule,) = (rule for rule in RULES if rule.get("alert") == alert)

        assert f"name: {alert} fires " in cases
        assert f"name: {alert} is silent " in cases
        assert {"summary", "description"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in {"warning", "critical"}

    assert [] == failing(check, {alert: (alert,) for alert in ALERTS})


def test_alerts_name_panels_and_boards_that_are_there() -> None:
    """Who is told to look at a panel or a board finds it by its title; a panel may be one for each service."""
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in (GRAFANA / "dashboards").glob("*.json")]
    panels = {panel["title"].partition(": $")[0] for board in boards for panel in board["panels"]}
    told = " ".join(rule["annotations"]["description"] for rule in RULES if "alert" in rule)
    named = {kind: set(re.findall(rf'{kind} "([^"]+)"', told)) for kind in ("panel", "board")}

    assert (
        {
            "Delay of exporters",
            "Errors of tools",
            "Failing runs by reason",
            "Failing runs of monitors",
            "Loops",
            "Refused requests",
            "Runs that wait for approval",
            "Traces of failing runs",
            "Verdicts that late spans changed",
        }
        == named["panel"] & panels
        == named["panel"]
    )
    assert {"spanscore: one evaluator"} == named["board"] & {board["title"] for board in boards} == named["board"]


def test_what_an_alert_is_about_is_on_a_board() -> None:
    """Every metric of an alert, and of the rules that record for it, is drawn; an alarm of a monitor as evidence."""
    boards = "".join(path.read_text(encoding="utf-8") for path in (GRAFANA / "dashboards").glob("*.json"))
    metrics = {prometheus_name(each) for each in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)}
    drawn, about = ({each for each in metrics if each in text} for text in (boards, str(RULES)))

    assert {"spanscore_monitor_alarm"} == about - drawn


def test_rules_name_metrics_that_exist() -> None:
    """Every metric is one of spanscore's, one that an earlier rule records, or Prometheus' own."""
    measured = {
        f"{prometheus_name(each)}{end}"
        for each in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)
        for end in (("_bucket", "_sum", "_count") if each.kind is InstrumentKind.HISTOGRAM else ("",))
    }
    recorded = {each["record"] for each in RULES if "record" in each}
    labels = re.compile(r'by \([^)]*\)|\{[^}]*\}|"[^"]*"')

    def check(rule: dict[str, str]) -> None:
        named = set(re.findall(r"\b[a-z]\w*:[\w:]+|\b(?:spanscore|gen_ai)_\w+", labels.sub("", rule["expr"])))

        assert named <= measured | recorded

    cases = {f"{number}-{rule.get('alert') or rule['record']}": (rule,) for number, rule in enumerate(RULES)}
    assert [] == failing(check, cases)


def test_operator_gets_the_same_rules() -> None:
    """`python deploy/prometheus` has nothing to write."""
    command = [sys.executable, PROMETHEUS, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    wrapped = yaml.safe_load((PROMETHEUS / "kubernetes" / "prometheusrule.yaml").read_text(encoding="utf-8"))

    assert (0, "") == (done.returncode, done.stdout)
    assert RULES == [rule for group in wrapped["spec"]["groups"] for rule in group["rules"]]
