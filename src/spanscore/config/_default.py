"""The configuration that is used without a file. No YAML and no pydantic are loaded for it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Any, Final

from spanscore.collect.settings import TraceSettings
from spanscore.config._config import Config
from spanscore.config._nodes import Node, Place, Problem, one_error
from spanscore.config._plain_sections import DEFAULT_EVALUATORS, Content, Metrics, Page, Telemetry
from spanscore.contracts import Dialect, looks_at_results
from spanscore.contracts.plugins import find, names, version_of
from spanscore.errors import ConfigError, PluginLoadError
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.storage.settings import StorageSettings

CUSTOM: Final = "custom"  # the one dialect that is nothing without the user's names for its attributes

_SOURCE: Final = "default configuration"
_log: Final = logging.getLogger(__name__)


def default() -> Config:
    """Return the configuration that is used without a file: what `loads` returns for an empty one.

    Raises:
        ConfigError: an installed plug-in cannot be used.
    """
    root = Node.of({"evaluators": DEFAULT_EVALUATORS}, Place(1, 1))
    dialects = list(installed_dialects(root))
    if problems := [each for each in dialects if isinstance(each, Problem)]:
        raise one_error(problems, _SOURCE)
    return Config(
        evaluators=tuple(_entry(name, **keys) for name, keys in DEFAULT_EVALUATORS.items()),
        dialects=tuple(each for each in dialects if not isinstance(each, Problem)),
        receivers={},
        traces=TraceSettings(),
        storage=StorageSettings(),
        conversations=None,
        monitors={},
        keep=None,
        exporters={},
        metrics=Metrics(),
        annotate="child_span",
        tool_content=False,
        content=Content(),
        page=Page(),
        trace_url=None,
        telemetry=Telemetry(),
        given=frozenset(("evaluators", *(f"evaluators.{name}" for name in DEFAULT_EVALUATORS))),
        source=_SOURCE,
        root=root,
    )


def _entry(name: str, type: str) -> EvaluatorEntry:  # noqa: A002 - the configuration's word
    evaluator: Any = find("evaluators", type)()
    return EvaluatorEntry(
        name=name,
        type=type,
        version=version_of("evaluators", type),
        resolve=lambda _: evaluator,
        needs_results=looks_at_results(evaluator),
    )


def installed_dialects(root: Node, disabled: Collection[str] = ()) -> Iterator[Dialect | Problem]:
    """Yield all installed dialects that are not disabled, and problems."""
    for name in names("dialects"):
        if name == CUSTOM or name in disabled:
            continue
        try:
            yield find("dialects", name)()
        except PluginLoadError as error:
            _log.warning("%s; no span is read by it", error)
        except ConfigError as error:
            yield Problem(root.find(("dialects",)).place, ("dialects",), f"{error}; disable it, or uninstall it")
