"""Where a dataset is said to be: paths that lead out, to devices, and to what never ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import really_started
from spanscore.config import Config
from spanscore.evaluators.tool_call_order import ToolCallOrder
from spanscore.model import Trajectory

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

ENDINGS = "the name of a dataset must end in .jsonl, .json, .csv, .yaml, .yml"
SECRET = "root:x:0:0:canary,canary,canary:/root:/bin/bash\ncanary,canary\n{canary: [&canary %canary\n"


def entry(file: str) -> str:
    """A configuration whose only evaluator takes its expectations from a file."""
    return f"evaluators: {{a: {{type: tool_call_order, expected_from: {{dataset: {file!r}, key: case}}}}}}"


def unreadable(file: str, why: str) -> str:
    """The error about a dataset that cannot be read."""
    return f"c.yaml:1:66: {file}: cannot be read: {why}; the path is relative to this configuration"


@pytest.mark.parametrize("path", ["../../../../../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "/"])
def test_what_is_named_like_no_dataset_is_not_opened(problems: Problems, path: str) -> None:
    """A path that leads anywhere else is refused by its name alone, which the error repeats."""
    assert [f"{path}: {ENDINGS}"] == problems(entry(path))


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "yaml"])
def test_a_link_to_another_file_shows_nothing_of_it(problems: Problems, tmp_path: Path, kind: str) -> None:
    """A link is followed, as everywhere; what is behind it, here something like /etc/passwd, is in no message."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / f"rows.{kind}").symlink_to(tmp_path / "secret")

    told = problems(entry(f"rows.{kind}"))

    assert told
    assert all(line.startswith(f"rows.{kind}:") for line in told)
    assert "canary" not in "\n".join(told)


def test_a_dataset_may_be_anywhere(read: Read, tmp_path: Path) -> None:
    """Absolute paths, paths that lead up, and links lead to rows as any other path does."""
    (tmp_path / "elsewhere").mkdir()
    rows = tmp_path / "elsewhere" / "rows.jsonl"
    rows.write_text('{"case": "a", "expected": ["search"]}')
    (tmp_path / "link.jsonl").symlink_to(rows)
    run = Trajectory(calls=(), attributes={"case": "a"})

    for path in (str(rows), f"../{tmp_path.name}/elsewhere/rows.jsonl", "link.jsonl"):
        assert ToolCallOrder(tool_calls_order=("search",)) == read(entry(path)).evaluators[0].resolve(run)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_link_to_a_device(problems: Problems, tmp_path: Path, device: str) -> None:
    """What has no end is not read to a limit first, and what has no content is not taken for an empty dataset."""
    (tmp_path / "rows.jsonl").symlink_to(device)

    assert [unreadable("rows.jsonl", "not a regular file")] == problems(entry("rows.jsonl"))


def test_directories_sockets_and_links_to_themselves(problems: Problems, tmp_path: Path) -> None:
    """Each is an error with the path, whatever the system says of it."""
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "dangling.json").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket.json"))

    assert [unreadable("folder.json", "Is a directory")] == problems(entry("folder.json"))
    assert [unreadable("loop.json", "Too many levels of symbolic links")] == problems(entry("loop.json"))
    assert [unreadable("dangling.json", "No such file or directory")] == problems(entry("dangling.json"))
    assert [unreadable("socket.json", "No such device or address")] == problems(entry("socket.json"))


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    """`spanscore check` says what is wrong and ends."""
    os.mkfifo(tmp_path / "rows.jsonl")
    (tmp_path / "c.yaml").write_text(entry("rows.jsonl"))

    done = really_started("check", tmp_path / "c.yaml")

    assert "rows.jsonl: cannot be read: not a regular file" in done.stderr
    assert 2 == done.returncode
