"""Which decoder reads, where the compiled one cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deadline import DEADLINE_S

ABSENT = "import sys; sys.modules['spanscore_fast'] = None; "
ASK = "from spanscore.errors import ConfigError; from spanscore.otlp.clean_requests import chosen\n"
TELL = f"{ASK}try: print(chosen())\nexcept ConfigError as error: print(error)"


def told(program: str, asked: str, *path: Path) -> str:
    """Return what a process of its own says that reads."""
    environment = {**os.environ, "SPANSCORE_DECODER": asked, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
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
