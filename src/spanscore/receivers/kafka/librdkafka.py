"""The Kafka library: the only module that imports it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from spanscore.errors import ConfigError

_SETTINGS: Final = "receivers.kafka.settings"

_MISSING: Final = "Kafka needs confluent-kafka, of the extra 'kafka': pip install confluent-kafka"
_NAME: Final = "spanscore"
_CRITICAL: Final = 2  # syslog severity; the library logs each failed attempt to connect, and reports it to us, too

_Made = TypeVar("_Made")

_log = logging.getLogger(__name__)


def library() -> Any:
    """Return the package; it is loaded only where Kafka is used.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra; other users need not load it
    except ImportError as error:
        raise ConfigError(_MISSING) from error
    return confluent_kafka


def made(kind: Callable[..., _Made], client: Mapping[str, str], settings: Mapping[str, Any]) -> _Made:
    """Return a consumer or a producer.

    Args:
        kind: its class.
        client: settings of the user.
        settings: our own, which precede.

    Raises:
        ConfigError: the package refuses the settings.
    """
    try:
        return kind({"log_level": _CRITICAL, "client.id": _NAME, **client, **settings}, logger=_log)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is about the settings
        cause = error.args[0] if error.args else error
        why = cause.str() if hasattr(cause, "str") else str(cause)
        for secret in client.values():  # the library quotes the value that it does not like
            why = why.replace(f'"{secret}"', "***") if secret else why
        message = f"{_SETTINGS}: {why}"
        raise ConfigError(message) from None
