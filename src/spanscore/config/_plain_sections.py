"""The sections that are dataclasses, which their model in pydantic builds: without a file, they need no pydantic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from annotated_types import Ge, Le

from spanscore.contracts.settings import ByPlace, Example, FilePath, Text
from spanscore.dialects.custom import Custom

Annotate: TypeAlias = Literal["child_span", "root_event", "none"]

DEFAULT_EVALUATORS: Final[dict[str, Any]] = {"health": {"type": "tool_call_trajectory"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialects:
    """The dialects, which read tool calls from spans. All installed dialects are in use."""

    custom: tuple[Custom, ...] = ()
    """Dialects of your own."""
    disabled: tuple[Text, ...] = ()
    """Dialects not to use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page of the last runs, at `/` of the port for Prometheus of `spanscore serve`; for programs `/runs.json`."""

    runs: Annotated[int, Ge(0), Le(10_000), ByPlace()] = 500
    """The number of runs on the page; with 0 there is none. 500 if the port is on loopback, else 0: the page shows
    names, scores and times of runs, and arguments and results only with `tool_content: true`."""
    hosts: tuple[Text, ...] = ()
    """Names by which browsers may ask for it, besides localhost, addresses and that of the port: a foreign web page
    could have them ask by another one."""
    bearer_token_file: Annotated[FilePath | None, Example("page-tokens.txt")] = None
    """Bearer tokens of its readers, one a line; browsers get one from a proxy in front. Read again when it changes.
    Where other machines reach the port, the page is shown only with such a file, or with --insecure."""

    def __post_init__(self) -> None:
        for host in self.hosts:
            if "/" in host or host.count(":") == 1 or "]:" in host:
                raise ValueError(f"hosts must have no scheme, port or path, as 'spans.example.com', not {host!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The metrics that are recorded."""

    disabled: Annotated[
        tuple[Literal["gen_ai.invoke_agent.tool_calls", "gen_ai.execute_tool.duration"], ...],
        Example(["gen_ai.invoke_agent.tool_calls", "gen_ai.execute_tool.duration"]),
    ] = ()
    """Metrics of the GenAI conventions not to record, if the instrumentation records them itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of arguments and results that is written or shown."""

    mask: Annotated[tuple[Text, ...], Example(["email", "card.number", "*_token"])] = ()
    """Write and show a mark in place of each value with these keys in arguments or results: `card.number` is each path
    that ends in it, without the tool's name and positions in lists. Evaluators see the values. The storage and
    forwarded spans have them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """The log of spanscore."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe messages that are logged, to standard error."""
