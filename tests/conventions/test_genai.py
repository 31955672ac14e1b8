"""Names that are read and written are those of the GenAI semantic conventions, as `genai.yaml` has them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

import spanscore
from dialects.spans import read, span
from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, call, report, trajectory
from spanscore.contracts.instruments.instrument import SCORE, SCORE_INSTRUMENTS, SERVICE, SWITCHABLE, Instrument
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.emitters.otlp._encoded_metrics import EncodedMetrics
from spanscore.metrics.accumulation import Accumulation, Origin
from spanscore.metrics.measurements import measurements
from spanscore.model import Report
from spanscore.reports.evaluation_event import NAME, event_attributes

CONVENTIONS: Final[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("genai.yaml").read_text("utf-8"))
REGISTERED: Final[dict[str, str]] = CONVENTIONS["attributes"]
PROPOSED: Final[dict[str, str]] = CONVENTIONS["proposed"]
EVENT: Final[dict[str, str]] = CONVENTIONS["events"][NAME]["attributes"]
REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"
EXECUTE_TOOL: Final[dict[str, str]] = CONVENTIONS["spans"]["gen_ai.execute_tool.internal"]["attributes"]
RENAMED: Final[dict[str, str]] = CONVENTIONS["renamed"]
SOURCES: Final = Path(spanscore.__file__).parent
TYPES: Final[dict[str, type]] = {"string": str, "double": float, "int": int, "boolean": bool}

EVERYTHING: Final = report(
    PASSED,
    NOT_PASSED,
    SKIPPED,
    BROKEN,
    about=trajectory(
        call("search", 5, tool_type="function"),
        call("book", 20, error="TimeoutError: no answer", error_type="TimeoutError"),
        conversation_id="c-1",
        response_id="r-1",
        attributes={"test.case.name": "refund twice", "test.suite.name": "shop"},
    ),
)


def sent(about: Report) -> dict[str, Metric]:
    """Return the metrics of a report as they go out over OTLP."""
    sums = Accumulation()
    sums.record_all(measurements(about), Origin(about.trajectory.trace_id, about.trajectory.root_span_id, time.time()))
    metrics = [Metric.FromString(each) for each in EncodedMetrics(sums, time.time_ns()).collect(time.time_ns())]
    return {metric.name: metric for metric in metrics}


@pytest.mark.parametrize("instrument", SWITCHABLE, ids=lambda each: each.name)
def test_metrics(instrument: Instrument) -> None:
    """Kind, unit and boundaries are the convention's, and so are the attributes, of which each has its right type."""
    convention = CONVENTIONS["metrics"][instrument.name]
    metric = sent(EVERYTHING)[instrument.name]
    points = metric.histogram.data_points
    attributes = [{each.key: each.value for each in point.attributes} for point in points]

    assert (convention["instrument"], convention["unit"]) == (metric.WhichOneof("data"), metric.unit)
    assert [convention["boundaries"]] * len(points) == [list(point.explicit_bounds) for point in points]
    assert set(convention["attributes"]) | {SERVICE} == set().union(*attributes)
    required = {key for key, level in convention["attributes"].items() if level == "required"}
    for each in attributes:
        assert required <= set(each)
        assert {"string_value"} == {value.WhichOneof("value") for value in each.values()}
        assert {"string"} == {REGISTERED[key] for key in each}


def test_no_other_metric_takes_a_name_of_the_conventions() -> None:
    """All others are our own by name, but for the score, which the pages call no convention."""
    others = {each.name for each in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)} - {each.name for each in SWITCHABLE}

    assert {SCORE.name} == {name for name in others if not name.startswith("spanscore.")}
    assert SCORE.name not in CONVENTIONS["metrics"]


@pytest.mark.parametrize("instrument", [*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS], ids=lambda each: each.name)
def test_units_and_attributes(instrument: Instrument) -> None:
    """Units are UCUM's, with what is counted in braces; attributes are registered, or our own by name."""
    assert re.fullmatch(r"1|s|By|\{[a-z_]+\}", instrument.unit)
    assert {key for key in instrument.attributes if not key.startswith("spanscore.")} <= set(REGISTERED)


def test_events() -> None:
    """What the convention requires is there, and every attribute is registered, proposed or our own by name."""
    found: dict[str, Any] = {}
    for evaluation in EVERYTHING.evaluations:
        told = event_attributes(EVERYTHING, evaluation)
        assert {key for key, level in EVENT.items() if level == "required"} <= set(told)
        found |= told

    assert set(EVENT) <= set(found)
    for key, value in found.items():
        if not key.startswith("spanscore."):
            assert isinstance(value, TYPES[(REGISTERED | PROPOSED)[key]])


def test_the_page_says_whose_each_attribute_is() -> None:
    """The event's own, registered for other uses, proposed, or ours."""
    page = (REFERENCE / "events.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([^`]+)` \| \w+ \| ([^|]+) \|", page, re.MULTILINE))

    def whose(key: str) -> str:
        if key in EVENT:
            return "event"
        if key in PROPOSED:
            return "proposed"
        return "registry" if key in REGISTERED else "our own"

    assert told
    assert {key: whose(key) for key in told} == told
    assert CONVENTIONS["events"]["commit"] in page


def test_the_pages_name_the_commits() -> None:
    """Whoever compares knows with what."""
    assert CONVENTIONS["metrics"]["commit"] in (REFERENCE / "metrics.md").read_text(encoding="utf-8")


def test_an_execution_of_a_tool_is_read_in_full() -> None:
    """Its span needs no other beside it to tell the agent and the conversation."""
    told = {
        "error.type": "TimeoutError",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": "c-1",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.description": "Books a hotel.",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": '{"nights": 2}',
        "gen_ai.tool.call.result": '{"id": "BK-1"}',
    }
    (trajectory,) = read(span(1, "execute_tool book", told))
    (made,) = trajectory.calls

    assert set(EXECUTE_TOOL) == set(told)
    assert ("planner", "c-1") == (trajectory.agent, trajectory.conversation_id)
    assert ("book", "planner", "call_1", "function") == (made.name, made.agent, made.call_id, made.tool_type)
    assert ({"nights": 2}, {"id": "BK-1"}, "TimeoutError") == (made.arguments, made.result, made.error_type)


@pytest.mark.parametrize("old", sorted(key for key in RENAMED if key.startswith("gen_ai.usage.")))
def test_both_names_of_what_was_renamed_are_read(old: str) -> None:
    """Instrumentations move one by one; where both are there, the new name counts."""

    def written(tokens: dict[str, int]) -> int | None:
        (trajectory,) = read(span(1, "chat", {"gen_ai.operation.name": "chat", **tokens}), model_calls=True)
        return trajectory.model_calls[0].cache_creation_tokens

    assert [4, 4, 5] == [written({old: 4}), written({RENAMED[old]: 4}), written({old: 4, RENAMED[old]: 5})]


def test_no_code_but_that_which_reads_has_an_old_name() -> None:
    """All that is emitted has the names of today: of the conventions, proposed to them, or our own."""
    now = REGISTERED.keys() | PROPOSED.keys() | CONVENTIONS["metrics"].keys() | {NAME, SCORE.name}
    files = [
        path for path in SOURCES.rglob("*.py") if not {"dialects", "reading"} & set(path.relative_to(SOURCES).parts)
    ]
    found = {name for path in files for name in re.findall(r"\"(gen_ai\.[a-z_.]+[a-z])\"", path.read_text("utf-8"))}

    assert {"gen_ai.agent.name", NAME} <= found <= now
    assert not now & (RENAMED.keys() | set(CONVENTIONS["removed"]))
