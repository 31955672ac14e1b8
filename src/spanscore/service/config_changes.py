"""The differences between two configurations, and which of them take effect without a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from spanscore.config import Config

_SECTIONS: Final = ("receivers", "traces", "conversations", "monitors", "keep", "storage", "exporters", "page")
_AT_ONCE: Final = frozenset({"traces.unit", "traces.root"})


def restart_keys(running: Config, new: Config) -> list[str]:
    """Return the keys that differ and take effect only when spanscore is started again."""
    keys = [
        key for name in _SECTIONS for key in _changed(_plain(getattr(running, name)), _plain(getattr(new, name)), name)
    ]
    keys += [key for key in ("annotate", "trace_url") if getattr(running, key) != getattr(new, key)]
    return [key for key in keys if key not in _AT_ONCE]


def _plain(section: Any) -> Any:
    if isinstance(section, Mapping):
        return {name: _plain(each) for name, each in section.items()}
    if section is None:
        return None
    return {name.removesuffix("_s"): value for name, value in asdict(section).items()}  # as they are written


def _changed(running: Any, new: Any, path: str) -> Iterator[str]:
    if running == new:
        return
    if not isinstance(running, dict) or not isinstance(new, dict):
        yield path
        return
    for key in {**running, **new}:
        yield from _changed(running.get(key), new.get(key), f"{path}.{key}")
