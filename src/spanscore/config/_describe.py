"""What plug-ins and sections say about themselves, for people."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

import yaml

from spanscore.config._docstrings import docstring, first_sentence
from spanscore.config._parameters import evaluator_type
from spanscore.config._plugged import KINDS, sections_of
from spanscore.config._section import Section
from spanscore.config._words import example, words
from spanscore.contracts import Parameters
from spanscore.plugins import Kind, find, origin

COMMON: Final = tuple(field.name for field in dataclasses.fields(Parameters))
"""The parameters that evaluators share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One key that may be given."""

    name: str
    type: str
    """What is allowed, in words."""
    required: bool
    default: str | None
    """As the configuration writes it; None where there is none, or none that can be written."""
    doc: str
    example: str
    """A value that is allowed, as the configuration writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a plug-in says about itself."""

    kind: Kind
    name: str
    origin: str
    """`built-in`, or the distribution that it comes from and its version."""
    summary: str
    """The first sentence of its documentation."""
    doc: str
    """All of it."""
    parameters: tuple[Parameter, ...] = ()
    """What can be configured; of an evaluator its own first, then those that evaluators share."""
    expectation: str | None = None
    """Of an evaluator: the parameter that `expected_from` fills in trace by trace."""


def describe(name: str, kind: Kind = "evaluators") -> Description:
    """Return what a plug-in says about itself.

    Raises:
        ConfigError: there is no such plug-in.
        PluginError: it cannot be loaded, or does not keep its contract.
    """
    doc = docstring(find(kind, name))
    parameters: tuple[Parameter, ...] = ()
    expectation = None
    if kind == "evaluators":
        evaluator = evaluator_type(name)
        expectation = evaluator.expectation
        parameters = tuple(sorted(parameters_of(evaluator.parameters), key=lambda each: each.name in COMMON))
    elif kind in KINDS.values():
        parameters = parameters_of(sections_of(kind, name))
    return Description(
        kind=kind,
        name=name,
        origin=origin(kind, name),
        summary=first_sentence(doc),
        doc=doc,
        parameters=parameters,
        expectation=expectation,
    )


def parameters_of(section: type[Section]) -> tuple[Parameter, ...]:
    """Return the keys of a section, in the order of their declaration."""
    schema = section.model_json_schema()
    definitions = schema.get("$defs", {})
    required = schema.get("required", ())
    return tuple(
        Parameter(
            name=name,
            type=words(each, definitions),
            required=name in required,
            default=_in_yaml(each["default"]) if each.get("default") is not None else None,
            doc=each.get("description", ""),
            example=_in_yaml(example(each, definitions)),
        )
        for name, each in schema.get("properties", {}).items()
    )


def _in_yaml(value: Any) -> str:
    """Return a value as it is written in YAML, on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
