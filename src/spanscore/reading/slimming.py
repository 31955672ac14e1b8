"""Takes out of spans what nothing will look at, so that traces that are open take less memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from spanscore.contracts import Dialect, TellsModelCalls, TellsResults
from spanscore.model import LOG_RECORD, Span
from spanscore.reading.reader import DialectReader
from spanscore.reading.wanted import wanted_attributes

_Forgone: TypeAlias = Sequence[tuple[str, Sequence[str]]]
"""The keys of texts that may be left out, each with the words that keep one."""

_MOST_COMBINATIONS: Final = 1_024
"""Of dialects: there are a few dozen, and a sender can make more up."""


class Slimming:
    """Lets go of the results of calls, where nothing looks at them, and of messages to models that hold none.

    What is left is read as all would be, but for the results: so say the dialects of a span (`TellsResults`). All is
    kept of a span without a parent, as a configuration may match on any of its attributes, and of one with events, in
    which a dialect may look for what it does not find.

    Args:
        reader: reads what is left.
        results: whether anything looks at the results of calls.
        model_calls: whether anything looks at requests to models, and at the texts that those were sent.
        kept: the keys of attributes that something else looks at.
    """

    def __init__(
        self, reader: DialectReader, *, results: bool = True, model_calls: bool = False, kept: Iterable[str] = ()
    ) -> None:
        self._reader: Final = reader
        self._results: Final = results
        self._model_calls: Final = model_calls
        telling = [dialect for dialect in reader.dialects if isinstance(dialect, TellsResults)]
        named = chain.from_iterable((*dialect.result_keys, *dialect.telling_words) for dialect in telling)
        self.keys: Final = frozenset(named).difference(kept)
        """The keys of all that any span may be without."""
        self._by_dialects: Final[dict[int, tuple[Sequence[Dialect], _Forgone]]] = {}
        """By the identity of what the reader answers, which is kept beside, so that nothing else can have it."""

    def slim(self, spans: Iterable[Span], sizes: Iterable[int]) -> list[int]:
        """Take attributes out of spans, which are nobody else's, and return the sizes of what is left."""
        return [
            size if span.attributes.keys().isdisjoint(self.keys) else self._slimmed(span, size)
            for span, size in zip(spans, sizes, strict=True)
        ]

    def of(self, scope: str, name: str, keys: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
        """Return the keys of what spans of a shape may be without, each with the words that keep a text."""
        shaped = Span(b"", b"", b"", name, 0, 0, attributes=dict.fromkeys(keys), scope=scope)
        return [each for each in self._forgone(shaped) if each[0] in keys]

    def _slimmed(self, span: Span, size: int) -> int:
        attributes = span.attributes
        if span.events or not span.parent_span_id or span.kind == LOG_RECORD or not isinstance(attributes, dict):
            return size
        for key, words in self._forgone(span):
            text = attributes.get(key)
            if not isinstance(text, str):
                continue
            for word in words:
                if word in text:
                    break
            else:
                del attributes[key]
                size -= len(text)
        return size

    def _forgone(self, span: Span) -> _Forgone:
        dialects = self._reader.offered(span)
        if not dialects:
            return ()
        known = self._by_dialects.get(id(dialects))
        if known is None:
            if len(self._by_dialects) >= _MOST_COMBINATIONS:
                self._by_dialects.clear()
            known = self._by_dialects[id(dialects)] = dialects, self._forgone_by(dialects)
        return known[1]

    def _forgone_by(self, dialects: Sequence[Dialect]) -> _Forgone:
        """Return what all these dialects can do without."""
        looked_at = [(dialect, wanted_attributes([dialect], model_calls=self._model_calls)) for dialect in dialects]
        forgone: list[tuple[str, Sequence[str]]] = []
        for key in sorted(self.keys):
            words = [self._words(dialect, key) for dialect, wanted in looked_at if wanted[key] is not None]
            if words and None not in words:
                forgone.append((key, tuple(chain.from_iterable(filter(None, words)))))
        return forgone

    def _words(self, dialect: Dialect, key: str) -> Sequence[str] | None:
        """Return the words that keep a text for a dialect; None where it is kept whatever it says."""
        if not isinstance(dialect, TellsResults):
            return None
        if key in dialect.result_keys:
            return None if self._results else dialect.telling_words.get(key, ())
        if self._model_calls and isinstance(dialect, TellsModelCalls) and key in dialect.reads_for_model_calls:
            return None
        return dialect.telling_words.get(key)
