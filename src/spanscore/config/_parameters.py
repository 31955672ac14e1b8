"""An evaluator's parameters: from the fields of its dataclass to a checked and built evaluator.

An evaluator is independent of configurations: its fields, their annotations and the strings below them define it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from pydantic import Field
from pydantic.errors import PydanticUserError

from spanscore.compare.expected import ExpectedCall
from spanscore.compare.steps.parsing import WrongStepsError
from spanscore.config._check import check, taking_out_values
from spanscore.config._models import UNSAID, construct, fields_of, given, hints_of, model_of
from spanscore.config._nodes import Node, Path, Place, Problem, dotted, plain
from spanscore.config._section import Section
from spanscore.config._sections import EvaluatorKeys
from spanscore.contracts import Evaluator
from spanscore.contracts.plugins import find
from spanscore.errors import ConfigError, PluginError


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorType:
    """The models that check the entries of one type of evaluator."""

    name: str
    evaluator: type[Any]
    expectation: str | None
    call_keys: frozenset[str]
    """The keys of each call in the expectation, if it is a list of calls."""
    parameters: type[Section]
    """The parameters."""
    row: type[Section]
    """Some of the parameters: a row of a dataset."""
    entry: type[EvaluatorKeys]
    """An entry of the configuration: the parameters, the expectation optional, and the keys that every entry has."""

    @property
    def needs_expectation(self) -> bool:
        """Whether an entry without an expectation is a mistake.

        A class may say so itself of an expectation that is optional, as it skips every run without: a program may build
        it that way.
        """
        if self.expectation is None:
            return False
        is_required = self.parameters.model_fields[self.expectation].is_required()
        return is_required or bool(getattr(self.evaluator, "needs_expectation", False))

    def check_and_build(
        self, model: type[Section], parameters: Mapping[str, Any], fixed: Mapping[str, Any]
    ) -> Evaluator | list[Problem]:
        """Build an evaluator from values outside of a configuration, or return their problems.

        They are checked with `model`, and go before the fixed parameters, which were checked before.
        """
        data, problems = plain(parameters)
        if problems:
            return problems
        node = Node.of(data, Place())
        checked = check(model, node, directory=FilePath())
        return checked if isinstance(checked, list) else self.build({**fixed, **given(checked)}, node)

    def build(self, parameters: Mapping[str, Any], node: Node, path: Path = ()) -> Evaluator | list[Problem]:
        """Build an evaluator from checked parameters, or return the problems that it raises itself.

        They were read from `node`, which is at `path` in its file; what is not given stays at the evaluator's default.
        """
        try:
            return cast("Evaluator", construct(self.evaluator, parameters))
        except ValueError as error:
            told = error.mistakes if isinstance(error, WrongStepsError) else [str(error)]
            named, without_values = map(node.named_in, told), taking_out_values(node)
            return [Problem(node.find(at).place, (*path, *at), without_values(text)) for at, text in named]


def build_evaluator(name: str, parameters: Mapping[str, Any]) -> Evaluator:
    """Build an evaluator from Python values.

    Raises:
        ConfigError: there is no such type, or parameters are wrong; the message lists every error.
    """
    kind = evaluator_type(name)
    built = kind.check_and_build(kind.parameters, parameters, {})
    if isinstance(built, list):
        raise ConfigError("\n".join(f"{dotted((name, *each.path))}: {each.message}" for each in built))
    return built


def evaluator_type(name: str) -> EvaluatorType:
    """Return a type of evaluator by name.

    Raises:
        ConfigError: there is none of that name.
        PluginError: its class does not keep the contract of evaluators.
    """
    return _evaluator_type(name, find("evaluators", name))


@lru_cache(maxsize=256)
def _evaluator_type(name: str, evaluator: type[Any]) -> EvaluatorType:
    problem = _broken_contract(evaluator)
    if problem:
        raise PluginError(f"evaluator {name!r} ({evaluator.__module__}.{evaluator.__qualname__}) {problem}")
    try:
        fields = fields_of(evaluator)  # anew for each model: pydantic 2.10 changes the fields it is given
        optional = {key: (hint, Field(**UNSAID)) for key, (hint, _) in fields.items()}
        expected = {key: field for key, field in optional.items() if key == evaluator.expectation}
        type_key = (Literal[name], ...)
        return EvaluatorType(
            name=name,
            evaluator=evaluator,
            expectation=evaluator.expectation,
            call_keys=frozenset(_call_keys(evaluator)),
            parameters=model_of(evaluator, Section, fields_of(evaluator)),
            row=model_of(evaluator, Section, optional),
            entry=model_of(evaluator, EvaluatorKeys, {**fields, **expected, "type": type_key}),
        )
    except (NameError, TypeError, RecursionError, PydanticUserError) as error:
        raise PluginError(f"the parameters of evaluator {name!r} cannot be checked: {error}") from error


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


def _call_keys(evaluator: type[Any]) -> Iterator[str]:
    hint = hints_of(evaluator).get(evaluator.expectation)
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    item = get_args(hint)[0] if get_origin(hint) is tuple else None
    if isinstance(item, type) and issubclass(item, ExpectedCall):
        yield from (field.name for field in dataclasses.fields(item))
