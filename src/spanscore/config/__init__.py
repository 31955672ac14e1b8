"""A configuration file into checked parts. No other package reads YAML or uses pydantic."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from spanscore.config._config import Config
from spanscore.config._default import default
from spanscore.config.datasets.expectations import ByCase
from spanscore.contracts.settings import Endpoint, Secret

if TYPE_CHECKING:
    from spanscore.config._describe import Description, Parameter, describe
    from spanscore.config._loading import load, loads
    from spanscore.config._parameters import build_evaluator
    from spanscore.config._reference_yaml import reference
    from spanscore.config._schema import json_schema

__all__ = [
    "ByCase",
    "Config",
    "Description",
    "Endpoint",
    "Parameter",
    "Secret",
    "build_evaluator",
    "default",
    "describe",
    "json_schema",
    "load",
    "loads",
    "reference",
]

_LATER: Final = {
    **dict.fromkeys(("Description", "Parameter", "describe"), "_describe"),
    **dict.fromkeys(("load", "loads"), "_loading"),
    "build_evaluator": "_parameters",
    "json_schema": "_schema",
    "reference": "_reference_yaml",
}


def __getattr__(name: str) -> Any:
    """Import what is first used: YAML and pydantic take a third of a short command, which needs none without a file."""
    if name in _LATER:
        return globals().setdefault(name, getattr(import_module(f"spanscore.config.{_LATER[name]}"), name))
    raise AttributeError(f"module 'spanscore.config' has no attribute {name!r}")
