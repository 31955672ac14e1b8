"""A receiver that hangs or is not there costs an agent neither time nor its scores."""

import socket
from pathlib import Path

import pytest

from integration.agents import refunds
from integration.evaluation import essence, expected, in_order
from integration.frameworks import Agent, Framework, running
from integration.holding import holding

COUNT = len(refunds.RUNS)
SLOW_S = 9.0
"""More than any run takes on a machine under load, and less than the 10 s that an OTLP exporter waits."""


def assert_not_slowed(agent: Agent) -> None:
    """Check that the agent does its runs as if nothing were wrong."""
    seconds = agent.seconds()

    assert refunds.RUNS.keys() == seconds.keys()
    assert max(seconds.values()) < SLOW_S


def assert_all_scored(agent: Agent, framework: Framework) -> None:
    """Check that the agent ends well, and that every run has its scores."""
    errors = agent.end()

    assert expected(framework.name, framework.error) == [*map(essence, in_order(agent.reports.to_the_end()))]
    assert [] == [line for line in errors if "Traceback" in line]


def test_a_processor_does_not_wait_for_a_receiver(framework: Framework, tmp_path: Path) -> None:
    """All runs are done and scored while neither the agent's exporter nor spanscore's own has had an answer."""
    with holding() as receiver:
        otlp = {"otlp": {"endpoint": receiver.endpoint}}
        with running(framework, "processor_beside_otlp", tmp_path, receiver.variables, otlp) as agent:
            assert_not_slowed(agent)
            agent.reports.wait_for(lambda lines: lines if len(lines) == COUNT else None)
            receiver.wait_for("/v1/traces")
            receiver.released.set()
            assert_all_scored(agent, framework)
        receiver.wait_for("/v1/logs", "/v1/metrics")


def test_a_wrapped_exporter_that_waits_holds_no_run_up(framework: Framework, tmp_path: Path) -> None:
    """The exporter behind waits on the batch processor's thread; what it holds up is scored afterwards."""
    with holding() as receiver, running(framework, "exporter_around_otlp", tmp_path, receiver.variables) as agent:
        assert_not_slowed(agent)
        receiver.wait_for("/v1/traces")
        receiver.released.set()
        assert_all_scored(agent, framework)


@pytest.mark.parametrize(
    ("protocol", "backlog"), [("http/protobuf", None), ("grpc", 64)], ids=["http-refuses", "grpc-hangs"]
)
def test_an_agent_ends_though_its_receiver_never_answers(
    framework: Framework, protocol: str, backlog: int | None, tmp_path: Path
) -> None:
    """The exporters give up after their timeout, and the process ends as always, with all scores."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        if backlog is not None:
            nobody.listen(backlog)  # the kernel takes the connections, and nobody reads them
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        }
        with running(framework, "environment", tmp_path, variables) as agent:
            assert_not_slowed(agent)
            assert_all_scored(agent, framework)
