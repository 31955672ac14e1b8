"""The configuration: YAML, checked and built. The only part of spanscore that knows YAML and pydantic."""

from spanscore.config._by_case import ByCase
from spanscore.config._config import Config, default, load, loads
from spanscore.config._describe import Description, Parameter, describe
from spanscore.config._parameters import build_evaluator
from spanscore.config._reference import reference
from spanscore.config._schema import json_schema
from spanscore.settings import Endpoint, Secret

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
