"""A dialect that the user describes in the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Final

from annotated_types import MinLen

from spanscore.compare.globs import glob_matcher
from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.contracts.settings import Example, Text
from spanscore.dialects import _content as content
from spanscore.model import AttributeValue, Span

SPAN_NAME: Final = "span.name"
SCOPE_NAME: Final = "scope.name"


@dataclass(frozen=True, kw_only=True)
class Custom:
    """Any instrumentation of one's own, described by the names of its attributes (`dialects: custom`)."""

    name: Annotated[Text, Example("my_framework")]
    """The dialect's name."""
    match: Annotated[Mapping[Text, str], MinLen(1), Example({"span.name": "run tool *"})]
    """A span is a tool call when each of these attributes matches its glob. `span.name` and `scope.name` count too."""
    tool_name: Annotated[Text, Example("my_framework.tool")]
    """The attribute that holds the tool's name; may be `span.name`."""
    arguments: Annotated[Text | None, Example("my_framework.input")] = None
    """The attribute that holds the arguments."""
    result: Annotated[Text | None, Example("my_framework.output")] = None
    """The attribute that holds the result."""
    call_id: Annotated[Text | None, Example("my_framework.call_id")] = None
    """The attribute that holds the id the model gave the call."""
    error: Annotated[Text | None, Example("my_framework.error")] = None
    """The attribute that, when present, says how the call failed."""
    precedence: int = field(default=Precedence.CUSTOM, init=False)

    @cached_property
    def markers(self) -> Markers:
        # Every pattern must match, so offering by one attribute is enough; without any, every span is looked at.
        keys = self._keys
        return Markers(attributes=frozenset(keys[:1])) if keys else Markers(span_names=("",))

    @cached_property
    def reads(self) -> frozenset[str]:
        read = (*self._keys, self.tool_name, self.arguments, self.result, self.call_id, self.error)
        return content.READS.union(key for key in read if key is not None)

    @cached_property
    def _matchers(self) -> Mapping[str, Callable[[str], bool]]:
        return {key: glob_matcher(glob) for key, glob in self.match.items()}

    @property
    def _keys(self) -> list[str]:
        return [key for key in self.match if key not in {SPAN_NAME, SCOPE_NAME}]

    def read(self, span: Span) -> Reading | None:
        if not all(matches(_text(_value(span, key))) for key, matches in self._matchers.items()):
            return None
        return Reading(
            call=CallReading(
                name=content.unquoted(_value(span, self.tool_name)),
                arguments=content.arguments(_value(span, self.arguments)),
                sole_argument=content.sole_argument(_value(span, self.arguments)),
                result=content.decoded(_value(span, self.result)),
                error=self._failure(span),
                error_type=content.error_type(span),
                call_id=content.identifier(_value(span, self.call_id)),
            )
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return None

    def _failure(self, span: Span) -> str | None:
        told = _value(span, self.error)
        if told in (None, False, "", 0, "false"):
            return content.error(span)
        if isinstance(told, str):
            return content.named(content.error_type(span), told)
        return content.error_type(span) or "error"


def _value(span: Span, key: str | None) -> AttributeValue:
    if key is None:
        return None
    if key == SPAN_NAME:
        return span.name
    return span.scope if key == SCOPE_NAME else span.attributes.get(key)


def _text(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
