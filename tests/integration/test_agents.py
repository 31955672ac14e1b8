"""Agents of real frameworks, scored by a receiver, in their own process, and by both."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.agents import refunds
from integration.evaluation import essence, expected, in_order
from integration.frameworks import FRAMEWORKS, Framework, need_environment, running
from integration.receiver import Receiver

COUNT = len(refunds.RUNS)


@pytest.mark.parametrize("compression", [{}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}], ids=["plain", "gzip"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_receiver_scores_what_an_agent_sends(
    framework: Framework, protocol: str, compression: Mapping[str, str], receiver: Receiver, tmp_path: Path
) -> None:
    """With nothing but OpenTelemetry's own exporter in the agent, the receiver sees what the model asked for."""
    service = f"{framework.name} {protocol} {' '.join(compression.values())}"
    variables = {**receiver.variables(protocol), **compression, "OTEL_SERVICE_NAME": service}
    with running(framework, "otlp", tmp_path, variables) as agent:
        errors = agent.end()

    assert expected(service, framework.error) == [*map(essence, receiver.reports(service, COUNT))]
    assert [] == errors


def test_a_processor_scores_in_the_agents_process(framework: Framework, tmp_path: Path) -> None:
    """With no exporter and no receiver, ScoringSpanProcessor scores every run before the process ends."""
    with running(framework, "processor", tmp_path, {}) as agent:
        errors = agent.end()
        reports = in_order(agent.reports.to_the_end())

    assert expected(framework.name, framework.error) == [*map(essence, reports)]
    assert [] == errors


@pytest.mark.parametrize("door", ["processor_beside_otlp", "exporter_around_otlp", "environment"])
def test_the_same_runs_give_the_same_reports_through_both_doors(
    framework: Framework, door: str, receiver: Receiver, tmp_path: Path
) -> None:
    """What is scored in the process and by the receiver is equal, to the last digit and explanation."""
    service = f"{framework.name} {door}"
    with running(framework, door, tmp_path, {**receiver.variables(), "OTEL_SERVICE_NAME": service}) as agent:
        errors = agent.end()
        in_process = in_order(agent.reports.to_the_end())

    assert expected(service, framework.error) == [*map(essence, in_process)]
    assert in_process == receiver.reports(service, COUNT)
    assert [] == errors


@pytest.mark.parametrize("framework", [found for found in FRAMEWORKS if found.hiding], ids=lambda found: found.name)
def test_hidden_arguments_are_not_held_against_an_agent(framework: Framework, tmp_path: Path) -> None:
    """What needs them is skipped and says so; all else has the score that it has with them."""
    need_environment(framework.environment_name)
    with running(framework, "processor", tmp_path, framework.hiding) as agent:
        agent.end()
        reports = in_order(agent.reports.to_the_end())
    names = [[call.name for step in steps for call in step] for steps in refunds.RUNS.values()]
    scores = [report["scores"] for report in expected(framework.name, framework.error)]

    assert [
        {**scored, "refund": {"type": "trajectory_match", "outcome": "skipped", "reason": unrecorded(called)}}
        for scored, called in zip(scores, names, strict=True)
    ] == [essence(report)["scores"] for report in reports]


def unrecorded(names: list[str]) -> str:
    """Return why calls cannot be compared."""
    tools = ", ".join(map(repr, dict.fromkeys(names)))
    return f"arguments of {len(names)} calls of {tools} were not recorded"
