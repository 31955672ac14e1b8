"""The scope and resource of our own signals, and a context in which sending is not traced."""

from __future__ import annotations

import os
import uuid
from contextvars import Token
from functools import cache
from importlib.metadata import version
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, get_value, set_value
from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)

SCOPE: Final = "spanscore"
"""Our instrumentation scope, and the name of our distribution; spans of this scope are not scored."""


@cache
def scope_version() -> str:
    """Return the version of spanscore."""
    return version(SCOPE)


def resource() -> Resource:
    """Return the resource of our own metrics and logs; variables such as OTEL_RESOURCE_ATTRIBUTES take precedence.

    The instance id keeps the sums of several replicas apart.
    """
    ours = {SERVICE_NAME: SCOPE, SERVICE_VERSION: scope_version(), SERVICE_INSTANCE_ID: _instance_id(os.getpid())}
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def stop_tracing() -> Token[Context]:
    """Disable tracing on this thread from now on: our own requests must not be scored."""
    return attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - OpenTelemetry's signature


def is_of_an_export() -> bool:
    """Return whether a root span comes from an export of ours: on threads that are not ours it has no parent."""
    return bool(get_value(_SUPPRESS_INSTRUMENTATION_KEY))


@cache
def _instance_id(process_id: int) -> str:
    """Return an id that is another one in a forked child."""
    del process_id
    return str(uuid.uuid4())
