"""The section `dialects:`, from checked keys to dialects."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from spanscore.config._check import without_values
from spanscore.config._models import fields_of, model_of
from spanscore.config._nodes import Node, Path, Problem
from spanscore.config._section import Section
from spanscore.config._sections import Dialects
from spanscore.contracts import Dialect
from spanscore.contracts.plugins import find, names
from spanscore.errors import ConfigError, PluginLoadError
from spanscore.messages.nearest import suggestion

_log: Final = logging.getLogger(__name__)

DIALECTS: Final = model_of(Dialects, Section, fields_of(Dialects))
"""The keys of the section."""
CUSTOM: Final = "custom"  # the one dialect that is nothing without the user's names for its attributes


def build_dialects(section: Dialects, root: Node) -> Iterator[Dialect | Problem]:
    """Yield the dialects in use, the user's own first, and problems."""
    installed = [name for name in names("dialects") if name != CUSTOM]
    own: set[str] = set()
    custom: Any  # a frozen dataclass, which mypy takes for no dialect
    for index, custom in enumerate(section.custom):
        path: Path = ("dialects", "custom", index, "name")
        if custom.name in own or custom.name in installed:
            yield Problem(root.find(path).place, path, f"there is already a dialect {custom.name!r}")
            continue
        own.add(custom.name)
        yield custom
    for index, name in enumerate(section.disabled):
        if name not in installed:
            path = ("dialects", "disabled", index)
            text = f"there is no dialect {name!r}{suggestion(name, installed)} (dialects: {', '.join(installed)})"
            node = root.find(path)
            yield Problem(node.place, path, without_values(text, node))
    for name in installed:
        if name in section.disabled:
            continue
        try:
            yield find("dialects", name)()
        except PluginLoadError as error:
            _log.warning("%s; no span is read by it", error)
        except ConfigError as error:
            yield Problem(root.find(("dialects",)).place, ("dialects",), f"{error}; disable it, or uninstall it")
