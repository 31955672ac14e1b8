from __future__ import annotations

from pathlib import Path

import pytest

from spanscore.service.memory import request_memory

MIB = 2**20


@pytest.mark.parametrize(
    ("limit", "expected"), [("2147483648\n", 256 * MIB), ("268435456\n", 128 * MIB), ("1073741824", 128 * MIB)]
)
def test_requests_may_hold_a_share(tmp_path: Path, limit: str, expected: int) -> None:
    """An eighth of what the container may have, and at least 128 MiB."""
    (tmp_path / "memory.max").write_text(limit)
    assert expected == request_memory((tmp_path / "memory.max",))


def test_without_a_limit_the_machine_counts(tmp_path: Path) -> None:
    """No file, or one that says `max`, is no limit; a GiB is enough for all."""
    (tmp_path / "memory.max").write_text("max\n")
    found = request_memory((tmp_path / "memory.max", tmp_path / "none"))
    assert 128 * MIB <= found <= 1024 * MIB
    assert found == request_memory(())
