"""The agent frameworks under test, each in an environment of its own, and how to run the agent in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.evaluation import EVALUATORS
from integration.processes import Lines, Pipe, Program

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv-integration"


def need_environment(name: str) -> None:
    """Skip the test if the environment of a framework was not made."""
    if not (ENVIRONMENTS / name / "spanscore-setup").exists():
        pytest.skip(f"needs the environment .venv-integration/{name}: scripts/integration makes it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """An agent framework."""

    name: str
    environment_name: str
    """The directory of its environment."""
    error: str
    """How its spans tell of the tool that fails."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it needs to record arguments and results, and to say nothing on standard error."""
    hiding: Mapping[str, str] = field(default_factory=dict)
    """What keeps arguments and results out of its spans; empty where only code does that."""

    @property
    def bin(self) -> Path:
        """The programs of its environment."""
        return ENVIRONMENTS / self.environment_name / "bin"


FRAMEWORKS = (
    Framework(
        name="google_adk",
        environment_name="google-adk",
        error="TOOL_ERROR",
        environment={
            "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        },
        hiding={"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"},
    ),
    Framework(
        name="langgraph",
        environment_name="langgraph-openllmetry",
        error="GatewayError: payment gateway timed out",
        hiding={"TRACELOOP_TRACE_CONTENT": "false"},
    ),
    Framework(
        name="openai_agents",
        environment_name="openai-agents",
        error="Error running tool (non-fatal): "
        "{'tool_name': 'issue_refund', 'error': 'Tool execution failed. Error details are redacted.'}",
        hiding={"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
    ),
    Framework(
        name="pydantic_ai",
        environment_name="pydantic-ai",
        error="pydantic_ai.exceptions.ToolRetryError: payment gateway timed out",
    ),
    Framework(
        name="strands",
        environment_name="strands",
        error="refunds.GatewayError: payment gateway timed out",
        # It does this itself, and so would `opentelemetry-instrument`.
        environment={"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "threading"},
    ),
)

AUTOMATIC: Mapping[str, str] = {
    "OTEL_TRACES_EXPORTER": "spanscore,otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
"""What `opentelemetry-instrument` sets up: receivers of traces get nothing else."""


class Agent:
    """The agent of a framework, doing its runs."""

    def __init__(self, program: Program, reports: Lines) -> None:
        self._program = program
        self.reports = reports

    def seconds(self) -> Mapping[str, float]:
        """Return how long each run took, as soon as all are done; the process may still be sending spans."""
        line = self._program.output.wait_for(lambda lines: lines[0] if lines else None)
        seconds: Mapping[str, float] = json.loads(line)
        return seconds

    def end(self) -> Sequence[str]:
        """Wait until it has ended well, and return what it wrote to standard error."""
        status = self._program.wait()
        errors = self._program.errors.to_the_end()

        assert 0 == status, "".join(errors)
        return errors


@contextmanager
def running(
    framework: Framework,
    door: str,
    directory: Path,
    environment: Mapping[str, str],
    exporters: Mapping[str, Any] | None = None,
) -> Iterator[Agent]:
    """Run the agent of a framework.

    Args:
        framework: the framework.
        door: how its spans leave it.
        directory: for the configuration.
        environment: where its spans go, and all else that OpenTelemetry's variables say.
        exporters: where its reports go, beside the test.
    """
    python = framework.bin / "python"
    assert python.exists(), f"there is no {python}: scripts/integration makes it"
    pipe = Pipe()
    configuration = directory / "in-process.yaml"
    settings = {"evaluators": EVALUATORS, "exporters": {"jsonl": {"path": pipe.path}, **(exporters or {})}}
    configuration.write_text(json.dumps(settings), encoding="utf-8")
    launcher = [str(framework.bin / "opentelemetry-instrument")] if door == "environment" else []
    program = Program(
        [*launcher, str(python), str(HERE / "agents" / f"{framework.name}_agent.py"), door],
        {
            "PATH": f"{framework.bin}:/usr/bin:/bin",
            "HOME": str(directory),
            "SPANSCORE_CONFIG": str(configuration),
            "OTEL_SERVICE_NAME": framework.name,
            "OTEL_BSP_SCHEDULE_DELAY": "20",
            **(AUTOMATIC if door == "environment" else {}),
            **framework.environment,
            **environment,
        },
        (pipe.writing,),
    )
    try:
        yield Agent(program, pipe.lines())
    finally:
        program.kill()
