"""Dataclasses as models: their fields, annotations and the strings below them define the allowed configuration.

Data that such a model has checked is built as the dataclass, which is independent of configurations.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    ValidationInfo,
    create_model,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from spanscore.config._check import Model
from spanscore.config._nodes import plain
from spanscore.config._section import Section, docstring, field_docs
from spanscore.contracts.settings import (
    AS_DURATION,
    DURATION_PART,
    BesideConfiguration,
    ByPlace,
    Example,
    Internal,
    Written,
    parsed_url,
    seconds,
)
from spanscore.errors import PluginError
from spanscore.model import NotRecorded

UNSAID: Final[Mapping[str, Any]] = {"default_factory": object, "validate_default": False}
"""A key that may be left out, without a default in the JSON Schema."""

_PLAIN: Final = (0, 1)
"""Bounds that need no unit."""


def model_of(documented: type[Any], base: type[Model], fields: Mapping[str, Any]) -> type[Model]:
    """Return a model with the documentation of a dataclass."""
    model = create_model(
        documented.__name__, __base__=base, __doc__=docstring(documented), __module__=documented.__module__, **fields
    )
    model.documented = partial(_docs_of, documented)
    return model


def hints_of(documented: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields."""
    # JSON is an alias of a text that names itself, which pydantic cannot follow; it has its own name for the same.
    names = {"JSON": JsonValue, "NotRecorded": NotRecorded}
    return get_type_hints(documented, localns=names, include_extras=True)


def fields_of(documented: Any) -> dict[str, tuple[Any, Any]]:
    """Return the keys for the fields of a dataclass, in pydantic's form."""
    return {
        key: (checkable(hint | None if ByPlace() in _marks(hint) else hint), Field(**_default(field, hint)))
        for key, field, hint in _configured(documented)
    }


def _docs_of(documented: Any) -> dict[str, str]:
    docs = field_docs(documented)
    return {key: docs[field.name] for key, field, _ in _configured(documented) if field.name in docs}


@lru_cache(maxsize=256)  # of each expected call in a configuration and in each row of a dataset
def _configured(documented: Any) -> Sequence[tuple[str, dataclasses.Field[Any], Any]]:
    """Return the keys, the fields and their types; a duration of so many seconds is written with its unit."""
    hints = hints_of(documented)
    fields = [(field, hints[field.name], list(_marks(hints[field.name]))) for field in dataclasses.fields(documented)]
    return [
        (field.name.removesuffix("_s") if AS_DURATION in marks else field.name, field, hint)
        for field, hint, marks in fields
        if field.init and Internal() not in marks
    ]


def checkable(hint: Any) -> Any:
    """Replace dataclasses in a type by models that build them, and marks by their pydantic validators."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Annotated[model_of(hint, Section, fields_of(hint)), AfterValidator(partial(_built, hint))]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal or not arguments:
        return hint
    if origin is Annotated:
        written = next((mark for mark in _marks(hint) if isinstance(mark, Written)), None)
        return Annotated[(checkable(arguments[0]), *(_checked_by(mark, written) for mark in arguments[1:]))]
    inner = tuple(checkable(argument) for argument in arguments if argument is not NotRecorded)
    return Union[inner] if origin in (Union, types.UnionType) else origin[inner]  # noqa: UP007 - known only here


def construct(documented: Any, parameters: Mapping[str, Any]) -> Any:
    """Build a dataclass from the values of its keys."""
    values = {
        field.name: parameters[key]
        for key, field, hint in _configured(documented)
        if key in parameters and (parameters[key] is not None or ByPlace() not in _marks(hint))
    }
    try:
        return documented(**values)
    except ValueError:
        raise
    except Exception as error:  # a plug-in's own check may raise anything
        raise PluginError(f"{documented.__name__} cannot be built: {type(error).__name__}: {error}") from error


def given(checked: Section) -> dict[str, Any]:
    """Return the values that were given, without defaults."""
    return {name: getattr(checked, name) for name in checked.model_fields_set}


def _built(documented: type[Any], checked: Section) -> Any:
    try:
        return construct(documented, given(checked))
    except PluginError as error:
        raise ValueError(str(error)) from error


def _checked_by(mark: Any, written: Written | None) -> Any:
    """Return the pydantic form of a mark in an annotation; bounds of a value that is written as text are, too."""
    match mark:
        case Ge(limit) | Le(limit) if limit not in _PLAIN and written is not None:
            return AfterValidator(partial(_within, mark, written.write))
        case Written():
            return _Text(mark)
        case BesideConfiguration():
            return AfterValidator(_beside_the_configuration)
        case Example(value):
            return Field(examples=[value])
        case _:
            return mark


@dataclass(frozen=True, slots=True)
class _Text:
    """The validator of a value that is written as text and stored as another type."""

    written: Written

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text: CoreSchema = core_schema.str_schema()
        if self.written.error != "string_type":
            text = core_schema.custom_error_schema(
                text, custom_error_type=self.written.error, custom_error_message="must be text"
            )
        read = core_schema.no_info_after_validator_function(self.written.read, text)
        if not self.written.or_number:
            return read
        return core_schema.union_schema(
            [read, core_schema.float_schema(strict=True)],
            custom_error_type=self.written.error,
            custom_error_message="must be text or a number",
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        pattern = {"pattern": f"^{self.written.pattern}$"} if self.written.pattern else {}
        if self.written.or_number:
            either = [{"type": "string", **pattern}, {"type": "number", "minimum": 0, "maximum": 1}]
            return {"anyOf": either, "examples": [self.written.example]}
        return {"type": "string", **pattern, **({"examples": [self.written.example]} if self.written.example else {})}


def _within(bound: Ge | Le, write: Callable[[Any], str], value: Any) -> Any:
    limit: Any = bound.ge if isinstance(bound, Ge) else bound.le
    if value is None or (value >= limit if isinstance(bound, Ge) else value <= limit):
        return value
    kind, name = ("greater_than_equal", "ge") if isinstance(bound, Ge) else ("less_than_equal", "le")
    raise PydanticCustomError(kind, "out of bounds", {name: write(limit)})


def _beside_the_configuration(path: Path, info: ValidationInfo) -> Path:
    if path == Path() or "\0" in str(path):
        raise ValueError("must name a file")
    return Path(info.context or "") / path


def _time_limit(text: str) -> float:
    if text == "none":
        return math.inf
    limit = seconds(text)
    if not limit:
        raise ValueError(f"must be more than 0, not {text!r}; write 'none' for no limit")
    return limit


def _trace_url(text: str) -> str:
    host = parsed_url(text).netloc
    rest = text.replace("{trace_id}", "").replace("{span_id}", "")
    if "{trace_id}" in text and not {"{", "}"} & {*host, *rest}:
        return text
    message = f"must have {{trace_id}}, and may have {{span_id}}, behind the host, and no other braces, not {text!r}"
    raise ValueError(message)


def _marks(hint: Any) -> Iterator[Any]:
    """Yield the annotations of a type, and of each type of a union."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        yield from marks
        yield from _marks(inner)
    elif get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _marks(member)


def _default(field: dataclasses.Field[Any], hint: Any) -> Mapping[str, Any]:
    """Return the default as the configuration would write it, only to be shown: building uses the dataclass's own."""
    if field.default_factory is not dataclasses.MISSING:
        value: Any = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        value = field.default
    else:
        return {}
    marks = list(_marks(hint))
    if ByPlace() in marks or (value == {} and any(isinstance(mark, Example) for mark in marks)):
        return UNSAID
    data, problems = plain(_shown(value, hint))
    return UNSAID if problems else {"default": data, "validate_default": False}


def _shown(value: Any, hint: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: _shown(getattr(value, field.name), below) for key, field, below in _configured(type(value))}
    written = next((mark for mark in _marks(hint) if isinstance(mark, Written)), None)
    return value if value is None or written is None else written.write(value)


TimeLimit = Annotated[float, _Text(Written(_time_limit, f"(?:none|(?:{DURATION_PART})+)", "not_a_duration", "500ms"))]
TraceUrl = Annotated[
    str,
    _Text(
        Written(
            _trace_url,
            r"https?://[^\s{}/]+/\S*\{trace_id\}\S*",
            "not_a_url",
            "https://jaeger.example.com/trace/{trace_id}?uiFind={span_id}",
        )
    ),
]
ConfiguredFile = Annotated[Path, AfterValidator(_beside_the_configuration)]
