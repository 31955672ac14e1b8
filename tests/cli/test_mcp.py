"""`spanscore mcp`, asked by the client of the package mcp, and used wrongly."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT
from subprocess import PIPE, Popen
from typing import Any

import pytest

from cli.test_run_tools import DROPPED, GOOD, LATE, RULES, held, record
from commands import spanscore, spanscore_after
from deadline import DEADLINE_S
from serving import ON_ANY_PORT, serving

TOOLS = {"reasons": {"agent"}, "runs": {"reason", "agent", "limit"}, "run": {"trace_id"}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two evaluators."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Four runs, of which three fail."""
    return record(tmp_path / "runs.jsonl", GOOD, LATE, LATE, DROPPED)


@contextmanager
def of_recording(directory: Path, recording: str, config: Path) -> Iterator[list[str]]:
    """The recording with its configuration."""
    yield [recording, "--config", str(config)]


@contextmanager
def of_results(directory: Path, recording: str, config: Path) -> Iterator[list[str]]:
    """Its results."""
    results = directory / "results.jsonl"
    spanscore("score", recording, "--config", config, "--json", results)
    yield [str(results)]


@contextmanager
def of_serve(directory: Path, recording: str, config: Path) -> Iterator[list[str]]:
    """A receiver that has scored it, and asks for a token."""
    tokens = directory / "tokens"
    tokens.write_text("secret\n", encoding="utf-8")
    tokens.chmod(0o600)
    with serving(f"{ON_ANY_PORT}\npage: {{runs: 50, bearer_token_file: {tokens}}}\n{RULES}") as running:
        for line in Path(recording).read_bytes().splitlines():
            running.post(line, "application/json")
        held(running, 4)
        yield [running.pages, "--header", "Authorization=Bearer secret"]


@pytest.mark.processes
@pytest.mark.parametrize("source", [of_recording, of_results, of_serve])
def test_a_client_calls_every_tool(source: Callable[..., Any], tmp_path: Path, recording: str, config: Path) -> None:
    """Over standard input and output: from the reasons to the runs to one run. Mistakes are answers, too."""
    pytest.importorskip("mcp", reason="needs the package mcp: pip install --group mcp")
    from anyio import run as run_async  # noqa: PLC0415 - comes with mcp
    from mcp import StdioServerParameters  # noqa: PLC0415 - as above
    from mcp.client import Client  # noqa: PLC0415 - as above
    from mcp.client.stdio import stdio_client  # noqa: PLC0415 - as above

    async def ask(*arguments: str) -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "spanscore", "mcp", *arguments], env=dict(os.environ)
        )
        async with Client(stdio_client(command)) as client:

            async def answer(tool: str, **asked: object) -> str:
                found = await client.call_tool(tool, asked)
                assert not found.is_error, found
                (content,) = found.content
                return str(content.text)

            async def refusal(tool: str, **asked: object) -> str:
                found = await client.call_tool(tool, asked)
                assert found.is_error, found
                return str(found.content[0].text)

            tools = (await client.list_tools()).tools
            assert TOOLS == {each.name: set(each.input_schema["properties"]) for each in tools}
            assert all(each.annotations.read_only_hint and len(each.description) > 200 for each in tools)
            assert "`reasons` first" in client.instructions

            all_runs = json.loads(await answer("reasons", agent="refund"))
            assert (4, 3) == (all_runs["runs"], all_runs["failing"])
            rows = all_runs["reasons"]
            (late,) = (row for row in rows if "must_precede" in row["reason"])
            assert (2, 4) == (late["runs"], late["of"])
            found = json.loads(await answer("runs", reason=late["reason"], agent="refund", limit=1))
            assert (2, 1) == (found["matching"], len(found["runs"]))
            run = json.loads(await answer("run", trace_id=found["runs"][0]["trace_id"]))
            assert (["refund", "check"], 3) == ([call["name"] for call in run["tool_calls"]], int(run["trace_id"], 16))
            assert "no run has a trace id that begins with ffff" in await refusal("run", trace_id="ffff")
            assert "limit: must be a whole number from 1 to 50, not 500" == await refusal("runs", limit=500)
            assert "there is no argument 'agnet'; did you mean 'agent'?" == await refusal("runs", agnet="refund")
            assert "agent: 'refnd' matches no run; runs have refund" in await refusal("reasons", agent="refnd")

    with source(tmp_path, recording, config) as arguments:
        run_async(ask, *arguments)


@contextmanager
def asked(recording: str) -> Iterator[tuple[Popen[bytes], bytes]]:
    """Return a process that has answered a client, and the request."""
    pytest.importorskip("mcp", reason="needs the package mcp: pip install --group mcp")
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
    command = [sys.executable, "-m", "spanscore", "mcp", recording]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"{")
        yield process, request


@pytest.mark.processes
def test_a_client_may_close_its_end(recording: str) -> None:
    """The process ends without a traceback."""
    with asked(recording) as (process, request):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(request)
        _, told = process.communicate(timeout=DEADLINE_S)
    assert (0, b"") == (process.returncode, told)


@pytest.mark.processes
def test_ctrl_c_does_not_wait_for_a_line_of_standard_input(recording: str) -> None:
    """The process ends at once."""
    with asked(recording) as (process, _):
        process.send_signal(SIGINT)
        assert -SIGINT == process.wait(DEADLINE_S)


def test_without_the_extra_it_is_named(recording: str) -> None:
    """The error says how to install the extra."""
    ended = spanscore_after("import sys; sys.modules['mcp'] = None", "mcp", recording)

    message = "spanscore mcp needs the package mcp, of the extra 'mcp': pip install 'mcp>=2.3'\n"
    assert (2, message) == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "-: standard input belongs to the client: name files"),
        (["missing.jsonl"], "missing.jsonl: cannot be read: No such file or directory"),
        (["http://localhost:9464", "RECORDING"], "an address of `spanscore serve` is named alone, without files"),
        (["http://localhost:9464", "--config", "CONFIG"], "is named alone, without files and --config"),
        (["RECORDING", "--header", "A=b"], "--header is for the address of a running `spanscore serve`"),
        (["RESULTS", "--config", "CONFIG"], "--config is for recordings: results are scored already"),
        (["RECORDING", "--config", "RECORDING"], "runs.jsonl:2"),
        (["RECORDING", "--header", "A"], "--header: must be NAME=VALUE"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, tmp_path: Path, recording: str, config: Path) -> None:
    """Is told before anything is read."""
    with of_results(tmp_path, recording, config) as (results,):
        names = {"RECORDING": recording, "CONFIG": config, "RESULTS": results}
        ended = spanscore("mcp", *(names.get(each, each) for each in arguments))

    assert (2, "") == (ended.returncode, ended.stdout)
    assert message in ended.stderr
