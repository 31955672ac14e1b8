"""`informational: true`: measured and told everywhere, and nowhere a label, a verdict or an exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.recorded_runs import recorded
from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, report
from spanscore.cli import main
from spanscore.contracts.instruments.instrument import EVALUATIONS, RUNS, SCORE
from spanscore.emitters._report_line import line
from spanscore.metrics.measurements import measurements
from spanscore.model import Outcome, Report
from spanscore.reports.evaluation_event import event_attributes, sentence, severity, span_attributes

CONFIG = """
evaluators:
  golden: {type: tool_call_count, tool_calls_count: {lookup: 1}, informational: true}
  other: {type: tool_policy, max_calls: 3}
"""


def informational(*outcomes: Outcome) -> Report:
    """Return a report in which all is informational."""
    made = report(*outcomes)
    return replace(made, evaluations=tuple(replace(each, informational=True) for each in made.evaluations))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return arguments that score two runs, of which the second would fail by what is informational."""
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG)
    return ["score", recorded(tmp_path / "r.jsonl", ("a", "lookup"), ("b", "pay")), "--config", str(config)]


@pytest.mark.parametrize("outcome", [PASSED, NOT_PASSED, SKIPPED, BROKEN])
def test_a_run_of_which_nothing_else_is_known_has_no_verdict(outcome: Outcome) -> None:
    """Neither what passed nor what failed counts."""
    told = informational(outcome)

    assert ("none", ()) == (told.verdict, told.failing)
    assert {} == span_attributes(told)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((), "none"),
        ((SKIPPED,), "none"),
        ((PASSED, SKIPPED), "pass"),
        ((PASSED, NOT_PASSED), "fail"),
        ((PASSED, BROKEN), "fail"),
    ],
)
def test_the_verdict_of_what_decides(outcomes: tuple[Outcome, ...], verdict: str) -> None:
    """`pass` when at least one evaluation passed and none failed, `fail` when one failed, else `none`."""
    decided, measured = report(*outcomes), informational(NOT_PASSED)
    both = replace(decided, evaluations=decided.evaluations + measured.evaluations)

    assert verdict == both.verdict
    assert [verdict] == [values[0] for instrument, _, values in measurements(both) if instrument is RUNS]


def test_the_score_is_measured_and_counted_without_pass_or_fail() -> None:
    """Its histogram is that of every score."""
    found = [(instrument, value, values) for instrument, value, values in measurements(informational(NOT_PASSED))]

    assert (SCORE, 0.25, ("e1", "refund", "shop")) in found
    assert (EVALUATIONS, 1, ("e1", "informational", "refund", "shop")) in found


@pytest.mark.parametrize(("outcome", "grave"), [(PASSED, "INFO"), (NOT_PASSED, "INFO"), (BROKEN, "ERROR")])
def test_the_event_has_no_label(outcome: Outcome, grave: str) -> None:
    """It is a warning to nobody; an evaluator that went wrong is still an error of the evaluator."""
    told = informational(outcome)
    attributes = event_attributes(told, told.evaluations[0])

    assert "gen_ai.evaluation.score.label" not in attributes
    assert sentence(attributes).startswith("e1: informational. ")
    assert grave == severity(told.evaluations[0])


def test_the_console_shows_the_number_alone() -> None:
    """It has the mark of a run without verdict, and says nothing of why it would not have passed."""
    assert "e1=0.25" in line(informational(NOT_PASSED), 0.0)
    assert "1 of 4 calls" not in line(informational(NOT_PASSED), 0.0)


def test_it_decides_no_exit_status(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Neither of a run nor of a mean; the table has its mean, and neither passed nor failed."""
    assert [0, 0] == [main([*arguments, *more]) for more in ([], ["--fail-under", "1"])]
    assert ["golden", "tool_call_count", "-", "-", "0", "0", "0.500"] in [
        each.split() for each in capsys.readouterr().out.splitlines()
    ]


def test_one_that_scored_nothing_fails_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What decides has to have checked something; what measures does not."""
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG.replace("informational: true", "informational: true, match: {service.name: none}"))
    recording = recorded(tmp_path / "r.jsonl", ("a", "lookup"))

    assert 0 == main(["score", recording, "--config", str(config)])
    told = "golden measured nothing: matched no run: match service.name: none; no run has 'service.name'"
    assert told in capsys.readouterr().out.splitlines()


def test_nothing_decides(tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without an evaluator that is not informational nothing is checked: every output and the status agree."""
    written = [f"--{form}={tmp_path / form}" for form in ("markdown", "junit", "html")]
    arguments += ["--evaluator", "golden", *written]

    assert [1, 0] == [main([*arguments, *more]) for more in ([], ["--allow-unscored"])]
    assert main([*arguments, "--format", "json"])
    told = "nothing was checked: every evaluator is informational"
    output = capsys.readouterr()
    assert (2, [told]) == (output.out.splitlines().count(told), output.err.splitlines())
    for form in ("markdown", "junit", "html"):
        assert told in (tmp_path / form).read_text(encoding="utf-8")
    assert "checked nothing: 2 runs" in (tmp_path / "markdown").read_text(encoding="utf-8")
    assert ["1"] == [
        each.get("errors") for each in ET.parse(tmp_path / "junit").getroot() if each.get("name") == "input"
    ]


def test_json_has_the_value_without_a_verdict(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`passed` is null, and the run's verdict is that of the others."""
    assert 0 == main([*arguments, "--format", "json"])
    second = json.loads(capsys.readouterr().out.splitlines()[1])

    golden = second["outcomes"]["golden"]
    assert (True, None, 0.0) == (golden["informational"], golden["passed"], golden["value"])
    assert "informational" not in second["outcomes"]["other"]
    assert "pass" == second["verdict"]


def test_junit_skips_it_with_its_score(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A case that is not skipped would be a pass or a failure."""
    assert 0 == main([*arguments, "--format", "junit"])
    suites = {each.get("name"): each for each in ET.fromstring(capsys.readouterr().out)}

    assert ("0", "2") == (suites["golden"].get("failures"), suites["golden"].get("skipped"))
    messages = [each.get("message") or "" for each in suites["golden"].iter("skipped")]
    assert ["informational: score 1", "informational: score 0"] == [each.partition(":  ")[0][:22] for each in messages]
