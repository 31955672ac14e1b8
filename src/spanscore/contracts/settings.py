"""The types of settings besides Python's own, and their form in a configuration.

Settings of plug-ins are annotated with them: `timeout_s: Duration = 2.0`, `endpoint: ListenAddress`, `path: FilePath`.
The reader of a value's text raises the error for a wrong value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from annotated_types import MinLen

DURATION: Final = "a duration such as '500ms', '1m30s' or '30d'"
SHARE: Final = "a share such as '5%' or 0.05"
SIZE: Final = "a size such as '64MiB', '1GiB' or '10MB'"
ENDPOINT: Final = "host:port, such as 'localhost:4317' or '[::1]:4317'"
URL: Final = "a URL such as 'http://localhost:4318'"

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_PART: Final = r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h|d)"
_BYTES: Final = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SIZE: Final = rf"(\d{{1,12}}(?:\.\d{{1,9}})?)\s?({'|'.join(_BYTES)})"
PERCENT: Final = r"(\d{1,3}(?:\.\d{1,9})?)\s?%"
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PORT: Final = r"\d{1,5}"
_ENDPOINT: Final = rf"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):({_PORT})"
_HIGHEST_PORT: Final = 65535


def seconds(text: str) -> float:
    """Return the seconds in a duration such as `1m30s`.

    Raises:
        ValueError: the text is no duration.
    """
    if not re.fullmatch(f"(?:{DURATION_PART})+", text, re.ASCII):
        raise ValueError(f"must be {DURATION}, not {text!r}{unit_hint(text, 's', 'seconds')}")
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(DURATION_PART, text))


def size_in_bytes(text: str) -> int:
    """Return the bytes in a size such as `64MiB`.

    Raises:
        ValueError: the text is no size.
    """
    found = re.fullmatch(_SIZE, text, re.ASCII)
    if found is None:
        raise ValueError(f"must be {SIZE}, not {text!r}{unit_hint(text, 'B', 'bytes')}")
    return round(float(found[1]) * _BYTES[found[2]])


def share(text: str) -> float:
    """Return the share, from 0 to 1, in a percentage such as `5%`.

    Raises:
        ValueError: the text is no percentage.
    """
    found = re.fullmatch(PERCENT, text, re.ASCII)
    if found is None:
        raise ValueError(f"must be {SHARE}, not {text!r}")
    return float(found[1]) / 100


class Endpoint(NamedTuple):
    """An address to listen on. Port 0 lets the system choose one."""

    host: str
    """A host name or an IP address, without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Read `host:port`.

        Raises:
            ValueError: the text is no endpoint.
        """
        found = re.fullmatch(_ENDPOINT, text, re.ASCII)
        if found is None or int(found[2]) > _HIGHEST_PORT:
            raise ValueError(f"must be {ENDPOINT}, not {text!r}{_endpoint_hint(text)}")
        return cls(found[1].strip("[]"), int(found[2]))


class Secret:
    """A text that shows itself nowhere: ask for it with `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def _in_units(sizes: Mapping[str, float], *units: str) -> Callable[[float], str]:
    """Return a function that writes an amount in the first unit of which it is a whole multiple, else in the unit 1."""

    def write(amount: float) -> str:
        whole = (unit for unit in units if amount and not amount % sizes[unit])
        unit = next(whole, next(unit for unit in units if sizes[unit] == 1))
        return f"{amount / sizes[unit]:g}{unit}"

    return write


def unit_hint(text: str, unit: str, words: str) -> str:
    """Return how to write a number that lacks its unit; nothing for other texts."""
    return f"; write {text + unit!r} for {words}" if _NUMBER.fullmatch(text) else ""


def _endpoint_hint(text: str) -> str:
    if "://" in text:
        return "; leave the scheme out"
    if re.fullmatch(f":{_PORT}", text):
        return f"; write '0.0.0.0{text}' for every address of this machine"
    if text.count(":") > 1 and "[" not in text:
        return "; put an IPv6 address in brackets"
    return ""


def parsed_url(text: str) -> SplitResult:
    """Return the parts of a URL of http or https.

    Raises:
        ValueError: the text is none.
    """
    if re.match(r"[^/?#]*//[^/?#]*@", text):
        # The message must not show the password, as logging the URL would.
        raise ValueError("must not hold a user name or a password; send them in a header")
    with suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and _PRINTABLE.fullmatch(text):
            return parts
    raise ValueError(f"must be {URL}, not {text!r}")


def _url(text: str) -> str:
    parsed_url(text)
    return text


def _url_path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"must start with '/', not {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class Written:
    """Marks a setting that is text in the configuration, and another type in Python."""

    read: Callable[[str], Any]
    """Returns the value, or raises ValueError with the allowed values."""
    pattern: str = ""
    """A regular expression for the text; without one any text is allowed."""
    error: str = "string_type"
    """The name of the mistake if the value is not text."""
    example: str = ""
    write: Callable[[Any], str] = str
    """Returns the text again, to be shown."""
    or_number: bool = False
    """Whether the configuration may also have the value itself, a number."""


@dataclass(frozen=True, slots=True)
class Example:
    """Marks a value with one that is allowed, as the configuration writes it: for the reference and for editors."""

    value: Any


@dataclass(frozen=True, slots=True)
class ByPlace:
    """Marks a setting whose default depends on where spanscore runs."""


@dataclass(frozen=True, slots=True)
class Internal:
    """Marks a field that no configuration sets."""


@dataclass(frozen=True, slots=True)
class BesideConfiguration:
    """Marks a path that is relative to the directory of the configuration file."""


Text = Annotated[str, MinLen(1)]
AS_DURATION: Final = Written(
    seconds, f"(?:{DURATION_PART})+", "not_a_duration", "2s", _in_units(_SECONDS, "h", "m", "s", "ms")
)
Duration = Annotated[float, AS_DURATION]
"""Seconds, written as `2s`, `500ms` or `1m30s`."""
Size = Annotated[int, Written(size_in_bytes, _SIZE, "not_a_size", "64MiB", _in_units(_BYTES, "GiB", "MiB", "KiB", "B"))]
"""Bytes, written as `64MiB`."""
Share = Annotated[float, Written(share, PERCENT, "not_a_share", "5%", lambda of: f"{of * 100:g}%", or_number=True)]
"""A share from 0 to 1, written as `5%` or `0.05`."""
ListenAddress = Annotated[Endpoint, Written(Endpoint.parse, _ENDPOINT, "not_an_endpoint", "localhost:4317")]
"""An address to listen on, written as `localhost:4317`."""
Url = Annotated[str, Written(_url, r"https?://\S+", "not_a_url", "http://localhost:4318")]
UrlPath = Annotated[str, Written(_url_path, r"/.*", example="/v1/traces")]
SecretText = Annotated[Secret, Written(Secret, error="not_a_secret")]
"""A secret: no message and no log shows it."""
FilePath = Annotated[Path, BesideConfiguration()]
