"""Reads a configuration, from a file or from text, and checks it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spanscore.config._check import check
from spanscore.config._config import Config
from spanscore.config._cross_checks import cross_problems
from spanscore.config._entries import DIALECTS, build_dialects, build_entries
from spanscore.config._models import construct, given
from spanscore.config._nodes import Node, Place, Problem, first_causes, one_error
from spanscore.config._plain_sections import DEFAULT_EVALUATORS, Dialects
from spanscore.config._plugged import document_for
from spanscore.config._sections import Document
from spanscore.config._yaml import MAX_BYTES, place_in, read
from spanscore.errors import ConfigError


def load(path: str | os.PathLike[str]) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: it cannot be read, or anything in it is wrong; the message has a line for every error.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: must not be larger than {MAX_BYTES >> 20} MiB")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        place = place_in(before, len(before))
        message = f"{path}:{place.line}:{place.column}: must be UTF-8, but has the byte 0x{content[error.start]:02x}"
        raise ConfigError(message) from None
    return replace(loads(text, str(path), path.parent), file=path)


def loads(text: str, source: str, directory: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a configuration from text.

    Messages name the source; relative paths start at the directory, and `${env:NAME}` is replaced by a variable of the
    environment.

    Raises:
        ConfigError: anything in it is wrong; the message has a line for every error.
    """
    root, problems = read(text, environment)
    if root is None and problems:
        raise one_error(problems, source)
    root = _with_defaults(root or Node(place=Place(1, 1), value={}))
    unread = tuple(problems)
    model, unusable = document_for(root)
    problems += unusable
    document = check(model, root, directory=directory)
    if isinstance(document, list):
        problems += document
    section = check(DIALECTS, root, at=("dialects",), directory=directory) if root.has("dialects") else DIALECTS()
    dialects = [] if isinstance(section, list) else list(build_dialects(construct(Dialects, given(section)), root))
    entries = list(build_entries(root, directory))
    problems += [each for each in (*dialects, *entries) if isinstance(each, Problem)]
    known = [each for each in dialects if not isinstance(each, Problem)]
    problems += cross_problems(root, None if isinstance(document, list) else document, known)
    problems = list(first_causes(problems, unread, root))
    if isinstance(document, list) or problems:
        raise one_error(problems, source)
    return Config(
        evaluators=tuple(each for each in entries if not isinstance(each, Problem)),
        dialects=tuple(known),
        receivers=_listed(document, root, "receivers"),
        traces=document.traces,
        storage=document.storage,
        conversations=document.conversations,
        monitors=document.monitors,
        keep=document.keep,
        exporters=_listed(document, root, "exporters"),
        metrics=document.metrics,
        annotate=document.annotate or "child_span",
        tool_content=document.tool_content,
        content=document.content,
        page=document.page,
        trace_url=document.trace_url,
        telemetry=document.telemetry,
        given=frozenset(_given(root)),
        source=source,
        root=root,
    )


def _listed(document: Document, root: Node, section: str) -> dict[str, Any]:
    """Return the settings of the plug-ins that a section lists, in the order of the file."""
    return {name: getattr(getattr(document, section), name) for name in root.mapping(section)}


def _given(root: Node) -> Iterator[str]:
    for key in root.value if isinstance(root.value, dict) else ():
        yield key
        yield from (f"{key}.{name}" for name, each in root.mapping(key).items() if each.value is not None)


def _with_defaults(root: Node) -> Node:
    """Read an empty `evaluators:` like a missing one, and add the default evaluators."""
    if root.value is not None and not isinstance(root.value, dict):
        return root
    given = {
        key: node
        for key, node in (root.value or {}).items()
        if node.value is not None or key not in Document.model_fields
    }
    return replace(root, value={"evaluators": Node.of(DEFAULT_EVALUATORS, root.place), **given})
