"""A whole configuration: read, checked, and built as far as that needs no port, file or thread."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from spanscore.config._check import check
from spanscore.config._dialects import build_dialects
from spanscore.config._entries import build_entries
from spanscore.config._exporters import ConsoleExporter, Exporters, PrometheusExporter
from spanscore.config._receivers import OtlpReceiver, Receivers
from spanscore.config._section import Section
from spanscore.config._sections import DEFAULT_EVALUATORS, Dialects, Document, Storage, Telemetry, Traces
from spanscore.config._server_files import is_readable_by_all, secret_files, unusable_files
from spanscore.config._tree import Node, Place, Problem, dotted
from spanscore.config._tree import Path as KeyPath
from spanscore.config._yaml import MAX_BYTES, place_in, read
from spanscore.contracts import Dialect
from spanscore.errors import ConfigError
from spanscore.pipeline import EvaluatorEntry
from spanscore.storage.room import Room

Annotate: TypeAlias = Literal["child_span", "root_event", "none"]

Filled = TypeVar("Filled", bound=Section)

_MOST_SHOWN: Final = 100

_HEADERS: Final[KeyPath] = ("exporters", "otlp", "headers")
_SECRETS: Final = (_HEADERS, ("receivers", "kafka", "settings"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A configuration. What is None depends on where spanscore runs; `for_serve` and its siblings fill that in."""

    evaluators: tuple[EvaluatorEntry, ...]
    """In the order of the file."""
    dialects: tuple[Dialect, ...]
    """The user's own first, then all that are installed and not disabled, by name."""
    receivers: Receivers | None
    traces: Traces
    storage: Storage
    exporters: Exporters | None
    annotate: Annotate | None
    tool_content: bool
    telemetry: Telemetry
    source: str = ""
    """What messages call the file."""
    file: Path | None = None
    """The file, where it was read from one."""
    inline_secrets: tuple[str, ...] = ()
    """The keys whose secrets stand in the file itself, and not in variables of the environment."""
    places: Mapping[KeyPath, Place] = field(default_factory=dict, repr=False, compare=False)
    """Where the keys of the receivers stand."""

    def for_serve(self) -> Config:
        """Return the configuration of a standalone receiver: what was left out is its default there.

        Raises:
            ConfigError: a file that serving needs, a certificate or the bearer tokens, cannot be used.
        """
        unusable = [Problem(self._place(at), at, why) for at, why in unusable_files(self.receivers or Receivers())]
        if unusable:
            raise _error(unusable, self.source)
        exporters = self.exporters or Exporters(prometheus=PrometheusExporter(), console=ConsoleExporter())
        forwards = exporters.otlp is not None and "traces" in exporters.otlp.signals
        return replace(
            self,
            receivers=self.receivers or Receivers(otlp=OtlpReceiver()),
            exporters=exporters,
            traces=_filled(self.traces, root="parentless", decision_delay=2.0),
            storage=_filled(self.storage, durability="crash"),
            annotate=self.annotate or ("root_event" if forwards else "none"),
        )

    def for_process(self) -> Config:
        """Return the configuration of a span processor inside an application."""
        return replace(
            self,
            receivers=Receivers(),
            exporters=self.exporters or Exporters(),
            traces=_filled(self.traces, root="remote_parent", decision_delay=0.0),
            storage=_filled(self.storage, durability="none"),
            annotate=self.annotate or "child_span",
        )

    def for_files(self, *, tool_content: bool = True) -> Config:
        """Return the configuration for recorded spans: what would listen, send or keep is left out.

        Args:
            tool_content: whether arguments and results may be shown: the file is the user's own.
        """
        return replace(
            self,
            tool_content=tool_content,
            receivers=Receivers(),
            exporters=Exporters(),
            traces=_filled(self.traces, root="parentless", decision_delay=0.0),
            storage=Storage(durability="none"),
            annotate="none",
        )

    def doubts(self) -> Iterator[str]:
        """Yield a warning for each thing that is no mistake, but hardly meant."""
        yield from self._exposed_secrets()
        room, receivers = Room(self.storage.max_size), self.receivers or Receivers(otlp=OtlpReceiver())
        if self.storage.durability == "none":
            return
        for at, size in receivers.largest_requests():
            if size > room.largest:
                yield (
                    f"{self.source}: storage.max_size has room for requests of at most {room.largest} bytes, but "
                    f"{dotted(at)} lets in {size}: the larger ones are refused for good"
                )

    def _exposed_secrets(self) -> Iterator[str]:
        if self.inline_secrets and self.file is not None and is_readable_by_all(self.file):
            yield _readable(self.file, f"holds {', '.join(self.inline_secrets)}, and")
        for at, file in secret_files(self.receivers or Receivers()):
            if is_readable_by_all(file):
                yield _readable(file, f"({dotted(at)})")

    def _place(self, path: KeyPath) -> Place:
        """Return where a key stands, or else the nearest one above it."""
        return next((place for end in range(len(path), 0, -1) if (place := self.places.get(path[:end]))), Place(1, 1))


def load(path: str | os.PathLike[str]) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: it cannot be read, or anything in it is wrong; the message has a line for every error.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        message = f"{path}: cannot be read: {getattr(error, 'strerror', error)}"
        raise ConfigError(message) from error
    if len(content) > MAX_BYTES:
        message = f"{path}: must not be larger than {MAX_BYTES >> 20} MiB"
        raise ConfigError(message)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        place = place_in(content[: error.start].decode(), error.start)
        message = f"{path}:{place.line}:{place.column}: must be UTF-8, but has the byte 0x{content[error.start]:02x}"
        raise ConfigError(message) from None
    return replace(loads(text, str(path), path.parent), file=path)


def loads(text: str, source: str, directory: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a configuration from text.

    Args:
        text: YAML.
        source: what messages call it.
        directory: what its relative paths are relative to.
        environment: the variables that `${env:NAME}` stands for.

    Raises:
        ConfigError: anything in it is wrong; the message has a line for every error.
    """
    root, problems = read(text, environment)
    if root is None and problems:
        raise _error(problems, source)
    root = _with_defaults(root or Node(place=Place(1, 1), value={}))
    unread = tuple(problems)
    document = check(Document, root, directory=directory)
    if isinstance(document, list):
        problems += document
    section = check(Dialects, root, at=("dialects",), directory=directory) if root.has("dialects") else Dialects()
    dialects = [] if isinstance(section, list) else list(build_dialects(section, root))
    entries = list(build_entries(root, directory))
    problems += [each for each in (*dialects, *entries) if isinstance(each, Problem)]
    problems = list(_first_causes(problems, unread, root))
    if isinstance(document, list) or problems:
        raise _error(problems, source)
    return Config(
        evaluators=tuple(each for each in entries if not isinstance(each, Problem)),
        dialects=tuple(each for each in dialects if not isinstance(each, Problem)),
        receivers=document.receivers,
        traces=document.traces,
        storage=document.storage,
        exporters=document.exporters,
        annotate=document.annotate,
        tool_content=document.tool_content,
        telemetry=document.telemetry,
        source=source,
        inline_secrets=tuple(_inline_secrets(root)),
        places=dict(_places(root.find(("receivers",)), ("receivers",))),
    )


def default() -> Config:
    """Return the configuration that holds without a file."""
    return loads("", "default configuration", Path())


def _inline_secrets(root: Node) -> Iterator[str]:
    for at in _SECRETS:
        section = root.find(at).value if root.find(at[:-1]).has(at[-1]) else None
        for name, node in section.items() if isinstance(section, dict) else ():
            if node.written is None and node.value and _is_secret(at, name):
                yield dotted((*at, name))


def _is_secret(at: KeyPath, name: str) -> bool:
    return at == _HEADERS or any(word in name for word in ("password", "secret", ".pem"))


def _places(node: Node, at: KeyPath) -> Iterator[tuple[KeyPath, Place]]:
    yield at, node.place
    for key, below in node.value.items() if isinstance(node.value, dict) else ():
        yield from _places(below, (*at, key))


def _readable(file: Path, what: str) -> str:
    return f"{file} {what} can be read by every user of this machine; take that from them with chmod o-r"


def _filled(section: Filled, **defaults: object) -> Filled:
    """Return the section with defaults in place of None."""
    return section.model_copy(update={key: value for key, value in defaults.items() if getattr(section, key) is None})


def _with_defaults(root: Node) -> Node:
    """Read `evaluators:` with nothing behind it as if it were not there, and put in what is evaluated by default."""
    if root.value is not None and not isinstance(root.value, dict):
        return root
    given = {
        key: node
        for key, node in (root.value or {}).items()
        if node.value is not None or key not in Document.model_fields
    }
    return replace(root, value={"evaluators": Node.of(DEFAULT_EVALUATORS, root.place), **given})


def _first_causes(problems: Iterable[Problem], unread: Sequence[Problem], root: Node) -> Iterator[Problem]:
    """Yield the problems without those of a section as a whole: it may lack only what could not be read below it."""
    above = {each.path[:end] for each in unread for end in range(1, len(each.path))}
    for each in problems:
        is_whole = each.path in above and not each.elsewhere and each.place == root.find(each.path).place
        if each in unread or not is_whole:
            yield each


def _error(problems: list[Problem], source: str) -> ConfigError:
    """Make one error of all problems, in the order of the file. A second one at a place only follows from the first."""
    told: dict[tuple[Place, str], str] = {}
    for each in sorted(problems, key=lambda each: each.place):
        at = each.elsewhere or f"{source}:{each.place.line}:{each.place.column}"
        path = f" {dotted(each.path)}" if each.path else ""
        told.setdefault((each.place, f"{at}{path}"), f"{at}{path}: {each.message}")
    lines = list(dict.fromkeys(told.values()))  # several evaluators may use one dataset
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return ConfigError("\n".join([*lines[:_MOST_SHOWN], *more]))
