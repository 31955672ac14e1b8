"""action.yml and the job for GitLab: their steps, run as a runner does, against a server that keeps comments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from cli.recorded_runs import recorded

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "deploy" / "ci" / "gitlab.yml").read_text(encoding="utf-8"))["spanscore"]
RULE = "evaluators:\n  refund_rules: {type: tool_policy, must_precede: [[check, refund]]}\n"
GOOD, BAD = ("lookup", "check", "refund"), ("lookup", "refund")
TOKEN = "secret"
GREEN = {"id": 131, "body": "<!-- spanscore: spanscore -->\nall green", "user": {"type": "Bot", "id": 41898282}}


class Api(ThreadingHTTPServer):
    """The comments of one pull request, by the API of GitHub and of GitLab."""

    def __init__(self) -> None:
        self.comments = [
            {"id": number, "body": "Looks good.", "user": {"type": "User", "id": 5}} for number in range(1, 131)
        ]
        self.refuses = False
        self.page = b""
        """The answer to everything, where it is no API."""
        self.user: int | None = None
        """That of the token; a job's token of GitHub has none."""
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def ours(self) -> list[dict[str, Any]]:
        """The comments that people did not write."""
        return [each for each in self.comments if each["body"] != "Looks good."]


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        if self.path == "/user":
            self._answer({"id": self.server.user}, allowed=self.server.user is not None)
            return
        asked = {name: int(value) for name, (value,) in parse_qs(urlsplit(self.path).query).items()}
        start = (asked["page"] - 1) * asked["per_page"]
        self._answer(self.server.comments[start : start + asked["per_page"]])

    def do_POST(self) -> None:
        author = {"type": "Bot", "id": self.server.user or 41898282}
        self.server.comments.append({"id": len(self.server.comments) + 1, "body": self._body(), "user": author})
        self._answer(self.server.comments[-1])

    def do_PATCH(self) -> None:
        comment = self.server.comments[int(self.path.rpartition("/")[2]) - 1]
        body, is_allowed = self._body(), comment["user"]["type"] == "Bot"
        if is_allowed:
            comment["body"] = body
        self._answer(comment, allowed=is_allowed)

    def do_PUT(self) -> None:
        self.do_PATCH()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def _body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def _answer(self, value: Any, *, allowed: bool = True) -> None:
        allowed &= TOKEN in {self.headers["PRIVATE-TOKEN"], str(self.headers["Authorization"]).removeprefix("Bearer ")}
        self.send_response(200 if allowed and not self.server.refuses else 403)
        self.end_headers()
        self.wfile.write(self.server.page or json.dumps(value if allowed else {"message": "not accessible"}).encode())


@pytest.fixture
def api() -> Iterator[Api]:
    """A server with 130 comments: two pages of them."""
    with Api() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Runner:
    """Runs the steps of a composite action one after the other, with what a runner puts into their environment."""

    def __init__(self, directory: Path, api: Api | None) -> None:
        self.directory = directory
        self.temporary = directory / "runner-temp"
        self.temporary.mkdir()
        self.uploaded: list[dict[str, str]] = []
        self.said = ""
        self._installs = False
        self._values = {"github.token": TOKEN, "github.event.pull_request.number": "7" if api else ""}
        self._env = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": api.address if api else "",
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "GITHUB_REPOSITORY": "owner/agent",
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "RUNNER_TEMP": str(self.temporary),
        }

    @property
    def summary(self) -> str:
        """The summary of the job."""
        return (self.temporary / "summary").read_text(encoding="utf-8")

    def run(self, *, install: bool = False, **inputs: str) -> int:
        """Run the action; return the status of the step that failed, or 0."""
        for name, declared in ACTION["inputs"].items():
            given = inputs.pop(name.replace("-", "_"), None)
            assert given is not None or not declared.get("required"), name
            self._values[f"inputs.{name}"] = self._filled(declared.get("default", "")) if given is None else given
        assert not inputs
        if not install:
            (self.temporary / "spanscore" / "bin").mkdir(parents=True, exist_ok=True)
            program = self.temporary / "spanscore" / "bin" / "spanscore"
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -m spanscore "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        self._installs = install
        failed = 0
        for step in ACTION["runs"]["steps"]:
            condition = step.get("if", "")
            if (failed and "cancelled()" not in condition) or not self._holds(condition):
                continue
            failed = self._step(step) or failed
        return failed

    def _step(self, step: dict[str, Any]) -> int:
        if "uses" in step:
            self.uploaded.append({name: self._filled(value) for name, value in step["with"].items()})
            return 0
        output = Path(self._env["GITHUB_OUTPUT"])
        output.write_text("", encoding="utf-8")
        env = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        if not self._installs:
            env.pop("PREPARE", None)
        assert step["shell"] == "bash"
        done = bash(step["run"], self.directory, {**self._env, **env})
        self.said += done.stdout + done.stderr
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self._values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) }}", lambda found: self._values.get(found[1], ""), text)

    def _holds(self, condition: str) -> bool:
        parts = condition.removeprefix("${{ ").removesuffix(" }}").split(" && ")
        return all(self._is_true(part) for part in parts if part)

    def _is_true(self, part: str) -> bool:
        name, _, other = part.partition(" != ")
        return name == "!cancelled()" or self._values.get(name, "") != other.strip("'")


def bash(script: str, directory: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as the runners of both do."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=directory, env={**os.environ, "PATH": path, **env}, check=False, capture_output=True, text=True
    )


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Recordings of two versions, of which the second is worse, and the rule."""
    for name, cases in (("base", [GOOD] * 20), ("new", [GOOD] * 10 + [BAD] * 10)):
        recorded(tmp_path / f"{name}.jsonl", *((f"c{number}", *tools) for number, tools in enumerate(cases)))
    (tmp_path / "spanscore.yaml").write_text(RULE, encoding="utf-8")
    return tmp_path


@pytest.mark.processes
def test_one_comment_is_kept_up_to_date(versions: Path, api: Api) -> None:
    """It is found behind a page of other comments; the comparison stands first in it, and both decide."""
    runner = Runner(versions, api)

    worse = runner.run(recordings="new.jsonl", base="base.jsonl", config="spanscore.yaml")
    (comment,) = [dict(each) for each in api.ours]
    same = runner.run(recordings="base.jsonl\n", base="base.jsonl", config="spanscore.yaml", name="other")

    again = runner.run(recordings="base.jsonl", config="spanscore.yaml")

    assert (1, 0, 0) == (worse, same, again), runner.said
    assert comment["body"].startswith(
        "<!-- spanscore: spanscore -->\n<!-- spanscore diff -->\n### \N{LARGE RED CIRCLE}"
    )
    assert "\n\n<!-- spanscore score -->\n### \N{LARGE RED CIRCLE}" in comment["body"]
    # That of another agent is a comment of its own.
    assert [131, 132] == [each["id"] for each in api.ours]
    assert "20 runs" in api.ours[0]["body"]
    assert comment["body"] in runner.summary
    assert ["spanscore", "other", "spanscore"] == [each["name"] for each in runner.uploaded]
    for pattern in runner.uploaded[1]["path"].split():
        assert list(versions.glob(str(Path(pattern).relative_to(versions)))), pattern


@pytest.mark.processes
def test_failing_runs_fail_without_a_comparison(versions: Path) -> None:
    """On a push there is no pull request to comment on; the summary has the text."""
    runner = Runner(versions, None)

    assert 1 == runner.run(recordings="new.jsonl", config="spanscore.yaml")
    assert "runs failed or were not checked" in runner.said
    assert runner.summary.startswith("<!-- spanscore: spanscore -->\n<!-- spanscore score -->")
    assert runner.uploaded


@pytest.mark.processes
def test_too_few_runs_are_a_notice(versions: Path, api: Api) -> None:
    """Neither worse nor the same: said, and green."""
    base = recorded(versions / "few.jsonl", ("c1", *GOOD), ("c2", *GOOD), ("c3", *GOOD))
    new = recorded(versions / "new.jsonl", ("c1", *GOOD), ("c2", *GOOD), ("c3", *BAD))
    runner = Runner(versions, api)

    status = runner.run(recordings=new, base=base, config="spanscore.yaml", score_options="--fail-under 0")

    assert 0 == status, runner.said
    assert "too few runs to compare" in runner.said


@pytest.mark.processes
def test_a_token_that_may_not_write_is_a_warning(versions: Path, api: Api) -> None:
    """As that of a pull request from a fork: the answer is shown, and the runs decide."""
    api.refuses = True
    runner = Runner(versions, api)

    assert 0 == runner.run(recordings="base.jsonl", config="spanscore.yaml"), runner.said
    assert "answered 403" in runner.said
    assert "::warning::the comment was not written, and an earlier one is out of date" in runner.said


@pytest.mark.processes
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "There is nothing to score: set command or recordings."),
        ({"base_directory": "base"}, "base-directory needs a command"),
        ({"command": "true", "base_directory": "none"}, "There is no base-directory none."),
        ({"recordings": "new.jsonl\nbase.jsonl", "base": "base.jsonl"}, "recordings has 2."),
        ({"recordings": "none.jsonl"}, "spanscore score ended with 2: none.jsonl: cannot be read"),
        ({"command": "false\necho on"}, "The command failed, or sent no spans (status 1): false"),
    ],
)
def test_what_was_not_scored_is_no_green_comment(versions: Path, api: Api, inputs: dict[str, str], said: str) -> None:
    """The job fails, and the reason replaces the comment of an earlier run."""
    api.comments.append(dict(GREEN))
    runner = Runner(versions, api)

    assert 0 != runner.run(config="spanscore.yaml", **inputs)
    assert said in runner.said
    assert [131] == [each["id"] for each in api.ours]
    assert said in api.ours[0]["body"]
    assert "nothing was scored" in api.ours[0]["body"]


@pytest.mark.processes
def test_a_base_that_cannot_be_run_is_a_warning(versions: Path, api: Api) -> None:
    """As that of the pull request that brings the cases: the runs decide, and the comment says it."""
    shutil.copy(ROOT / "src" / "spanscore" / "cli" / "demo_agent" / "agent.py", versions / "cases.py")
    (versions / "base").mkdir()
    runner = Runner(versions, api)

    status = runner.run(
        command=f"{sys.executable} cases.py",
        config="spanscore.yaml",
        base_directory="base",
        score_options="--fail-under 0 --allow-unscored",
    )

    assert 0 == status, runner.said
    assert "::warning::Not compared: in base" in runner.said
    assert "Not compared: in base" in api.ours[0]["body"]


@pytest.mark.setup
def test_a_job_from_the_installation_on(tmp_path: Path, api: Api) -> None:
    """It installs itself, runs the cases of both versions, and the agent's own environment stays as it is."""
    (tmp_path / "spanscore.yaml").write_text("evaluators: {health: {type: tool_call_trajectory}}\n", encoding="utf-8")
    agent = ROOT / "src" / "spanscore" / "cli" / "demo_agent" / "agent.py"
    for version in (tmp_path, tmp_path / "base"):
        version.mkdir(exist_ok=True)
        shutil.copy(agent, version / "cases.py")
    runner = Runner(tmp_path, api)

    status = runner.run(
        install=True,
        command=f"{sys.executable} cases.py",
        config="spanscore.yaml",
        base_directory="base",
        score_options="--fail-under 0",
    )

    assert 0 == status, runner.said
    assert [131] == [each["id"] for each in api.ours]
    assert "<!-- spanscore diff -->" in api.ours[0]["body"]


SENT = "python -m spanscore send {file} --endpoint $OTEL_EXPORTER_OTLP_ENDPOINT --fresh-ids"


@pytest.mark.processes
def test_a_command_that_fails_is_scored_as_far_as_it_came(versions: Path, api: Api) -> None:
    """The recorded runs may show the reason; the job fails although all of them passed, and the comment says why."""
    runner = Runner(versions, api)

    assert 1 == runner.run(command=SENT.format(file="base.jsonl") + "\nexit 3", config="spanscore.yaml"), runner.said
    assert "::error::The command failed (status 3)." in runner.said
    assert "\n\N{LARGE RED CIRCLE} The command failed (status 3)." in api.ours[0]["body"]
    assert "20 runs" in api.ours[0]["body"]


@pytest.mark.processes
def test_an_installation_that_fails_replaces_the_comment(tmp_path: Path, api: Api) -> None:
    """A comment of before would still be green."""
    api.comments.append(dict(GREEN))
    runner = Runner(tmp_path, api)
    (runner.temporary / "spanscore").write_text("in the way of the environment", encoding="utf-8")

    assert 2 == runner.run(install=True, recordings="base.jsonl", config="spanscore.yaml"), runner.said
    assert [131] == [each["id"] for each in api.ours]
    assert "nothing was scored\n\nThe preparation failed (status 1): python3 -m venv" in api.ours[0]["body"]
    assert "The preparation failed" in runner.summary


def gitlabs(versions: Path, api: Api, base_command: str) -> subprocess.CompletedProcess[str]:
    """Run the job of GitLab after its clone of spanscore; pip installs nothing."""
    project = versions / "project"
    project.mkdir()
    (versions / "spanscore").symlink_to(ROOT)
    shutil.copy(versions / "spanscore.yaml", project)
    git = "git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false"
    for file in ("base.jsonl", "new.jsonl"):
        command = base_command if file == "base.jsonl" else SENT
        (project / "cases.py").write_text(
            f"import os\nos.execlp('sh', 'sh', '-c', {command.format(file=versions / file)!r})"
        )
        made = bash(f"git init --quiet; git add --all; {git} commit --quiet --message {file}", project, {})
        assert 0 == made.returncode, made
    (versions / "bin").mkdir()
    (versions / "bin" / "pip").write_text("#!/bin/sh\n")
    (versions / "bin" / "pip").chmod(0o755)
    env = {
        "CI_API_V4_URL": api.address,
        "CI_JOB_URL": "https://gitlab/job/1",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD~1",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PROJECT_DIR": str(project),
        "CI_PROJECT_ID": "5",
        "COMMENT_TOKEN": TOKEN,
        "PATH": os.pathsep.join([str(versions / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "work": str(versions),
    }
    lines = GITLAB["script"]
    assert lines[1].startswith("git clone")
    return bash("\n".join(lines[2:]), project, env)


@pytest.mark.processes
def test_gitlabs_job_writes_one_note(versions: Path, api: Api) -> None:
    """And fails as the runs do."""
    api.user = 41898282
    api.comments.append(dict(GREEN))
    ended = gitlabs(versions, api, SENT)

    assert 1 == ended.returncode, ended
    assert [131] == [each["id"] for each in api.ours], ended
    assert "<!-- spanscore diff -->\n### \N{LARGE RED CIRCLE}" in api.ours[0]["body"]
    assert "[The job](https://gitlab/job/1)" in api.ours[0]["body"]
    for name in (*GITLAB["artifacts"]["paths"], GITLAB["artifacts"]["reports"]["junit"]):
        assert (versions / "project" / name).exists()


@pytest.mark.processes
def test_gitlabs_job_says_that_the_base_was_not_run(versions: Path, api: Api) -> None:
    """As in the merge request that brings the cases."""
    ended = gitlabs(versions, api, "exit 2")

    assert 1 == ended.returncode, ended
    assert "Not compared: in" in api.ours[0]["body"]
    assert "<!-- spanscore score -->" in api.ours[0]["body"]


def test_gitlabs_job_that_cannot_clone(tmp_path: Path) -> None:
    """Without the clone there is nothing to write a note with: the log says so."""
    env = {"SPANSCORE_URL": str(tmp_path / "none"), "work": str(tmp_path)}
    ended = bash("\n".join(GITLAB["script"][1:]), tmp_path, env)

    assert (2, "nothing was scored, and the note of an earlier job is out of date") == (
        ended.returncode,
        ended.stdout.partition(";")[0],
    )


@pytest.mark.parametrize("line", GITLAB["script"])
def test_gitlabs_lines_are_read_by_a_shell(line: str, tmp_path: Path) -> None:
    """Without an error of syntax."""
    assert 0 == bash(f"bash -n <<'LINE'\n{line}\nLINE", tmp_path, {}).returncode


@pytest.mark.parametrize("missing", ["COMMENT_TOKEN", "GITHUB_REPOSITORY"])
def test_a_comment_outside_a_job(tmp_path: Path, missing: str) -> None:
    """The variable that is missing is named."""
    env = {"COMMENT_TOKEN": TOKEN, "GITHUB_API_URL": "http://127.0.0.1:9", "NUMBER": "7", "GITHUB_REPOSITORY": "o/a"}
    del env[missing]
    ended = bash(f"env -u {missing} python3 {ROOT}/deploy/ci/comment.py text", tmp_path, env)

    assert 2 == ended.returncode
    assert f"the variable {missing} is not set" in ended.stderr


@pytest.mark.parametrize("page", [b"<html>", b"[]", b'{"id": "me"}', b"null", b'"x"'])
def test_an_answer_of_another_server(tmp_path: Path, api: Api, page: bytes) -> None:
    """As that of a proxy that wants people to log in: it ends with a message, and does not say that it wrote."""
    api.page = page
    (tmp_path / "text").write_text(GREEN["body"])
    env = {"COMMENT_TOKEN": TOKEN, "GITHUB_API_URL": api.address, "NUMBER": "7", "GITHUB_REPOSITORY": "o/a"}
    ended = bash(f"python3 {ROOT}/deploy/ci/comment.py text", tmp_path, env)

    told = "comment.py: what answered is no API of comments, or another one\n"
    assert (1, "", told) == (ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("user", [None, 5])
def test_only_our_own_comment_is_replaced(tmp_path: Path, api: Api, user: int | None) -> None:
    """A person's comment that begins with the same line stays, also if it is by the user of the token and locked."""
    api.user = user
    api.comments.append({**GREEN, "user": {"type": "User", "id": 5}})
    (tmp_path / "text").write_text(f"{GREEN['body']}, no longer".replace("green", "red"))
    env = {"COMMENT_TOKEN": TOKEN, "GITHUB_API_URL": api.address, "NUMBER": "7", "GITHUB_REPOSITORY": "o/a"}
    ended = bash(f"python3 {ROOT}/deploy/ci/comment.py text", tmp_path, env)

    assert (0, "comment 132 was written\n") == (ended.returncode, ended.stdout), ended
    assert ["all green", "all red, no longer"] == [each["body"].splitlines()[1] for each in api.ours]


def test_a_long_comment_is_cut_at_a_line(tmp_path: Path, api: Api) -> None:
    """GitHub refuses more than 65,536 characters."""
    (tmp_path / "text").write_text("<!-- spanscore -->\n" + "a line of forty characters, and its end\n" * 3_000)
    env = {"COMMENT_TOKEN": TOKEN, "GITHUB_API_URL": api.address, "NUMBER": "7", "GITHUB_REPOSITORY": "o/a"}
    ended = bash(f"python3 {ROOT}/deploy/ci/comment.py text", tmp_path, env)

    (comment,) = api.ours
    assert 0 == ended.returncode, ended
    assert len(comment["body"]) < 65_100
    assert "and its end\n\n*Cut here" in comment["body"].replace("end\n\n\n", "end\n\n")
