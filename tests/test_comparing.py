"""docs/comparing.md: its output, and the steps of its jobs, run as they stand."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from cli.recorded_runs import recorded
from commands import spanscore

PAGE = (Path(__file__).parents[1] / "docs" / "comparing.md").read_text(encoding="utf-8")
COMMANDS = ["spanscore diff base.jsonl new.jsonl --config spanscore.yaml"]
GITHUB, GITLAB = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
GH = """#!/bin/sh
case "$*" in
*--jq*) cat "$COMMENTS" ;;
*) printf '%s\\n' "$*" >> "$CALLS" ;;
esac
"""
"""What stands for GitHub's own command: it lists the ids that are there, and writes down what it is told to do."""


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """The recordings of both versions, and the rule."""
    good, bad = ("lookup", "check", "refund"), ("lookup", "refund")
    for name, cases in (("base", [good] * 20), ("new", [good] * 10 + [bad] * 10)):
        recorded(tmp_path / f"{name}.jsonl", *((f"c{number}", *tools) for number, tools in enumerate(cases)))
    rule = "evaluators:\n  refund_rules: {type: tool_policy, must_precede: [[check, refund]]}\n"
    (tmp_path / "spanscore.yaml").write_text(rule, encoding="utf-8")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "spanscore.yaml").write_text(rule, encoding="utf-8")
    return tmp_path


def bash(script: str, directory: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the runners of both do."""
    path = os.pathsep.join([str(directory), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=directory, env={**os.environ, "PATH": path, **env}, check=False, capture_output=True, text=True
    )


def test_the_page_shows_what_is_printed(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word."""
    monkeypatch.chdir(versions)
    ended = spanscore(*COMMANDS[0].split()[1:], COLUMNS="130")

    shown = PAGE.partition("does otherwise:\n\n")[2].partition("\n\n|")[0]
    lines = [line.removeprefix("    ").rstrip() for line in shown.splitlines()]
    assert 1 == ended.returncode
    assert lines[:8] == [line.rstrip() for line in ended.stdout.splitlines()[:8]]
    assert {line for line in lines[8:] if line} <= set(ended.stdout.splitlines())


def step(contains: str) -> str:
    """The script of the one step of GitHub's job that has a text in it."""
    (script,) = [each["run"] for each in GITHUB["jobs"]["compare"]["steps"] if contains in each.get("run", "")]
    return str(script)


@pytest.mark.processes
def test_githubs_job_keeps_one_comment_up_to_date(versions: Path) -> None:
    """The first time it is written, then replaced; the verdict is the step's output, and the summary is the comment."""
    output, summary, calls, comments = (versions / name for name in ("output", "summary", "calls", "comments"))
    (versions / "gh").write_text(GH, encoding="utf-8")
    (versions / "gh").chmod(0o755)
    comments.touch()
    env = {"COMMENTS": str(comments), "CALLS": str(calls), "GITHUB_REPOSITORY": "o/r", "NUMBER": "7"}

    ended = bash(step("status=0"), versions, GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(summary))
    first = bash(step("gh api"), versions, **env)
    comments.write_text("41\n42\n", encoding="utf-8")
    second = bash(step("gh api"), versions, **env)

    assert (0, 0, 0) == (ended.returncode, first.returncode, second.returncode)
    assert "status=1\n" == output.read_text()
    assert summary.read_text().startswith("<!-- spanscore diff -->\n### \N{LARGE RED CIRCLE} spanscore: worse")
    assert [
        "api repos/o/r/issues/7/comments --field body=@comment.md",
        "api --method PATCH repos/o/r/issues/comments/41 --field body=@comment.md",
    ] == calls.read_text().splitlines()


class Notes(ThreadingHTTPServer):
    """The notes of one merge request."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = [{"id": 3, "body": "Looks good."}]
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Notes

    def do_GET(self) -> None:
        self._answer(self.server.notes)

    def do_POST(self) -> None:
        self.server.notes.append({"id": 9, "body": self._body()})
        self._answer(self.server.notes[-1])

    def do_PUT(self) -> None:
        (note,) = [note for note in self.server.notes if self.path.endswith(f"/notes/{note['id']}")]
        note["body"] = self._body()
        self._answer(note)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def _body(self) -> str:
        assert "secret" == self.headers["PRIVATE-TOKEN"]
        return parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["body"][0]

    def _answer(self, value: Any) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())


@pytest.fixture
def notes() -> Iterator[Notes]:
    """A server that has them."""
    with Notes() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.full_size
def test_gitlabs_job_keeps_one_note_up_to_date(versions: Path, notes: Notes) -> None:
    """The first time it is written, then replaced, and the job fails where the version is worse."""
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    lines = GITLAB["compare"]["script"]
    script = "\n".join(lines[lines.index("status=0") :])
    env = {"CI_API_V4_URL": f"http://127.0.0.1:{notes.server_port}", "COMMENT_TOKEN": "secret"}
    env |= {"CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"}

    ended = [bash(script, versions, **env) for _ in range(2)]

    assert [1, 1] == [each.returncode for each in ended], ended
    assert [3, 9] == [note["id"] for note in notes.notes]
    assert notes.notes[1]["body"] == (versions / "comment.md").read_text(encoding="utf-8")
    assert "Looks good." == notes.notes[0]["body"]


@pytest.mark.parametrize(
    "line",
    [*GITLAB["compare"]["script"], *(step["run"] for step in GITHUB["jobs"]["compare"]["steps"] if "run" in step)],
)
def test_every_line_is_one_that_a_shell_reads(line: str, tmp_path: Path) -> None:
    """Those that others run stand in these jobs as well."""
    assert 0 == bash(f"bash -n -c {shlex.quote(line)}", tmp_path).returncode
