"""Builds evaluators and dialects from the located nodes of a configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any, Final

from spanscore.compare.globs import attributes_matcher, glob_matcher
from spanscore.config._check import check, without_values
from spanscore.config._default import CUSTOM, installed_dialects
from spanscore.config._mistakes import shown
from spanscore.config._models import fields_of, given, model_of
from spanscore.config._nodes import Node, Path, Problem
from spanscore.config._parameters import EvaluatorType, evaluator_type
from spanscore.config._plain_sections import Dialects
from spanscore.config._section import Section
from spanscore.config._sections import EvaluatorKeys
from spanscore.config.datasets.expectations import Resolve, from_attribute, from_dataset
from spanscore.contracts import Dialect, NeedsModelCalls, looks_at_results
from spanscore.contracts.plugins import is_built_in, names, version_of
from spanscore.errors import ConfigError
from spanscore.messages.nearest import suggestion
from spanscore.model import Trajectory
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.isolation.process import CAN_END, pickled

PLUGIN_TIME_LIMIT_S: Final = 1.0
DIALECTS: Final = model_of(Dialects, Section, fields_of(Dialects))
"""The keys of the section."""


def build_entries(root: Node, directory: FilePath) -> Iterator[EvaluatorEntry | Problem]:
    """Yield the entries of a configuration in its order, and the problems of entries that cannot be built."""
    for name, entry in root.mapping("evaluators").items():
        if not isinstance(entry.value, dict):
            continue  # said when the sections were checked
        at = ("evaluators", name)
        try:
            built = _entry(name, at, root, directory)
        except ConfigError as error:
            built = [Problem(entry.place, at, without_values(str(error), entry))]
        yield from built if isinstance(built, list) else (built,)


def _entry(name: str, at: Path, root: Node, directory: FilePath) -> EvaluatorEntry | list[Problem]:
    kind = _kind(root, at)
    if isinstance(kind, Problem):
        return [kind]
    keys = check(kind.entry, root, at=at, directory=directory)
    clash = list(_expectation_clash(kind, root, at))
    if isinstance(keys, list) or clash:
        return [*clash, *(keys if isinstance(keys, list) else ())]
    resolve = _resolver(kind, keys, root, at)
    if isinstance(resolve, list):
        return resolve
    limit_s = _time_limit(kind, keys)
    if limit_s is not None and (why := _not_to_be_sent(kind, resolve)):
        limited = (*at, "time_limit") if root.find(at).has("time_limit") else at
        return [Problem(root.key_place(limited), limited, f"{why}; with 'time_limit: none' it runs in this one")]
    source = keys.expected_from
    named = (source.attribute, source.key) if source else ()
    return EvaluatorEntry(
        name=name,
        type=kind.name,
        version=version_of("evaluators", kind.name),
        time_limit_s=limit_s,
        resolve=resolve,
        matches=attributes_matcher(keys.match) if keys.match else None,
        match=keys.match,
        sample_ratio=keys.sample_ratio,
        informational=keys.informational,
        over=keys.over,
        ignores=_any_glob(keys.ignore_tools) if keys.ignore_tools else None,
        ignore_tools=keys.ignore_tools,
        reads=frozenset({*keys.match, *filter(None, named)}),
        # With an expectation of its own, each trajectory may have another evaluator of this kind.
        needs_results=looks_at_results(kind.evaluator if source else resolve(Trajectory(calls=()))),
        needs_model_calls=isinstance(kind.evaluator, NeedsModelCalls) and kind.evaluator.needs_model_calls,
    )


def _kind(root: Node, at: Path) -> EvaluatorType | Problem:
    """Return the entry's type. Without it the parameters are unknown, so only that problem is returned."""
    path = (*at, "type")
    if not root.find(at).has("type"):
        return Problem(root.key_place(at), path, f"the key is required: one of {', '.join(names('evaluators'))}")
    node = root.find(path)
    if not isinstance(node.value, str):
        return Problem(node.place, path, f"must be text, not {shown(node)}")
    try:
        return evaluator_type(node.value)
    except ConfigError as error:
        return Problem(node.place, path, without_values(str(error), node))


def _expectation_clash(kind: EvaluatorType, root: Node, at: Path) -> Iterator[Problem]:
    """Yield the problems of the two ways to set the expectation: the parameter, and `expected_from`."""
    entry, source = root.find(at), (*at, "expected_from")
    name = kind.expectation
    has_source = root.find(source).value is not None if entry.has("expected_from") else False
    if name is None:
        if has_source:
            yield Problem(root.key_place(source), source, f"{kind.name!r} expects nothing of a single trace")
    elif has_source and entry.has(name):
        yield Problem(root.key_place((*at, name)), (*at, name), "cannot be given together with 'expected_from'")
    elif not has_source and kind.needs_expectation and (not entry.has(name) or root.find((*at, name)).value is None):
        yield Problem(root.key_place(at), (*at, name), "the key is required, or else 'expected_from'")


def _resolver(kind: EvaluatorType, keys: EvaluatorKeys, root: Node, at: Path) -> Resolve | list[Problem]:
    fixed = {name: value for name, value in given(keys).items() if name in kind.parameters.model_fields}
    source = keys.expected_from
    if source is None:
        built = kind.build(fixed, root.find(at), at)
        return built if isinstance(built, list) else lambda _: built
    if source.dataset is not None and source.key is not None:
        return from_dataset(kind, fixed, source.dataset, source.key, root.find((*at, "expected_from", "dataset")))
    return from_attribute(kind, fixed, source.attribute or "")


def _time_limit(kind: EvaluatorType, keys: EvaluatorKeys) -> float | None:
    if keys.time_limit is None:
        return PLUGIN_TIME_LIMIT_S if CAN_END and not is_built_in("evaluators", kind.name) else None
    return None if math.isinf(keys.time_limit) else keys.time_limit


def _not_to_be_sent(kind: EvaluatorType, resolve: Resolve) -> str:
    """Return why an evaluator cannot be sent to the process that keeps its time limit; empty if it can."""
    if not CAN_END:
        return "there are no time limits on this system"
    try:
        pickled((kind.evaluator, resolve(Trajectory(calls=()))))
    except Exception as error:  # noqa: BLE001 - a plug-in's own code runs
        return f"{kind.name!r} cannot be run under a time limit, in another process: {type(error).__name__}: {error}"
    return ""


def _any_glob(globs: tuple[str, ...]) -> Callable[[str], bool]:
    matchers = [glob_matcher(glob) for glob in globs]
    return lambda tool: any(matcher(tool) for matcher in matchers)


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
    yield from installed_dialects(root, section.disabled)
