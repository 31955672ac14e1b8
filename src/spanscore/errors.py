"""Every exception that spanscore raises on purpose.

SpanscoreError
├── ConfigError        a configuration or an evaluator's parameters are wrong
│   └── PluginError    a plug-in cannot be loaded, or two claim one name
└── InputError         recorded telemetry cannot be read
"""

from __future__ import annotations


class SpanscoreError(Exception):
    """The parent of all: catch this to catch everything."""


class ConfigError(SpanscoreError):
    """A configuration, or the parameters of an evaluator, are wrong. The message lists every error found."""


class PluginError(ConfigError):
    """A plug-in cannot be loaded, or two plug-ins claim one name. The message names the distribution."""


class InputError(SpanscoreError):
    """Recorded telemetry cannot be read. The message names the file and the place."""
