"""Descriptions of plug-ins and sections for people, made from their classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from spanscore.config._parameters import evaluator_type
from spanscore.config._plugged import KINDS, sections_of
from spanscore.config._section import Section, docstring, first_sentence
from spanscore.contracts import Parameters
from spanscore.contracts.plugins import Kind, find, origin

Schema: TypeAlias = Mapping[str, Any]

COMMON: Final = tuple(field.name for field in dataclasses.fields(Parameters))
"""The parameters that evaluators share."""

_SCALARS: Final = {"boolean": "true or false", "integer": "integer", "number": "number", "string": "text"}
_EXAMPLES: Final[Schema] = {"boolean": True, "integer": 1, "number": 1.0, "string": "search"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One key that may be given."""

    name: str
    type: str
    """The allowed values, in words."""
    required: bool
    default: str | None
    """As the configuration writes it; None where there is none, or none that can be written."""
    doc: str
    example: str
    """A value that is allowed, as the configuration writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The description of a plug-in."""

    kind: Kind
    name: str
    origin: str
    """`built-in`, or the distribution that it comes from and its version."""
    summary: str
    """The first sentence of its documentation."""
    doc: str
    """All of it."""
    expectation: str | None = None
    """Of an evaluator: the parameter that `expected_from` fills in trace by trace."""
    section: type[Section] | None = None
    """The section that has its parameters; None if it has none."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters. An evaluator's own come first, then the ones that all evaluators share."""
        found = parameters_of(self.section) if self.section else ()
        return tuple(sorted(found, key=lambda each: each.name in COMMON)) if self.kind == "evaluators" else found


def describe(name: str, kind: Kind = "evaluators") -> Description:
    """Return the description of a plug-in.

    Raises:
        ConfigError: there is no such plug-in.
        PluginError: it cannot be loaded, or does not keep its contract.
    """
    doc = docstring(find(kind, name))
    section = expectation = None
    if kind == "evaluators":
        evaluator = evaluator_type(name)
        section, expectation = evaluator.parameters, evaluator.expectation
    elif kind in KINDS.values():
        section = sections_of(kind, name)
    return Description(
        kind=kind,
        name=name,
        origin=origin(kind, name),
        summary=first_sentence(doc),
        doc=doc,
        expectation=expectation,
        section=section,
    )


def parameters_of(section: type[Section]) -> tuple[Parameter, ...]:
    """Return the keys of a section, in the order of their declaration."""
    schema = section.model_json_schema()
    definitions = schema.get("$defs", {})
    required = schema.get("required", ())
    return tuple(
        Parameter(
            name=name,
            type=_words(each, definitions),
            required=name in required,
            default=_in_yaml(each["default"]) if each.get("default") is not None else None,
            doc=each.get("description", ""),
            example=_in_yaml(_example(each, definitions)),
        )
        for name, each in schema.get("properties", {}).items()
    )


def _in_yaml(value: Any) -> str:
    """Return a value as it is written in YAML, on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")


def _words(schema: Schema, definitions: Schema) -> str:
    """Return the values that a schema allows, in words."""
    schema = _resolved(schema, definitions)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_words(each, definitions) for each in _choices(schema)))
    if "enum" in schema or "const" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = _kind(schema)
    if kind == "array":
        items = [_words(each, definitions) for each in _items(schema)]
        return f"[{', '.join(items)}]" if "prefixItems" in schema else f"list of {items[0]}"
    if kind == "object" and "properties" in schema:
        optional = schema["properties"].keys() - schema.get("required", ())
        return "{" + ", ".join(key + "?" * (key in optional) for key in schema["properties"]) + "}"
    if kind == "object":
        return f"mapping of names to {_words(_values(schema), definitions)}"
    return _SCALARS.get(kind, "JSON") + _bounds(schema)


def _example(schema: Schema, definitions: Schema) -> Any:
    """Return a short value that a schema allows."""
    schema = schema if "examples" in schema else _resolved(schema, definitions)
    if "examples" in schema or "enum" in schema:
        return schema.get("examples", schema.get("enum"))[0]
    if "anyOf" in schema:
        return _example(_choices(schema)[0], definitions)
    kind = _kind(schema)
    if kind == "array":
        return [_example(each, definitions) for each in _items(schema)]
    if kind == "object" and "properties" in schema:
        return {key: _example(schema["properties"][key], definitions) for key in schema.get("required", ())}
    if kind == "object":
        return {_EXAMPLES["string"]: _example(_values(schema), definitions)} if _values(schema) else {}
    return _number(schema["minimum"]) if "minimum" in schema else _EXAMPLES.get(kind, {})


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    reference = schema.get("$ref")
    found: Schema = definitions[reference.rpartition("/")[2]] if reference else schema
    return found


def _choices(schema: Schema) -> list[Schema]:
    return [each for each in schema["anyOf"] if each.get("type") != "null"]


def _kind(schema: Schema) -> str:
    kind = schema.get("type", "")
    return str(kind[0]) if isinstance(kind, list) else str(kind)


def _items(schema: Schema) -> list[Schema]:
    return list(schema.get("prefixItems", [schema.get("items", {})]))


def _values(schema: Schema) -> Schema:
    """Return the schema of a mapping's values; empty when they may be anything."""
    values = schema.get("additionalProperties")
    return values if isinstance(values, dict) else {}


def _bounds(schema: Schema) -> str:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f", more than {_number(schema['exclusiveMinimum'])}"
    if "pattern" in schema and "examples" in schema:
        return f" such as {schema['examples'][0]}"
    if lowest is None:
        return "" if highest is None else f", at most {_number(highest)}"
    return f", at least {_number(lowest)}" if highest is None else f", {_number(lowest)} to {_number(highest)}"


def _number(value: float) -> float:
    """Return a whole number as an integer, which not every version of pydantic does."""
    return int(value) if value == int(value) else value
