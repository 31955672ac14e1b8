"""The sections of the configuration: every key, its type, its default and its documentation, written once.

Reading, the JSON Schema and `config/reference.yaml` are made from these classes. Durations are kept as seconds, sizes
as bytes. `Config` fills in the keys whose default depends on where spanscore runs.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import Field, JsonValue, field_validator, model_validator

from spanscore.collect.settings import TraceSettings
from spanscore.config._models import ConfiguredFile, TimeLimit, TraceUrl
from spanscore.config._plain_sections import (
    DEFAULT_EVALUATORS,
    Annotate,
    Content,
    Dialects,
    Metrics,
    Page,
    Telemetry,
)
from spanscore.config._section import Section
from spanscore.contracts.settings import Text
from spanscore.storage.settings import StorageSettings


class ExpectedFrom(Section):
    """The source of each trace's expectation: a row of a dataset, or an attribute of the trace itself."""

    dataset: ConfiguredFile | None = Field(default=None, examples=["golden.jsonl"])
    """A .jsonl, .json, .csv, .yaml or .yml file with one row for each case."""
    key: Text | None = Field(default=None, examples=["test.case.id"])
    """With a dataset: the resource or root-span attribute that selects the row. In the file it is the column of
    that name, else `key`, else `id`."""
    attribute: Text | None = Field(default=None, examples=["spanscore.expected"])
    """Instead of a dataset: the resource or root-span attribute with the expectation, as JSON text."""

    @model_validator(mode="after")
    def _one_source(self) -> "ExpectedFrom":
        given = {name for name in ("dataset", "key", "attribute") if getattr(self, name) is not None}
        if given not in ({"dataset", "key"}, {"attribute"}):
            raise ValueError("must have either 'dataset' and 'key', or 'attribute'")
        return self


class EvaluatorKeys(Section):
    """The keys of every evaluator, beside its own parameters."""

    type: str
    """The type of the evaluator; `spanscore list evaluators` lists them."""
    match: Mapping[Text, str] = Field(default_factory=dict, examples=[{"service.name": "shop-*"}])
    """Evaluate only when each of these resource or root-span attributes, or `span.name`, matches its glob."""
    sample_ratio: Annotated[float, Ge(0), Le(1)] = 1.0
    """The share of traces to evaluate, chosen by trace id."""
    time_limit: TimeLimit | None = None
    """The time limit of one evaluation: 1s for evaluators of plug-ins. An evaluator with a limit runs in a separate
    process, which is ended if it hangs; built-in evaluators need no limit and run in this process. With `none`, and
    always on Windows, a plug-in does too, and blocks everything if it hangs."""
    expected_from: ExpectedFrom | None = None
    """The source of each trace's expectation, in place of the parameter that would fix it."""
    informational: bool = False
    """Measure only: scores go out without a label and decide nothing, neither a run's verdict nor an exit status."""
    over: Literal["run", "conversation"] = "run"
    """The unit that is evaluated: each run, or all turns of a conversation together, which takes the section
    `conversations`."""
    ignore_tools: tuple[Text, ...] = Field(default=(), examples=[["final_answer"]])
    """Globs: leave calls of these tools out before evaluating. `*` matches any characters, `?` one, and nothing else is
    special: `lookup[0]` is itself, and `a?b` matches `a*b`."""


class Document(Section):
    """The configuration of spanscore."""

    receivers: Any = Field(default_factory=dict)
    """The sources of spans. Standalone: OTLP on localhost when left out."""
    traces: Any = Field(default_factory=TraceSettings)
    """The rules for when a trace is complete, and the limits on open traces."""
    storage: Any = Field(default_factory=StorageSettings)
    """The storage of accepted spans across restarts."""
    evaluators: Mapping[Text, Mapping[str, JsonValue]] = Field(
        default_factory=DEFAULT_EVALUATORS.copy, json_schema_extra={"minProperties": 1}
    )
    """The evaluators: a name of your own for each, which becomes gen_ai.evaluation.name."""
    conversations: Any = None
    """The rule by which traces are turns of one conversation, for evaluators with `over: conversation`."""
    monitors: Any = Field(default_factory=dict)
    """The monitors, which raise an alarm in `serve` if runs fail more often than they may: a name of your own for each.
    At most 50."""
    keep: Any = None
    """The rules by which `serve` sends on only some of the traces, by what the agent did."""
    dialects: Any = Field(default_factory=Dialects)
    """The dialects, which read tool calls from spans."""
    exporters: Any = Field(default_factory=dict)
    """The destinations of scores. Standalone: Prometheus on localhost and the console when left out."""
    metrics: Any = Field(default_factory=Metrics)
    """The metrics that are recorded."""
    annotate: Annotate | None = None
    """The form of a score in its trace: as a short span below the root (default inside a process), as an event of
    the root (default where spans are forwarded), or not at all."""
    tool_content: bool = False
    """Include arguments and results of tools in score events and on the console, and messages of failed evaluators,
    which may quote them. A JSON Lines file always has them."""
    content: Any = Field(default_factory=Content)
    """The content of arguments and results that is written or shown."""
    page: Any = Field(default_factory=Page)
    """The page of the last runs, at `/` of the port for Prometheus."""
    trace_url: TraceUrl | None = None
    """The address of a trace in your tracing backend: pages link each run to it. It begins with https:// or http://
    and has `{trace_id}`; `{span_id}` is the root span."""
    telemetry: Any = Field(default_factory=Telemetry)
    """The log of spanscore."""

    @field_validator("evaluators")
    @classmethod
    def _not_empty(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if not given:
            ((name, entry),) = DEFAULT_EVALUATORS.items()
            raise ValueError(f"must have at least one evaluator; leave the key out for {name!r} ({entry['type']})")
        return given
