"""The section `monitors`, and its two kinds of value: days and shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanscore import config
from spanscore.config import parts
from spanscore.errors import ConfigError
from spanscore.scoring.monitors.settings import MonitoredRuns, MonitorSettings

RULES = """
evaluators:
  rules: {type: tool_call_count, tool_calls_count: {fetch: ['=', 1]}}
  told: {type: tool_loops, informational: true}"""
EITHER = "must have either at_most and one_false_alarm_per, or new, stable and false_alarm"
VERSIONS = "new: {service.version: '2.*'}, stable: {service.version: '1.*'}, false_alarm: 1%"
OTHER_KEYS = "at_most: 5%, one_false_alarm_per: 30d"


def monitors(entry: str, evaluators: str = RULES) -> dict[str, MonitorSettings]:
    """Return the monitors of a configuration with one, named `one`."""
    return dict(
        config.loads(f"{evaluators}\nmonitors:\n  one: {{{entry}}}\n", "c.yaml", Path(), {"SHARE": "2%"}).monitors
    )


def problem(entry: str, evaluators: str = RULES) -> str:
    """Return what is wrong with a monitor, without its place."""
    with pytest.raises(ConfigError) as found:
        monitors(entry, evaluators)
    return str(found.value).partition(" ")[2]


def test_a_monitor_is_read() -> None:
    """As the documentation has it."""
    read = monitors(f"of: {{evaluator: rules, fails: true}}, by: [service.name], {OTHER_KEYS}")

    of = MonitoredRuns(evaluator="rules", fails=True)
    assert {
        "one": MonitorSettings(of=of, at_most=0.05, by=("service.name",), one_false_alarm_per_s=30 * 86_400.0)
    } == read
    assert {} == config.loads("monitors:\n", "c.yaml", Path()).monitors


@pytest.mark.parametrize(
    ("written", "share"), [("5%", 0.05), ("0.1 %", 0.001), ("0.05", 0.05), ("'${env:SHARE}'", 0.02)]
)
def test_shares(written: str, share: float) -> None:
    """A percentage or a number."""
    read = monitors(f"of: {{verdict: fail}}, at_most: {written}, one_false_alarm_per: 1d12h")["one"]

    assert (share, 36 * 60) == (read.at_most, read.minutes)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            f"of: {{evaluator: rule}}, {OTHER_KEYS}",
            "monitors.one.of.evaluator: there is no evaluator 'rule'; did you mean 'rules'?",
        ),
        (
            f"of: {{evaluator: told}}, {OTHER_KEYS}",
            "monitors.one.of.evaluator: 'told' is informational and fails no run",
        ),
        (f"of: {{}}, {OTHER_KEYS}", "monitors.one.of: must have one of evaluator, score, verdict and tool"),
        (f"of: {{evaluator: rules, tool: x}}, {OTHER_KEYS}", "monitors.one.of: must have one of"),
        (f"of: {{score: rules}}, {OTHER_KEYS}", "below: goes with score"),
        (f"of: {{verdict: fail, fails: true}}, {OTHER_KEYS}", "fails: goes with evaluator or tool"),
        (f"of: {{verdict: pass}}, {OTHER_KEYS}", "monitors.one.of.verdict: must be 'fail', not 'pass'"),
        (
            "of: {verdict: fail}, at_most: 51%, one_false_alarm_per: 30d",
            "monitors.one.at_most: must be at most 50%, not '51%'",
        ),
        (
            "of: {verdict: fail}, at_most: 5, one_false_alarm_per: 30d",
            "monitors.one.at_most: must be at most 50%, not 5; did you mean 5%?",
        ),
        ("of: {verdict: fail}, at_most: 51, one_false_alarm_per: 30d", "must be at most 50%, not 51"),
        (
            "of: {verdict: fail}, at_most: few, one_false_alarm_per: 30d",
            "monitors.one.at_most: must be a share such as '5%' or 0.05, not 'few'",
        ),
        ("of: {verdict: fail}, at_most: 5%, one_false_alarm_per: 30m", "must be at least 1h, not '30m'"),
        ("of: {verdict: fail}, at_most: 0.05%, one_false_alarm_per: 30d", "must be at least 0.1%, not '0.05%'"),
        (
            "of: {verdict: fail}, at_most: 5%, one_false_alarm_per: month",
            "must be a duration such as '500ms', '1m30s' or '30d', not 'month'",
        ),
        (f"of: {{evaluator: rules, fails: false}}, {OTHER_KEYS}", "of.fails: must be true, not false"),
        (f"of: {{verdict: fail}}, by: [a, b, a], {OTHER_KEYS}", "by: has 'a' more than once"),
        (f"of: {{verdict: fail}}, {VERSIONS.replace('2', '1')}", "new and stable: must not be equal"),
        (f"of: {{verdict: fail}}, by: [a, b, c, d], {OTHER_KEYS}", "monitors.one.by: must have at most 3 items"),
        (OTHER_KEYS, "monitors.one.of: the key is required"),
        ("of: {verdict: fail}", f"monitors.one: {EITHER}; it has none of them"),
        ("of: {verdict: fail}, at_most: 5%", f"monitors.one: {EITHER}; one_false_alarm_per is missing"),
        ("of: {verdict: fail}, new: {a: b}", f"monitors.one: {EITHER}; stable and false_alarm are missing"),
        (
            f"of: {{verdict: fail}}, {OTHER_KEYS}, false_alarm: 1%",
            f"monitors.one: {EITHER}; at_most does not go with false_alarm",
        ),
        (f"of: {{verdict: fail}}, {VERSIONS}, by: [a]", "by: cannot be given with new and stable"),
        (f"of: {{verdict: fail}}, {VERSIONS.replace('1%', '30%')}", "false_alarm: must be at most 20%, not '30%'"),
    ],
)
def test_mistakes(entry: str, message: str) -> None:
    """Each names what is wrong and what is allowed."""
    assert message in problem(entry)


def test_masked_attributes_are_refused() -> None:
    """Their values would be in names of series, or match nothing."""
    masked = RULES + "\ncontent: {mask: [plan, '*_token']}"

    assert "monitors.one.by[1]: 'user.plan' is masked by 'plan' of content.mask" in problem(
        f"of: {{verdict: fail}}, by: [service.name, user.plan], {OTHER_KEYS}", masked
    )
    versions = "new: {a_token: x}, stable: {service.version: y}, false_alarm: 1%"
    assert "new.a_token: 'a_token' is masked by '*_token'" in problem(f"of: {{verdict: fail}}, {versions}", masked)
    assert monitors(f"of: {{verdict: fail}}, by: [order.id, planner], {OTHER_KEYS}", masked)


def test_an_evaluator_over_conversations_is_no_run() -> None:
    """Monitors count runs."""
    talks = "conversations: {}\nevaluators: {talk: {type: tool_loops, over: conversation}}"

    assert "'talk' evaluates conversations; monitors count runs" in problem(
        f"of: {{evaluator: talk}}, {OTHER_KEYS}", talks
    )


@pytest.mark.parametrize(
    ("key", "entry"), [("user.plan", f"by: [user.plan], {OTHER_KEYS}"), ("service.version", VERSIONS)]
)
def test_the_attributes_of_series_are_read(key: str, entry: str) -> None:
    """What no dialect reads is kept of spans if a monitor is split by it, or compares by it."""
    loaded = config.loads(f"monitors: {{one: {{of: {{verdict: fail}}, {entry}}}}}", "c.yaml", Path())

    assert key == parts.wanted(loaded).attributes[key]
