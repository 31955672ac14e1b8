"""The sections whose keys are names of plug-ins: `receivers` and `exporters`."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, Final, TypeAlias, get_args

from annotated_types import MaxLen
from pydantic import Field, create_model
from pydantic.errors import PydanticUserError

from spanscore.collect.settings import TraceSettings
from spanscore.config._models import checkable
from spanscore.config._nodes import Node, Problem
from spanscore.config._parameters import evaluator_type
from spanscore.config._plain_sections import Content, Dialects, Metrics, Page, Telemetry
from spanscore.config._section import Section, docstring, first_sentence
from spanscore.config._sections import Document
from spanscore.contracts.plugins import Kind, find, is_built_in, names
from spanscore.contracts.settings import Text
from spanscore.errors import ConfigError, PluginError
from spanscore.scoring.conversations.settings import ConversationSettings
from spanscore.scoring.keep.settings import KeepSettings
from spanscore.scoring.monitors.settings import MOST_MONITORS, MonitorSettings
from spanscore.storage.settings import StorageSettings

_log: Final = logging.getLogger(__name__)

_Plugins: TypeAlias = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
"""By section, the names of the plug-ins that there are, each with the plug-in if it may be used."""
KINDS: Final[Mapping[str, Kind]] = {"receivers": "receivers", "exporters": "emitters"}
"""The kind of plug-in that the keys of a section name."""

_SETTINGS: Final = {
    "traces": TraceSettings,
    "storage": StorageSettings,
    "conversations": ConversationSettings | None,
    "monitors": Annotated[Mapping[Text, MonitorSettings], MaxLen(MOST_MONITORS)],
    "keep": KeepSettings | None,
    "dialects": Dialects,
    "metrics": Metrics,
    "content": Content,
    "page": Page,
    "telemetry": Telemetry,
}
"""The type of each section that is no plug-in's."""
_ABOUT: Final = {
    "receivers": "Where spans come from; a receiver runs when it is listed.",
    "exporters": "Where scores go; an exporter runs when it is listed.",
}


def document_for(root: Node) -> tuple[type[Document], list[Problem]]:
    """Return the model of a configuration, and the problems of plug-ins in it. No other plug-ins are loaded.

    Sections that the configuration does not have are not checked: their models take longer than most configurations.
    """
    problems: list[Problem] = []
    usable: set[tuple[str, str]] = set()
    for section, kind in KINDS.items():
        for name in sorted(root.mapping(section).keys() & set(names(kind))):
            try:
                settings_model(kind, name)
                usable.add((section, name))
            except ConfigError as error:
                problems.append(Problem(root.key_place((section, name)), (section, name), str(error)))
    given = root.value if isinstance(root.value, dict) else {}
    return _document(_plugins(usable), frozenset(_SETTINGS.keys() & given)), problems


def whole_document() -> type[Document]:
    """Return the model of a configuration with all installed plug-ins that can be used."""
    plugins = {(section, name) for section, kind in KINDS.items() for name in usable(kind)}
    return _document(_plugins(plugins), frozenset(_SETTINGS))


def usable(kind: Kind) -> Iterator[str]:
    """Yield the names of the evaluators, receivers or emitters that can be used, and log why others cannot."""
    check: Any = evaluator_type if kind == "evaluators" else partial(settings_model, kind)
    for name in names(kind):
        try:
            check(name)
        except PluginError as error:
            _log.warning("%s", error)
        else:
            yield name


def settings_model(kind: Kind, name: str) -> Any:
    """Return the model that checks and builds the settings of a plug-in.

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
        raise PluginError(f"{kind[:-1]} {name!r} ({plugin.__module__}.{plugin.__qualname__}) {problem}")
    try:
        return checkable(settings)
    except (NameError, TypeError, RecursionError, PydanticUserError) as error:
        raise PluginError(f"the settings of {kind[:-1]} {name!r} cannot be checked: {error}") from error


def _plugins(usable: Collection[tuple[str, str]]) -> _Plugins:
    """Return all keys of the sections, with the plug-ins of the usable ones."""
    return tuple(
        (section, tuple((name, find(kind, name) if (section, name) in usable else None) for name in names(kind)))
        for section, kind in KINDS.items()
    )


@lru_cache(maxsize=16)  # made in 15 ms
def _document(plugins: _Plugins, given: frozenset[str]) -> type[Document]:
    sections: dict[str, Any] = {key: (checkable(_SETTINGS[key]), _like(key)) for key in sorted(given)}
    for key, named in plugins:
        keys: dict[str, Any] = {name: _key(key, name) if plugin else (Any, None) for name, plugin in named}
        section = create_model(key.capitalize(), __base__=Section, __doc__=_ABOUT[key], **keys)
        sections[key] = (section | None, _like(key))
    return create_model("Document", __base__=Document, __doc__=Document.__doc__, **sections)


def _like(key: str) -> Any:
    """Return a key as the document has it; anew, as pydantic 2.10 changes the fields it is given."""
    made = Document.model_fields[key].default_factory
    return Field(default=None) if made is None else Field(default_factory=made, validate_default=False)


def _key(section: str, name: str) -> Any:
    kind = KINDS[section]
    summary = first_sentence(docstring(find(kind, name)))
    return settings_model(kind, name) | None, Field(default=None, description=summary)
