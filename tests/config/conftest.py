from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pytest

from spanscore.config import Config, loads
from spanscore.errors import ConfigError

Read: TypeAlias = Callable[..., Config]
Problems: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a configuration from text and environment variables; its paths are relative to `tmp_path`."""

    def read(text: str, **environment: str) -> Config:
        return loads(dedent(text), "c.yaml", tmp_path, environment)

    return read


@pytest.fixture
def problems(read: Read) -> Problems:
    """Return the lines of the error that reading raises."""

    def problems(text: str, **environment: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(text, **environment)
        return str(caught.value).splitlines()

    return problems
