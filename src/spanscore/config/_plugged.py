"""The sections whose keys are names of plug-ins: `receivers` and `exporters`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final, get_args

from pydantic import Field, create_model
from pydantic.errors import PydanticUserError

from spanscore.collect.settings import TraceSettings
from spanscore.config._docstrings import docstring, first_sentence
from spanscore.config._models import checkable
from spanscore.config._section import Section
from spanscore.config._sections import Dialects, Document, Page
from spanscore.config._tree import Node, Problem
from spanscore.errors import ConfigError, PluginError
from spanscore.plugins import Kind, find, is_built_in, names
from spanscore.storage.settings import StorageSettings

KINDS: Final[Mapping[str, Kind]] = {"receivers": "receivers", "exporters": "emitters"}
"""What kind of plug-in the keys of a section name."""

_SETTINGS: Final = {
    "traces": checkable(TraceSettings),
    "storage": checkable(StorageSettings),
    "dialects": checkable(Dialects),
    "page": checkable(Page),
}
_ABOUT: Final = {
    "receivers": "Where spans come from; a receiver runs when it is listed.",
    "exporters": "Where scores go; an exporter runs when it is listed.",
}


def document_for(root: Node) -> tuple[type[Document], list[Problem]]:
    """Return what a configuration may hold, and what is wrong with the plug-ins that it names: no others are loaded."""
    problems: list[Problem] = []
    sections: dict[str, list[str]] = {}
    for section, kind in KINDS.items():
        sections[section] = []
        for name in sorted(root.mapping(section).keys() & set(names(kind))):
            try:
                settings_model(kind, name)
                sections[section].append(name)
            except ConfigError as error:
                problems.append(Problem(root.key_place((section, name)), (section, name), str(error)))
    return _document(sections), problems


def whole_document() -> type[Document]:
    """Return what a configuration may hold, with all plug-ins that are installed."""
    return _document({section: names(kind) for section, kind in KINDS.items()})


def settings_model(kind: Kind, name: str) -> Any:
    """Return what checks the settings of a plug-in, and builds them.

    Raises:
        ConfigError: there is no such plug-in.
        PluginError: it cannot be loaded, or does not keep its contract.
    """
    return _settings_model(kind, name, find(kind, name))


def sections_of(kind: Kind, name: str) -> type[Section]:
    """Return the keys of a plug-in's settings."""
    model: type[Section] = get_args(settings_model(kind, name))[0]
    return model


@lru_cache(maxsize=256)
def _settings_model(kind: Kind, name: str, plugin: Any) -> Any:
    settings = getattr(plugin, "Settings", None)
    problem = ""
    if not isinstance(settings, type) or not dataclasses.is_dataclass(settings):
        problem = "must have a class variable 'Settings': a dataclass whose fields can be configured"
    elif not is_built_in(kind, name) and not callable(getattr(plugin, "configured", None)):
        problem = "must have a class method 'configured' that builds it of its settings"
    if problem:
        message = f"{kind[:-1]} {name!r} ({plugin.__module__}.{plugin.__qualname__}) {problem}"
        raise PluginError(message)
    try:
        return checkable(settings)
    except (NameError, TypeError, RecursionError, PydanticUserError) as error:
        message = f"the settings of {kind[:-1]} {name!r} cannot be checked: {error}"
        raise PluginError(message) from error


def _document(usable: Mapping[str, Collection[str]]) -> type[Document]:
    sections: dict[str, Any] = {key: (model, _like(key)) for key, model in _SETTINGS.items()}
    for key, kind in KINDS.items():
        keys: dict[str, Any] = {name: _key(kind, name) if name in usable[key] else (Any, None) for name in names(kind)}
        section = create_model(key.capitalize(), __base__=Section, __doc__=_ABOUT[key], **keys)
        sections[key] = (section | None, _like(key))
    return create_model("Document", __base__=Document, __doc__=Document.__doc__, **sections)


def _like(key: str) -> Any:
    """Return a key as the document has it; anew, as pydantic 2.10 changes the fields it is given."""
    field = Document.model_fields[key]
    return Field(default_factory=field.default_factory or dict, validate_default=False, description=field.description)


def _key(kind: Kind, name: str) -> Any:
    summary = first_sentence(docstring(find(kind, name)))
    return settings_model(kind, name) | None, Field(default=None, description=summary)
