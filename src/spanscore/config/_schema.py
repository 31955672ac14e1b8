"""The JSON Schema of the configuration file, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from spanscore.config._parameters import EvaluatorType, evaluator_type
from spanscore.config._plugged import usable, whole_document

Schema: TypeAlias = dict[str, Any]

_REFERENCE: Final = "#/$defs/{model}"
_VARIABLE: Final = "EnvironmentVariable"
_ANNOTATIONS: Final = ("description", "default", "examples")


def json_schema() -> Schema:
    """Return the schema: all sections, and the settings of each installed plug-in.

    It accepts what `load` accepts, except for checks that need more than the file: whether numbers fit together, the
    values of environment variables, and checks of evaluators themselves.
    """
    kinds = [evaluator_type(name) for name in usable("evaluators")]
    whole = whole_document()
    models: list[type[BaseModel]] = [whole, *(kind.entry for kind in kinds)]
    references, schema = models_json_schema([(model, "validation") for model in models], ref_template=_REFERENCE)
    definitions: Schema = schema["$defs"]
    for kind in kinds:
        _say_what_is_expected(definitions[_name(references[kind.entry, "validation"])], kind)
    document = definitions.pop(_name(references[whole, "validation"]))
    document["properties"]["evaluators"]["additionalProperties"] = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": [kind.name for kind in kinds]}},
        "allOf": [
            {"if": {"properties": {"type": {"const": kind.name}}}, "then": references[kind.entry, "validation"]}
            for kind in kinds
        ],
    }
    definitions[_VARIABLE] = {
        "description": "The value of an environment variable.",
        "type": "string",
        "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}",
    }
    for each in (document, *definitions.values()):
        _tidy(each)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **document,
        "title": "Configuration of spanscore",
        "$defs": dict(sorted(definitions.items())),
    }


def _name(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).removeprefix(_REFERENCE.format(model=""))


def _say_what_is_expected(entry: Schema, kind: EvaluatorType) -> None:
    """Add the rule that an entry has either the parameter with the expectation, or `expected_from`."""
    entry["type"] = "object"
    if kind.expectation is None:
        del entry["properties"]["expected_from"]
    elif kind.needs_expectation:
        entry["oneOf"] = [{"required": [kind.expectation]}, {"required": ["expected_from"]}]
    else:
        entry["not"] = {"required": [kind.expectation, "expected_from"]}


def _tidy(schema: Schema) -> None:
    """Drop redundant parts, and allow a variable in place of each scalar that is not any text."""
    if schema.get("additionalProperties") is True:
        del schema["additionalProperties"]  # says nothing, and not every version of pydantic says it
    for key, below in schema.get("properties", {}).items():
        below.pop("title", None)
        _tidy(below)
        schema["properties"][key] = _or_variable(below)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            _tidy(schema[name])
            schema[name] = _or_variable(schema[name])
    for name in ("anyOf", "prefixItems"):
        for index, below in enumerate(schema.get(name, ())):
            _tidy(below)
            schema[name][index] = _or_variable(below)


def _or_variable(schema: Schema) -> Schema:
    is_any_text = schema.get("type") == "string" and "pattern" not in schema and "enum" not in schema
    if is_any_text or not ("enum" in schema or schema.get("type") in ("string", "integer", "number", "boolean")):
        return schema
    annotations: Schema = {name: schema.pop(name) for name in _ANNOTATIONS if name in schema}
    return {**annotations, "anyOf": [schema, {"$ref": _REFERENCE.format(model=_VARIABLE)}]}
