"""Clean requests, read by the compiled decoder, `spanscore-fast`, where that is installed.

It reads requests as senders usually write them, into the same spans as `spanscore.otlp.from_protobuf`, which defines
the meaning of a request. It leaves requests with anything unusual, wrong or large to that decoder as a whole.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from sys import getsizeof
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from spanscore import __version__
from spanscore.errors import ConfigError
from spanscore.model import EMPTY, Attributes, Span, SpanEvent
from spanscore.otlp.findings import UNNAMED, Decoded, Findings
from spanscore.otlp.kept_size import EVENT_SIZE, SHORT_CHARS, SHORT_NAMES, SPAN_SIZE, VALUE_SIZE
from spanscore.otlp.protobuf_values import read_resource
from spanscore.trajectories.wanted import UnusedTexts, WantedAttributes

ASKED_BY: Final = "SPANSCORE_DECODER"
"""The environment variable that selects the decoder of requests in protobuf: `fast` or `python`."""

_LARGEST: Final = 4 * 2**20
"""Bytes: so much is read in some milliseconds, in one go."""
_MOST_SPANS: Final = 8_192
_MOST_RESOURCE_VALUES: Final = 1_024
_RESOURCES: Final = 256
"""Senders repeat their resource in every request; all traces then share one object for it."""
_USUAL_RESOURCE: Final = 4_096
"""Bytes."""
_DECODERS: Final = 8
"""For so many configurations at a time, of which one is in use and another before it was reloaded."""
_SIZES: Final = {
    # Of two characters: Python 3.12 and later keep more of a single one.
    "text": [
        getsizeof(widest * 2) - width * 2 for widest, width in (("a", 1), ("\x80", 1), ("\u0100", 2), ("\U00010000", 4))
    ],
    "bytes": getsizeof(b""),
    "value": VALUE_SIZE,
    "event": EVENT_SIZE,
    "span": SPAN_SIZE,
    "short": SHORT_CHARS,
    "names": SHORT_NAMES,
}


_MODULE: Final = "spanscore_fast"


def _compiled() -> tuple[Any, str | None]:
    """Return the compiled decoder, or None and the reason if one is installed that cannot be used."""
    try:
        found = import_module(_MODULE)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == _MODULE
        return None, None if is_missing else f"cannot be loaded: {error}"
    version = getattr(found, "__version__", "unknown")
    if version != __version__:  # it builds the spans of its own release
        return None, f"has version {version}, but spanscore {__version__} needs the same version"
    return found, None


COMPILED, _BROKEN = _compiled()
_IS_FAST: Final = COMPILED is not None and os.environ.get(ASKED_BY) != "python"


def chosen(asked: str | None = None) -> str:
    """Return which decoder reads requests: `fast`, with its version, or `python`, with why an installed one does not.

    Raises:
        ConfigError: another one was asked for, or one that is not installed.
    """
    asked = os.environ.get(ASKED_BY, "") if asked is None else asked
    if asked not in {"", "fast", "python"}:
        raise ConfigError(f"{ASKED_BY} must be fast or python, not {asked!r}")
    if asked == "python":
        return asked
    if COMPILED is not None:
        return f"fast {COMPILED.__version__}"
    if asked == "fast":
        why = _BROKEN or "is not installed"
        how = f"install the wheel of release {__version__}, or build it in a checkout with Rust: `pip install ./fast`"
        raise ConfigError(f"{ASKED_BY}=fast needs the compiled decoder, which {why}; {how}")
    return "python" if _BROKEN is None else f"python; the compiled one {_BROKEN}"


def decoded(body: bytes, max_spans: int | None, wanted: WantedAttributes | None) -> Decoded | None:
    """Return the decoded request, or None if the decoder in Python must read it."""
    if not _IS_FAST or len(body) > _LARGEST:
        return None
    most = _MOST_SPANS if max_spans is None else min(max_spans, _MOST_SPANS)
    found = _decoder(*((None, None) if wanted is None else (wanted.patterns, wanted.unused))).decode(body, most)
    return None if found is None else Decoded(spans=found[0], sizes=found[1], decoder="fast")


@lru_cache(_DECODERS)
def _decoder(wanted: frozenset[str] | None, unused: UnusedTexts | None) -> Any:
    return COMPILED.Decoder(
        span=Span,
        event=SpanEvent,
        empty=EMPTY,
        unnamed=UNNAMED,
        resource=_resource,
        sizes=_SIZES,
        wanted=None if wanted is None else sorted(wanted),
        forgone=None if unused is None else (sorted(unused.keys), unused.of),
    )


def _resource(body: bytes) -> tuple[Attributes, int] | None:
    """Return the attributes of a resource and how many values it has, None where something in it is unusual."""
    return _known_resource(body) if len(body) <= _USUAL_RESOURCE else _read_resource(body)


def _read_resource(body: bytes) -> tuple[Attributes, int] | None:
    findings = Findings()
    try:
        attributes = read_resource(Resource.FromString(body), findings)
    except DecodeError:
        return None
    is_usual = not findings.caveats and findings.values <= _MOST_RESOURCE_VALUES
    return (attributes, findings.values) if is_usual else None


_known_resource: Final = lru_cache(_RESOURCES)(_read_resource)
