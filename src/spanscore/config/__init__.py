"""A configuration file into checked parts. No other package reads YAML or uses pydantic."""

from spanscore.config._config import Config
from spanscore.config._describe import Description, Parameter, describe
from spanscore.config._loading import default, load, loads
from spanscore.config._parameters import build_evaluator
from spanscore.config._reference_yaml import reference
from spanscore.config._schema import json_schema
from spanscore.config.datasets.expectations import ByCase
from spanscore.contracts.settings import Endpoint, Secret

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
