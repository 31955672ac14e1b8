"""The comparison of what two processes collect, on tests of which it is known what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import collection

STEADY = """
import pytest

@pytest.mark.parametrize("value", [1, "two", b"three", 4.0, None, print, object])
def test_steady(value):
    assert value != 5

def test_other():
    pass
"""

UNSTEADY = """
import os, pathlib, time
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.mark.parametrize("day", [time.strftime("%F", time.gmtime(time.time()))])
def test_clock(day): ...

@pytest.mark.parametrize("number", [hash("text")])
def test_hash(number): ...

@pytest.mark.parametrize("number", [id(object())], ids=lambda number: f"at {number:x}")
def test_address(number): ...

@pytest.mark.parametrize("path", [str(HERE)])
def test_directory(path): ...

@pytest.mark.parametrize("home", [os.environ["HOME"]])
def test_environment(home): ...
"""

UNORDERED = """
import pathlib
import pytest

@pytest.mark.parametrize("name", [path.name for path in pathlib.Path(__file__).parent.glob("*.txt")])
def test_listing(name): ...
"""


@pytest.mark.campaign
def test_the_same_everywhere_is_said_with_the_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests of which no id depends on the process are the same, in an order that depends on the seed alone."""
    (tmp_path / "test_steady.py").write_text(STEADY)

    assert 0 == collection.main([], tmp_path)
    told = "8 tests collected here, 8 elsewhere, 0 differences\n"
    assert f"in order: {told}shuffled: {told}" == capsys.readouterr().out


@pytest.mark.campaign
def test_what_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clock, hash seed, addresses, directory and environment are found in ids, and no steady test is blamed."""
    (tmp_path / "test_steady.py").write_text(STEADY)
    (tmp_path / "test_unsteady.py").write_text(UNSTEADY)

    assert 1 == collection.main([], tmp_path)
    lines = capsys.readouterr().out.splitlines()
    unsteady = ["clock", "hash", "address", "directory", "environment"]
    expected = [f"only {where} test_unsteady.py::test_{what}" for where in ("here:", "elsewhere:") for what in unsteady]
    assert expected == [" ".join(line.split("[")[0].split()) for line in lines[:10]]
    assert "in order: 13 tests collected here, 13 elsewhere, 10 differences" == lines[10]


@pytest.mark.campaign
def test_what_the_clone_came_with_is_there(tmp_path: Path) -> None:
    """A test may read the steps of CI while it is collected; what runs leave behind is not copied."""
    (tmp_path / "test_steps.py").write_text(
        "import pathlib\nSTEPS = pathlib.Path('.ci/run').read_text()\ndef test_steps(): ...\n"
    )
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text("scripts/test\n")

    assert 0 == collection.main([], tmp_path)


@pytest.mark.campaign
def test_the_order_of_files_is_found(tmp_path: Path) -> None:
    """The same tests in another order are a difference too: each worker has its own numbers for them."""
    (tmp_path / "test_unordered.py").write_text(UNORDERED)
    for name in "abcdefgh":
        (tmp_path / f"{name}.txt").touch()

    found = collection.compare(tmp_path, ["-p", "no:randomly"])

    assert sorted(found.here) == sorted(found.elsewhere)
    assert found.here == found.elsewhere[::-1]
    assert f"number 1: {found.here[0]} here, {found.here[-1]} elsewhere" == found.differences[0]


@pytest.mark.campaign
@pytest.mark.parametrize("text", ["", "import nothing_of_this_name"])
def test_nothing_collected_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Where there is no test, or a file cannot be imported, nothing was compared."""
    (tmp_path / "test_nothing.py").write_text(text)

    assert 1 == collection.main([], tmp_path)
    assert "ended with" in capsys.readouterr().out
