"""A dialect that the user describes in the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spanscore.compare.globs import glob_matcher
from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.model import AttributeValue, Span

SPAN_NAME: Final = "span.name"
SCOPE_NAME: Final = "scope.name"


@dataclass(frozen=True, kw_only=True)
class Custom:
    """Any instrumentation of one's own, described by the names of its attributes (`dialects: custom`).

    Args:
        name: what to call the dialect.
        match: which spans are tool calls: attributes, `span.name` or `scope.name`, each with a glob. All must match.
        tool_name: the attribute with the tool's name, or `span.name`.
        arguments: the attribute with the arguments, as JSON text or structured.
        result: the attribute with the result.
        call_id: the attribute with the model's id of the call.
        error: the attribute that is there, and neither false nor empty, when the call failed.
    """

    name: str
    match: Mapping[str, str]
    tool_name: str
    arguments: str | None = None
    result: str | None = None
    call_id: str | None = None
    error: str | None = None
    precedence: int = field(default=Precedence.CUSTOM, init=False)
    markers: Markers = field(init=False)
    reads: frozenset[str] = field(init=False)
    _matchers: Mapping[str, Callable[[str], bool]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        keys = [key for key in self.match if key not in {SPAN_NAME, SCOPE_NAME}]
        # Every pattern must match, so offering by one attribute is enough; without any, every span is looked at.
        markers = Markers(attributes=frozenset(keys[:1])) if keys else Markers(span_names=("",))
        object.__setattr__(self, "markers", markers)
        read = (*keys, self.tool_name, self.arguments, self.result, self.call_id, self.error)
        object.__setattr__(self, "reads", content.READS.union(key for key in read if key is not None))
        object.__setattr__(self, "_matchers", {key: glob_matcher(glob) for key, glob in self.match.items()})

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
