"""The kinds of value that a configuration has beside YAML's own: durations, sizes, endpoints, URLs, files, secrets."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

DURATION: Final = "a duration such as '2s', '500ms' or '1m30s'"
SIZE: Final = "a size such as '64MiB', '1GiB' or '10MB'"
ENDPOINT: Final = "host:port, such as 'localhost:4317' or '[::1]:4317'"
URL: Final = "a URL such as 'http://localhost:4318'"

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)"
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
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PORT: Final = r"\d{1,5}"
_ENDPOINT: Final = rf"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):({_PORT})"
_HIGHEST_PORT: Final = 65535


def seconds(text: str) -> float:
    """Return the seconds in a duration such as `1m30s`.

    Raises:
        ValueError: the text is no duration.
    """
    if not re.fullmatch(f"(?:{_DURATION_PART})+", text, re.ASCII):
        message = f"must be {DURATION}, not {text!r}{unit_hint(text, 's', 'seconds')}"
        raise ValueError(message)
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_DURATION_PART, text))


def time_limit(text: str) -> float:
    """Return the seconds in a duration; infinitely many for `none`.

    Raises:
        ValueError: the text is neither, or the duration is zero.
    """
    if text == "none":
        return math.inf
    limit = seconds(text)
    if not limit:
        message = f"must be more than 0, not {text!r}; write 'none' for no limit"
        raise ValueError(message)
    return limit


def size_in_bytes(text: str) -> int:
    """Return the bytes in a size such as `64MiB`.

    Raises:
        ValueError: the text is no size.
    """
    found = re.fullmatch(_SIZE, text, re.ASCII)
    if found is None:
        message = f"must be {SIZE}, not {text!r}{unit_hint(text, 'B', 'bytes')}"
        raise ValueError(message)
    return round(float(found[1]) * _BYTES[found[2]])


class Endpoint(NamedTuple):
    """An address to listen on. Port 0 lets the system choose one."""

    host: str
    """A host name or an IP address, without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Endpoint":
        """Read `host:port`.

        Raises:
            ValueError: the text is no endpoint.
        """
        found = re.fullmatch(_ENDPOINT, text, re.ASCII)
        if found is None or int(found[2]) > _HIGHEST_PORT:
            message = f"must be {ENDPOINT}, not {text!r}{_endpoint_hint(text)}"
            raise ValueError(message)
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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, _text("not_a_secret"))


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


def _url(text: str) -> str:
    if re.match(r"[^/?#]*//[^/?#]*@", text):
        # The message must not show the password, and whoever logs the URL would.
        message = "must not hold a user name or a password; send them in 'headers'"
        raise ValueError(message)
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) <= _HIGHEST_PORT
    except ValueError:
        fine = False
    if not fine or any(character.isspace() for character in text):
        message = f"must be {URL}, not {text!r}"
        raise ValueError(message)
    return text


def _url_path(text: str) -> str:
    if not text.startswith("/"):
        message = f"must start with '/', not {text!r}"
        raise ValueError(message)
    return text


def _beside_the_configuration(path: Path, info: ValidationInfo) -> Path:
    if path == Path() or "\0" in str(path):
        message = "must name a file"
        raise ValueError(message)
    return Path(info.context or "") / path


@dataclass(frozen=True, slots=True)
class _Text:
    """Written as text, kept as what `read` makes of it."""

    read: Callable[[str], Any]
    pattern: str
    error: str
    """The type of the error where it is not text."""
    example: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.read, _text(self.error))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{self.pattern}$", "examples": [self.example]}


def _text(error: str) -> CoreSchema:
    if error == "string_type":
        return core_schema.str_schema()
    return core_schema.custom_error_schema(
        core_schema.str_schema(), custom_error_type=error, custom_error_message="must be text"
    )


Duration = Annotated[float, _Text(seconds, f"(?:{_DURATION_PART})+", "not_a_duration", "2s")]
TimeLimit = Annotated[float, _Text(time_limit, f"(?:none|(?:{_DURATION_PART})+)", "not_a_duration", "500ms")]
Size = Annotated[int, _Text(size_in_bytes, _SIZE, "not_a_size", "64MiB")]
ListenAddress = Annotated[Endpoint, _Text(Endpoint.parse, _ENDPOINT, "not_an_endpoint", "localhost:4317")]
Url = Annotated[str, _Text(_url, r"https?://\S+", "not_a_url", "http://localhost:4318")]
UrlPath = Annotated[str, _Text(_url_path, r"/.*", "string_type", "/v1/traces")]
FilePath = Annotated[Path, AfterValidator(_beside_the_configuration)]
