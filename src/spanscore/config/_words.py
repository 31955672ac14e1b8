"""A JSON Schema in words, and a value that it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_SCALARS: Final = {"boolean": "true or false", "integer": "integer", "number": "number", "string": "text"}
_EXAMPLES: Final[Schema] = {"boolean": True, "integer": 1, "number": 1.0, "string": "search"}


def words(schema: Schema, definitions: Schema) -> str:
    """Return what a schema allows, in words."""
    schema = _resolved(schema, definitions)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(words(each, definitions) for each in _choices(schema)))
    if "enum" in schema or "const" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = _kind(schema)
    if kind == "array":
        items = [words(each, definitions) for each in _items(schema)]
        return f"[{', '.join(items)}]" if "prefixItems" in schema else f"list of {items[0]}"
    if kind == "object" and "properties" in schema:
        optional = schema["properties"].keys() - schema.get("required", ())
        return "{" + ", ".join(key + "?" * (key in optional) for key in schema["properties"]) + "}"
    if kind == "object":
        return f"mapping of names to {words(_values(schema), definitions)}"
    return _SCALARS.get(kind, "JSON") + _bounds(schema)


def example(schema: Schema, definitions: Schema) -> Any:
    """Return a short value that a schema allows."""
    schema = _resolved(schema, definitions)
    if "examples" in schema or "enum" in schema:
        return schema.get("examples", schema.get("enum"))[0]
    if "anyOf" in schema:
        return example(_choices(schema)[0], definitions)
    kind = _kind(schema)
    if kind == "array":
        return [example(each, definitions) for each in _items(schema)]
    if kind == "object" and "properties" in schema:
        return {key: example(schema["properties"][key], definitions) for key in schema.get("required", ())}
    if kind == "object":
        return {_EXAMPLES["string"]: example(_values(schema), definitions)} if _values(schema) else {}
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
