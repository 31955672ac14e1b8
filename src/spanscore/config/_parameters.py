"""An evaluator's parameters: from the fields of its dataclass to a checked and built evaluator.

An evaluator knows nothing of configurations: its fields, their annotations and the strings below them say everything.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, Field, JsonValue, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from spanscore.compare.expected import ExpectedCall
from spanscore.config._check import Model, check, without_values
from spanscore.config._docstrings import docstring, field_docs
from spanscore.config._plain import plain
from spanscore.config._section import Section
from spanscore.config._sections import EvaluatorKeys
from spanscore.config._tree import Node, Path, Place, Problem, dotted
from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError, PluginError
from spanscore.model import NotRecorded
from spanscore.plugins import find

# A key that may be left out, of which the JSON Schema says no default.
_UNSAID: Final[Mapping[str, Any]] = {"default_factory": object, "validate_default": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorType:
    """What may be said about one type of evaluator, as models to check it with."""

    name: str
    evaluator: type[Any]
    expectation: str | None
    expected_call: type[ExpectedCall] | None
    """What the expectation has for each call, where it is a list of calls."""
    parameters: type[Section]
    """The parameters."""
    row: type[Section]
    """Some of the parameters: a row of a dataset."""
    entry: type[EvaluatorKeys]
    """An entry of the configuration: the parameters, the expectation optional, and the keys that every entry has."""

    @property
    def needs_expectation(self) -> bool:
        """Whether an entry that expects nothing is a mistake.

        A class may say so itself of an expectation that is optional, as it skips every run without: a program may build
        it that way.
        """
        if self.expectation is None:
            return False
        is_required = self.parameters.model_fields[self.expectation].is_required()
        return is_required or bool(getattr(self.evaluator, "needs_expectation", False))

    def build(self, parameters: Mapping[str, Any], node: Node, path: Path = ()) -> Evaluator | list[Problem]:
        """Make an evaluator of checked parameters, or return what it has against them itself.

        Args:
            parameters: by name; what is not given stays at the evaluator's default.
            node: what they were read from.
            path: the path of `node` in its file.
        """
        try:
            return cast("Evaluator", _construct(self.evaluator, parameters))
        except ValueError as error:
            below, text = node.named_in(str(error))
            return [Problem(node.find(below).place, (*path, *below), without_values(text, node))]


def build_evaluator(name: str, parameters: Mapping[str, Any]) -> Evaluator:
    """Build an evaluator from Python values.

    Raises:
        ConfigError: there is no such type, or parameters are wrong; the message lists every error.
    """
    kind = evaluator_type(name)
    data, problems = plain(parameters)
    if not problems:
        node = Node.of(data, Place())
        checked = check(kind.parameters, node, directory=FilePath())
        built = checked if isinstance(checked, list) else kind.build(given(checked), node)
        if not isinstance(built, list):
            return built
        problems = built
    raise ConfigError("\n".join(f"{dotted((name, *each.path))}: {each.message}" for each in problems))


def evaluator_type(name: str) -> EvaluatorType:
    """Return a type of evaluator by name.

    Raises:
        ConfigError: there is none of that name.
        PluginError: its class does not keep the contract of evaluators.
    """
    return _evaluator_type(name, find("evaluators", name))


def given(checked: Section) -> dict[str, Any]:
    """Return the values that were given, without those left at their defaults."""
    return {name: getattr(checked, name) for name in checked.model_fields_set}


@lru_cache(maxsize=256)
def _evaluator_type(name: str, evaluator: type[Any]) -> EvaluatorType:
    problem = _broken_contract(evaluator)
    if problem:
        message = f"evaluator {name!r} ({evaluator.__module__}.{evaluator.__qualname__}) {problem}"
        raise PluginError(message)
    try:
        fields = _fields(evaluator)  # anew for each model: pydantic 2.10 changes the fields it is given
        optional = {key: (hint, _optional(field)) for key, (hint, field) in fields.items()}
        expected = {key: field for key, field in optional.items() if key == evaluator.expectation}
        type_key = (Literal[name], Field(description=EvaluatorKeys.model_fields["type"].description))
        return EvaluatorType(
            name=name,
            evaluator=evaluator,
            expectation=evaluator.expectation,
            expected_call=_expected_call(evaluator),
            parameters=_model(evaluator, Section, _fields(evaluator)),
            row=_model(evaluator, Section, optional),
            entry=_model(evaluator, EvaluatorKeys, {**fields, **expected, "type": type_key}),
        )
    except (NameError, TypeError, RecursionError, PydanticUserError) as error:
        message = f"the parameters of evaluator {name!r} cannot be checked: {error}"
        raise PluginError(message) from error


def _broken_contract(evaluator: type[Any]) -> str:
    if not dataclasses.is_dataclass(evaluator):
        return "must be a dataclass whose fields are its parameters"
    if not callable(getattr(evaluator, "evaluate", None)):
        return "must have a method 'evaluate'"
    names = {field.name for field in dataclasses.fields(evaluator)}
    if getattr(evaluator, "expectation", "") not in (None, *names):
        return "must have a class variable 'expectation': the name of one of its parameters, or None"
    reserved = sorted(names.intersection(EvaluatorKeys.model_fields))
    if reserved:
        return f"must not have a parameter {reserved[0]!r}: every entry of the configuration has a key of that name"
    return ""


def _model(documented: type[Any], base: type[Model], fields: Mapping[str, Any]) -> type[Model]:
    return create_model(documented.__name__, __base__=base, __doc__=docstring(documented), **fields)


def _expected_call(evaluator: type[Any]) -> type[ExpectedCall] | None:
    """Return the class whose instances the expectation is a tuple of."""
    hint = _hints(evaluator).get(evaluator.expectation)
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    item = get_args(hint)[0] if get_origin(hint) is tuple else None
    return item if isinstance(item, type) and issubclass(item, ExpectedCall) else None


def _hints(documented: type[Any]) -> dict[str, Any]:
    # JSON is an alias of a text that names itself, which pydantic cannot follow; it has its own name for the same.
    names = {"JSON": JsonValue, "NotRecorded": NotRecorded}
    return get_type_hints(documented, localns=names, include_extras=True)


def _fields(documented: type[Any]) -> dict[str, tuple[Any, Any]]:
    hints = _hints(documented)
    docs = field_docs(documented)
    return {
        field.name: (_checkable(hints[field.name]), Field(description=docs.get(field.name), **_default(field)))
        for field in dataclasses.fields(documented)
        if field.init
    }


def _checkable(hint: Any) -> Any:
    """Replace dataclasses in a type by models of them that build them."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Annotated[_model(hint, Section, _fields(hint)), AfterValidator(_Builder(hint))]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal or not arguments:
        return hint
    if origin is Annotated:
        return Annotated[(_checkable(arguments[0]), *arguments[1:])]
    inner = tuple(_checkable(argument) for argument in arguments if argument is not NotRecorded)
    return Union[inner] if origin in (Union, types.UnionType) else origin[inner]  # noqa: UP007 - known only here


@dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the dataclass that a model stands for."""

    documented: type[Any]

    def __call__(self, checked: Section) -> Any:
        return _construct(self.documented, given(checked))


def _construct(documented: type[Any], parameters: Mapping[str, Any]) -> Any:
    try:
        return documented(**parameters)
    except ValueError:
        raise
    except Exception as error:  # a plug-in's own check may raise anything
        message = f"{documented.__name__} cannot be built: {type(error).__name__}: {error}"
        raise PluginError(message) from error


def _default(field: dataclasses.Field[Any]) -> Mapping[str, Any]:
    """Return the default as the configuration would write it, only to be shown: building uses the dataclass's own."""
    if field.default_factory is not dataclasses.MISSING:
        value: Any = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        value = field.default
    else:
        return {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    data, problems = plain(value)
    return _UNSAID if problems else {"default": data, "validate_default": False}


def _optional(field: FieldInfo) -> Any:
    return Field(description=field.description, **_UNSAID)
