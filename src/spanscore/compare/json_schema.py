"""Checks values against JSON Schemas, also from untrusted sources.

Schemas come from configurations and from traces. To prevent requests and endless checks, references stay inside the
schema, patterns run on RE2, which takes time linear in the text, and a check ends after a fixed amount of work.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from spanscore.compare._patterns import compiled, is_found
from spanscore.compare.differences import ABSENT, Difference
from spanscore.compare.effort import MAX_WORK, SchemaWork
from spanscore.compare.matching import json_key
from spanscore.model import JSON

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]

_DATA: Final = frozenset({"const", "default", "enum", "examples"})
KEYWORDS: Final = frozenset(
    {*Draft202012Validator.VALIDATORS, *_DATA, "$schema", "$id", "$defs", "definitions", "title", "description"}
)
"""An object that is not empty and has none of them is no schema, but perhaps the arguments by name."""
MAX_PARTS: Final = 5_000
"""No schema may have more parts."""
MAX_DEPTH: Final = 64
"""Neither a schema nor a value may be nested deeper."""

_MAX_NESTED: Final = 2 * MAX_DEPTH + 8
"""Keywords within keywords: enough for a recursive schema at the deepest value, and far from the end of the stack,
where libraries in other languages do not raise but break."""
_ENDLESS: Final = "a reference leads nowhere, or back to itself without end"
_ROOM: Final = 10
"""Levels of the stack: more than jsonschema uses between one keyword and the next."""
_SHOWN: Final = 3
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_work: ContextVar[SchemaWork] = ContextVar("work")


class UncheckableError(Exception):
    """A value cannot be checked within the limits."""


class Schema:
    """A schema that is ready to check values.

    Its draft is 2020-12, unless its `$schema` names another.

    Raises:
        ValueError: it is no JSON Schema, or not one that can be used here; the message has the reason.
    """

    def __init__(self, schema: JSON) -> None:
        parts = list(_parts(schema))
        draft = _draft(schema)
        try:
            draft.check_schema(schema, format_checker=None)  # formats are checked by Python's regular expressions
        except SchemaError as error:
            raise ValueError(f"not a JSON Schema: {error.message} at {_pointer(error.absolute_path)}") from error
        except RecursionError as error:
            raise ValueError("the schema is nested too deeply") from error
        _refuse_unusable(schema, parts)
        self._validator = _bounded(draft)(schema, registry=Registry())
        self._named = frozenset(name for part in parts for name in _names(part, "properties"))
        try:
            self.problems({}, SchemaWork())
        except UncheckableError as error:
            raise ValueError(f"the schema cannot be used: {error}") from error

    def problems(self, value: JSON, work: SchemaWork) -> list[Difference]:
        """Return the first few problems of a value; empty if it is valid.

        The expected part of a problem is the broken rule, without the value: scores are sent to places where arguments
        may not be. The known path has `*` for each key that the schema does not name: it may come from a user. Other
        checks may share `work`.

        Raises:
            UncheckableError: the check exceeds the limits.
        """
        if _depth(value) > MAX_DEPTH:
            raise UncheckableError(f"nested more than {MAX_DEPTH} levels deep")
        own = SchemaWork(min(work.left, MAX_WORK))
        granted = own.left
        token = _work.set(own)
        try:
            _leave_room()
            return self._distinct(islice(self._validator.iter_errors(value), _SHOWN))
        except (RecursionError, Unresolvable) as error:
            raise UncheckableError(_ENDLESS) from error
        except (ArithmeticError, ValueError) as error:  # Python writes no integer of more than 4,300 digits
            raise UncheckableError("a number is too large") from error
        finally:
            _work.reset(token)
            work.left -= granted - own.left

    def _distinct(self, errors: Iterable[ValidationError]) -> list[Difference]:
        found: dict[str, Difference] = {}
        for error in errors:
            is_missing = error.validator == "required"
            path = tuple(error.absolute_path)
            known = tuple(step if isinstance(step, int) or step in self._named else "*" for step in path)
            required = error.validator_value if is_missing and isinstance(error.validator_value, list) else ()
            missing = (name for name in required if error.message.startswith(repr(name)))
            problem = Difference(
                path,
                error.message if is_missing else f"{error.validator}: {reprlib.repr(error.validator_value)}",
                ABSENT if is_missing else error.instance,
                (*known, *islice(missing, 1)),
            )
            found.setdefault(problem_text(problem), problem)
        return list(found.values())


def problem_text(problem: Difference) -> str:
    """Return a problem as text: its JSON pointer, and the broken rule."""
    return f"{_pointer(problem.path)}: {problem.expected}"


def _names(part: Mapping[str, Any], keyword: str) -> Iterable[str]:
    named = part.get(keyword)
    return named if isinstance(named, dict) else ()


def _draft(schema: Any) -> Any:
    named = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if not isinstance(schema, (dict, bool)) or not isinstance(named, str):
        message = "a schema must be an object or a boolean, and its $schema a text"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with a schema
    return validator_for(schema, default=Draft202012Validator)


def _refuse_unusable(schema: Any, parts: Iterable[dict[str, Any]]) -> None:
    keywords: set[str] = set()
    for part in parts:
        keywords.update(part)
        for pattern in [part.get("pattern"), *_names(part, "patternProperties")]:
            if isinstance(pattern, str):
                compiled(pattern)
        for keyword in _REFERENCES & part.keys():
            _refuse_unresolvable(schema, part[keyword])
    if keywords & _UNEVALUATED and keywords & {"patternProperties", *_REFERENCES}:
        raise ValueError(f"{min(keywords & _UNEVALUATED)} cannot be used together with references or patternProperties")


def _parts(schema: JSON) -> Iterator[dict[str, Any]]:
    """Yield the objects in a schema that are schemas, or may be."""
    pending: list[tuple[Any, int]] = [(schema, 0)]
    for _ in range(MAX_PARTS):
        if not pending:
            return
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"a schema must not be nested more than {MAX_DEPTH} levels deep")
        if isinstance(part, dict):
            yield part
            pending += ((value, depth + 1) for key, value in part.items() if key not in _DATA)
        elif isinstance(part, list):
            pending += ((value, depth + 1) for value in part)
    raise ValueError(f"a schema must not have more than {MAX_PARTS} parts")


def _refuse_unresolvable(schema: Any, reference: Any) -> None:
    if not isinstance(reference, str):  # a property of that name
        return
    if reference != "#" and not reference.startswith("#/"):
        message = f"the reference {reference!r} is not allowed; use one inside the schema, such as '#/$defs/city'"
        raise ValueError(message)
    try:
        Registry().resolver_with_root(DRAFT202012.create_resource(schema)).lookup(reference)
    except Unresolvable as error:
        raise ValueError(f"the reference {reference!r} leads nowhere") from error


@lru_cache(maxsize=16)
def _bounded(draft: Any) -> Any:
    """Return a draft's validator with our own keywords in place of the unsafe ones, and all of them counted."""
    ours: dict[str, _Keyword] = {
        "additionalProperties": _additional_properties,
        "pattern": _match,
        "patternProperties": _pattern_properties,
        "uniqueItems": _unique_items,
    }
    keywords = {name: _counted(ours.get(name, keyword)) for name, keyword in draft.VALIDATORS.items()}
    return extend(draft, keywords)  # type: ignore[no-untyped-call]  # the stubs leave its types out


def _counted(keyword: _Keyword) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        work = _work.get()
        if not work.left:
            raise UncheckableError("too much work")
        if work.nested >= _MAX_NESTED:
            raise UncheckableError(_ENDLESS)
        _leave_room()
        work.left -= 1
        work.nested += 1
        try:
            yield from keyword(validator, value, instance, schema)
        finally:
            work.nested -= 1

    return check


def _leave_room(levels: int = _ROOM) -> None:
    """Raise RecursionError if few levels of the stack are left: maps of jsonschema, which are in Rust, would panic."""
    if levels:
        _leave_room(levels - 1)


def _match(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not is_found(pattern, instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if is_found(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in schema.get("properties", {}) or any(is_found(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError("not allowed", path=[name], instance=value)
        else:
            yield from validator.descend(value, allowed, path=name)


def _unique_items(validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if unique and validator.is_type(instance, "array") and len(set(map(json_key, instance))) < len(instance):
        yield ValidationError("repeated items")


def _depth(value: Any) -> int:
    depth, layer = 0, [value]
    while layer and depth <= MAX_DEPTH:
        inner = (item.values() if isinstance(item, dict) else item for item in layer if isinstance(item, (dict, list)))
        layer = [each for items in inner for each in items]
        depth += 1
    return depth


def _pointer(path: Iterable[str | int]) -> str:
    return "/" + "/".join(reprlib.repr(step).strip("'") for step in path)
