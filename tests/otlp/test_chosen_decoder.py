"""Which decoder reads, where the compiled one cannot."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from commands import in_fork
from spanscore import __version__

AGAIN = """
import sys
for name in ("spanscore.otlp.clean_requests", "spanscore_fast"):
    sys.modules.pop(name, None)
"""
"""Both are imported as in a new process."""
ABSENT = "sys.modules['spanscore_fast'] = None; "
ASK = "from spanscore.errors import ConfigError; from spanscore.otlp.clean_requests import chosen\n"
TELL = f"{ASK}try: print(chosen())\nexcept ConfigError as error: print(error)"


def told(program: str, asked: str, *path: Path) -> str:
    """Return what a process of its own says that reads."""
    run = in_fork(f"{AGAIN}sys.path[:0] = {[*map(str, path)]}\n{program}", SPANSCORE_DECODER=asked)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize("asked", ["", "python"])
def test_without_the_compiled_decoder_the_other_one_reads(asked: str) -> None:
    """There is nothing to say about what nobody has installed."""
    assert told(ABSENT + TELL, asked) == "python"


def test_a_compiled_decoder_that_is_not_installed_can_be_asked_for_in_vain() -> None:
    """The error says how to get it: no registry has it."""
    message = told(ABSENT + TELL, "fast")
    assert message.startswith("SPANSCORE_DECODER=fast needs the compiled decoder, which is not installed;")
    assert "pip install ./fast" in message


def test_a_compiled_decoder_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    """It is installed, and the other one reads: whoever relies on it has to hear why."""
    (tmp_path / "spanscore_fast.py").write_text("raise ImportError('GLIBC_2.40 not found')", encoding="utf-8")
    why = "cannot be loaded: GLIBC_2.40 not found"

    assert told(TELL, "", tmp_path) == f"python; the compiled one {why}"
    assert told(TELL, "python", tmp_path) == "python"
    assert told(TELL, "fast", tmp_path).startswith(f"SPANSCORE_DECODER=fast needs the compiled decoder, which {why};")


def test_a_compiled_decoder_of_another_version_is_not_used(tmp_path: Path) -> None:
    """It may build other spans; a module that only has its name is no decoder at all."""
    for folder, text in (("other", "__version__ = '0.0.9'"), ("none", "")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "spanscore_fast.py").write_text(text, encoding="utf-8")
    why = f"but spanscore {__version__} needs the same version"
    used = "from spanscore.otlp.clean_requests import decoded; print(decoded(b'', None, None))"

    assert told(TELL, "", tmp_path / "other") == f"python; the compiled one has version 0.0.9, {why}"
    assert told(TELL, "fast", tmp_path / "other").startswith(
        f"SPANSCORE_DECODER=fast needs the compiled decoder, which has version 0.0.9, {why};"
    )
    assert told(TELL, "", tmp_path / "none") == f"python; the compiled one has version unknown, {why}"
    assert told(used, "", tmp_path / "other") == "None"


def test_the_compiled_decoder_has_the_version_of_spanscore() -> None:
    """Cargo writes 0.2.0-rc1, and Python 0.2.0rc1."""
    folder = Path(__file__).parents[2] / "fast"
    versions = [
        tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"],
        *(
            package["version"]
            for package in tomllib.loads((folder / "Cargo.lock").read_text(encoding="utf-8"))["package"]
            if package["name"] == "spanscore-fast"
        ),
    ]

    assert [__version__] * 2 == [version.replace("-", "") for version in versions]
