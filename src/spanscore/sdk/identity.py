"""Who we are in what we send: the instrumentation scope, and the resource of signals that are our own."""

from __future__ import annotations

import os
import uuid
from functools import cache
from importlib.metadata import version
from typing import Final

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
    """Return the resource of our own metrics and logs; what OTEL_RESOURCE_ATTRIBUTES and its kin say comes first.

    The instance id keeps the sums of several replicas apart.
    """
    ours = {
        SERVICE_NAME: SCOPE,
        SERVICE_VERSION: scope_version(),
        SERVICE_INSTANCE_ID: _instance_id(os.getpid()),
    }
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


@cache
def _instance_id(process_id: int) -> str:
    """Return an id that is another one in a forked child."""
    del process_id
    return str(uuid.uuid4())
