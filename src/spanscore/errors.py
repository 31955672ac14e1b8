"""The exceptions that spanscore raises on purpose.

SpanscoreError
├── ConfigError        a configuration or an evaluator's parameters are wrong
│   └── PluginError    a plug-in cannot be loaded, or two claim one name
│       └── PluginLoadError    its import fails
├── InputError         recorded telemetry cannot be read
├── OutputError        an exporter cannot be started
├── RefusedError       a request cannot be used
└── TryAgainError      a request cannot be taken now
"""

from __future__ import annotations


class SpanscoreError(Exception):
    """The parent of all: catch this to catch everything."""


class ConfigError(SpanscoreError):
    """A configuration, or the parameters of an evaluator, are wrong. The message lists every error found."""


class PluginError(ConfigError):
    """A plug-in cannot be loaded, or two plug-ins claim one name. The message names the distribution."""


class PluginLoadError(PluginError):
    """The import of a plug-in fails. It costs nothing but itself where nobody asks for it by name."""


class InputError(SpanscoreError):
    """Recorded telemetry cannot be read. The message names the file and the place."""


class OutputError(SpanscoreError):
    """An exporter cannot be started. The message begins with its key below `exporters.NAME`."""


class RefusedError(SpanscoreError):
    """A request cannot be used: to send it again is of no use."""


class TryAgainError(SpanscoreError):
    """A request cannot be taken now; its sender should send it again.

    Args:
        told: why, to be told to the sender.
        retry_after_s: how long it should wait.
    """

    def __init__(self, told: str, retry_after_s: float) -> None:
        super().__init__(told)
        self.retry_after_s = retry_after_s
