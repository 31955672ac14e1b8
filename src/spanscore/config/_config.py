"""A whole configuration: read, checked, and built as far as that needs no port, file or thread."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from spanscore.collect.settings import TraceSettings
from spanscore.config._nodes import Node, Problem, dotted, one_error
from spanscore.config._nodes import Path as KeyPath
from spanscore.config._plain_sections import Annotate, Content, Metrics, Page, Telemetry
from spanscore.contracts import Dialect
from spanscore.scoring.conversations.settings import ConversationSettings
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.keep.settings import KeepSettings, values_of
from spanscore.scoring.monitors.settings import MonitorSettings
from spanscore.storage.settings import CAN_STORE, StorageSettings

Settings = TypeVar("Settings")
Filled = TypeVar("Filled", TraceSettings, StorageSettings)

_KEEP: Final[KeyPath] = ("keep",)
_KEEP_NEEDS: Final = "`spanscore serve` needs exporters.otlp with 'traces' among its signals: kept spans are sent there"
_TURNS_SHARE: Final = 8
_SCORED_BY: Final = ("evaluators", "dialects", "traces", "conversations")
"""The sections that scores depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A configuration. Some defaults depend on where spanscore runs; `for_serve` and its siblings fill these in."""

    evaluators: tuple[EvaluatorEntry, ...]
    """In the order of the file."""
    dialects: tuple[Dialect, ...]
    """The user's own first, then all that are installed and not disabled, by name."""
    receivers: Mapping[str, Any]
    """The settings of the receivers in the file, by name."""
    traces: TraceSettings
    storage: StorageSettings
    conversations: ConversationSettings | None
    """None where the file has no such section."""
    monitors: Mapping[str, MonitorSettings]
    """The monitors in the file, by name."""
    keep: KeepSettings | None
    """None where the file has no such section."""
    exporters: Mapping[str, Any]
    """The settings of the exporters in the file, by name, in the order of the file."""
    metrics: Metrics
    annotate: Annotate
    tool_content: bool
    content: Content
    page: Page
    trace_url: str | None
    """The address of a trace elsewhere, with `{trace_id}` in place of its id."""
    telemetry: Telemetry
    given: frozenset[str] = frozenset()
    """The sections and keys that are in the file, such as `traces.root`: their defaults do not matter."""
    source: str = ""
    """The name of the file in messages."""
    file: Path | None = None
    """The file, where it was read from one."""
    root: Node = field(repr=False, compare=False)
    """The content of the file with the line of each value, for messages."""

    def of(self, settings: type[Settings]) -> Settings | None:
        """Return the settings of this type of the listed receivers and exporters; None if there are none."""
        listed = (*self.receivers.values(), *self.exporters.values())
        return next((each for each in listed if isinstance(each, settings)), None)

    @property
    def sends_spans(self) -> bool:
        """Whether received spans are sent on."""
        return any(getattr(each, "sends_spans", False) for each in self.exporters.values())

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, which differ if something in the file or in its datasets differs that scores read.

        Evaluators of the file that are not in use do not matter.
        """
        told = hashlib.blake2b(digest_size=8)
        used = {entry.name for entry in self.evaluators}
        for section in _SCORED_BY:
            data = self.root.find((section,)).data() if self.root.has(section) else None
            if section == "evaluators" and isinstance(data, dict):
                data = {name: settings for name, settings in data.items() if name in used}
            told.update(json.dumps([section, data], sort_keys=True, default=str).encode())
        folder = Path() if self.file is None else self.file.parent
        for name in sorted(used & set(self.root.mapping("evaluators"))):
            dataset = self.root.find(("evaluators", name, "expected_from", "dataset")).value
            if isinstance(dataset, str) and (path := folder / dataset).is_file():
                told.update(hashlib.blake2b(path.read_bytes()).digest())
        return told.hexdigest()

    def page_runs(self, *, is_loopback: bool) -> int:
        """Return how many runs the page shows; 0 where there is none.

        `is_loopback` says whether only this machine can reach its port.
        """
        return self.page.runs if is_loopback or "page.runs" in self.given else 0

    def for_serve(self) -> Config:
        """Return the configuration of a standalone receiver: what was left out is its default there.

        Raises:
            ConfigError: a file that serving needs, such as a certificate or the bearer tokens, cannot be used.
        """
        # Servers and Prometheus are not loaded by commands that only read files.
        from spanscore.config._server_files import missing_directories, unusable_files  # noqa: PLC0415
        from spanscore.emitters.console import ConsoleExporter  # noqa: PLC0415
        from spanscore.emitters.prometheus import PrometheusExporter  # noqa: PLC0415
        from spanscore.receivers.otlp import OtlpReceiver  # noqa: PLC0415

        unusable = [*missing_directories(self.exporters), *unusable_files(self.receivers.get("otlp"), self.page)]
        if unusable:
            raise one_error([Problem(self.root.find(at).place, at, why) for at, why in unusable], self.source)
        if self.keep is not None and not self.sends_spans:
            raise one_error([Problem(self.root.key_place(_KEEP), _KEEP, _KEEP_NEEDS)], self.source)
        return self._with(
            receivers={"otlp": OtlpReceiver()},
            exporters={"prometheus": PrometheusExporter(), "console": ConsoleExporter()},
            annotate="root_event" if self.sends_spans else "none",
            **({} if CAN_STORE else {"storage": self._in_section("storage", self.storage, durability="none")}),
        )

    def for_process(self) -> Config:
        """Return the configuration of a span processor inside an application."""
        return replace(
            self._with(annotate="child_span"),
            receivers={},
            traces=self._in_section("traces", self.traces, root="remote_parent", decision_delay_s=0.0),
            storage=self._in_section("storage", self.storage, durability="none"),
        )

    def for_files(self, *, tool_content: bool = True) -> Config:
        """Return the configuration for recorded spans: what would listen, send or keep is left out.

        Arguments and results may be shown by default, as the file is the user's own.
        """
        return replace(
            self,
            tool_content=tool_content,
            receivers={},
            exporters={},
            traces=self._in_section("traces", self.traces, decision_delay_s=0.0),
            storage=StorageSettings(durability="none"),
            annotate="none",
        )

    def doubts(self) -> Iterator[str]:
        """Yield a warning for each thing that is no mistake, but hardly meant."""
        from spanscore.config._server_files import exposed_secrets  # noqa: PLC0415 - as above
        from spanscore.receivers.otlp import OtlpReceiver  # noqa: PLC0415 - as above
        from spanscore.storage.room import Room  # noqa: PLC0415 - as above

        yield from exposed_secrets(self.file, self.root, self.receivers, self.exporters, self.page)
        if "page.runs" in self.given and self.page.runs and "prometheus" not in self.exporters:
            yield f"{self.source}: page has no effect: exporters.prometheus is not listed, and the page is on its port"
        if {"traces.pause_wait", "traces.pause_bytes"} & self.given and self.traces.late_spans == "ignore":
            yield f"{self.source}: no spans are held for runs that pause, as traces.late_spans is 'ignore'"
        if self.conversations is not None and not any(entry.over == "conversation" for entry in self.evaluators):
            yield f"{self.source}: conversations has no effect: no evaluator has 'over: conversation'"
        if self.keep is not None and self.keep.rules and "keep.default" in self.given:
            last = self.keep.rules[-1]
            if not values_of(last):
                yield f"{self.source}: keep.default has no effect: rule {last.name!r} has no 'when'"
        most = 0 if self.conversations is None or self.storage.durability == "none" else self.conversations.max_bytes
        if most > self.storage.max_size // _TURNS_SHARE:
            yield (
                f"{self.source}: conversations.max_bytes is more than an eighth of storage.max_size: turns on disk may "
                "take twice as much, and leave little room for requests"
            )
        room = Room(self.storage.max_size)
        otlp = self.receivers.get("otlp") if "receivers" in self.given else OtlpReceiver()
        if self.storage.durability == "none" or otlp is None:
            return
        for at, size in otlp.largest_requests():
            if size > room.largest:
                yield (
                    f"{self.source}: storage.max_size has room for requests of at most {room.largest} bytes, but "
                    f"{dotted(('receivers', 'otlp', *at))} lets in {size}: the larger ones are refused for good"
                )

    def _with(self, **defaults: Any) -> Config:
        """Return the configuration with defaults for what is not in the file."""
        return replace(self, **{key: value for key, value in defaults.items() if key not in self.given})

    def _in_section(self, at: str, section: Filled, **defaults: Any) -> Filled:
        """Return a section with defaults for what is not in the file."""
        changes = {key: each for key, each in defaults.items() if f"{at}.{key.removesuffix('_s')}" not in self.given}
        return replace(section, **changes)
