"""The attributes of received spans that a dialect or an evaluator reads: a receiver does not keep the others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from spanscore.contracts import Dialect, TellsModelCalls, TellsResults
from spanscore.model import LOG_RECORD, Span
from spanscore.trajectories.reader import DialectReader

_MAX_KEYS: Final = 4_096
_STEP_BYTES: Final = 128 * 1024
"""Bytes of spans that are looked through in one step, which takes a millisecond or two."""
_MOST_COMBINATIONS: Final = 1_024
"""Of dialects: there are a few dozen, and a sender can make more up."""
_USUAL: Final = ' "'

_Unused: TypeAlias = Sequence[tuple[str, Mapping[str, Sequence[str]]]]
"""The keys of texts that may be left out, each with the words that keep one, by a character that few texts have."""


class UnusedTexts:
    """Texts of wanted attributes that nothing reads: results of calls, and messages to models without a result.

    A span without them gives the same reading, except for results: its dialects declare that (`TellsResults`). A span
    without a parent keeps all texts, because a configuration may match any of its attributes. So does a span with
    events, because a dialect may look there for missing attributes.

    Args:
        reader: reads the spans, and knows whether results are searched.
        model_calls: whether requests to models, and the texts that were sent to them, are read.
        kept: the keys of attributes that are read for other purposes.
    """

    def __init__(self, reader: DialectReader, *, model_calls: bool = False, kept: Iterable[str] = ()) -> None:
        self._reader: Final = reader
        self._model_calls: Final = model_calls
        declaring = [dialect for dialect in reader.dialects if isinstance(dialect, TellsResults)]
        named = chain.from_iterable((*dialect.result_keys, *dialect.telling_words) for dialect in declaring)
        self.keys: Final = frozenset(named).difference(kept)
        """The keys of all such texts."""
        self._by_dialects: Final[dict[int, tuple[Sequence[Dialect], _Unused]]] = {}
        """By the id() of the reader's tuple of dialects, which the value keeps alive, so that the id stays unique."""

    def taking_out(self, spans: Sequence[Span], sizes: list[int]) -> Generator[None, None, None]:
        """Remove the texts from spans that nothing else uses yet, and reduce `sizes` (bytes).

        In steps of some spans: of more than one only if they are small.
        """
        keys, unused = self.keys, self._unused
        looked_through = 0
        for index, span in enumerate(spans):
            attributes = span.attributes
            if attributes.keys().isdisjoint(keys):
                continue
            looked_through += sizes[index]
            if not span.events and span.parent_span_id and span.kind != LOG_RECORD and isinstance(attributes, dict):
                for key, words in unused(span):
                    text = attributes.get(key)
                    if isinstance(text, str) and not _has_any(text, words):
                        del attributes[key]
                        sizes[index] -= len(text)
            if looked_through > _STEP_BYTES:
                yield
                looked_through = 0

    def of(self, scope: str, name: str, keys: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
        """Return the keys of such texts in spans of a shape, each with words of which a text that is kept has one."""
        shaped = Span(b"", b"", b"", name, 0, 0, attributes=dict.fromkeys(keys), scope=scope)
        return [(key, [*chain(*words.values())]) for key, words in self._unused(shaped) if key in keys]

    def _unused(self, span: Span) -> _Unused:
        dialects = self._reader.offered(span)
        if not dialects:
            return ()
        known = self._by_dialects.get(id(dialects))
        if known is None:
            if len(self._by_dialects) >= _MOST_COMBINATIONS:
                self._by_dialects.clear()
            known = self._by_dialects[id(dialects)] = dialects, self._unused_by(dialects)
        return known[1]

    def _unused_by(self, dialects: Sequence[Dialect]) -> _Unused:
        """Return the keys that none of these dialects needs, with the words that keep a text."""
        looked_at = [(dialect, wanted_attributes([dialect], model_calls=self._model_calls)) for dialect in dialects]
        unused: list[tuple[str, Mapping[str, Sequence[str]]]] = []
        for key in sorted(self.keys):
            words = [self._words(dialect, key) for dialect, wanted in looked_at if wanted[key] is not None]
            if words and None not in words:
                unused.append((key, _by_rare_character(chain.from_iterable(filter(None, words)))))
        return unused

    def _words(self, dialect: Dialect, key: str) -> Sequence[str] | None:
        """Return the words that keep a text for a dialect; None if every text is kept."""
        if not isinstance(dialect, TellsResults):
            return None
        if key in dialect.result_keys:
            return None if self._reader.results else dialect.telling_words.get(key, ())
        if self._model_calls and isinstance(dialect, TellsModelCalls) and key in dialect.reads_for_model_calls:
            return None
        return dialect.telling_words.get(key)


def _by_rare_character(words: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return words by the first of their characters that prose has rarely; empty for words without one.

    A character is found ten times as fast as a word, and most texts have none of these.
    """
    grouped: dict[str, list[str]] = {}
    for word in words:
        rare = next((each for each in word if not each.islower() and each not in _USUAL), "")
        grouped.setdefault(rare, []).append(word)
    return grouped


def _has_any(text: str, words: Mapping[str, Sequence[str]]) -> bool:
    for rare, each_word in words.items():
        if rare in text:
            for word in each_word:
                if word in text:
                    return True
    return False


class WantedAttributes(dict[str, str | None]):
    """The wanted attributes: `wanted[key]` is the key, or None if it is not wanted.

    The returned key is one object for all spans: a key takes as much memory as a short value. It is a dictionary for
    speed, because every received attribute is looked up: results are cached, for as many keys as usual telemetry has.

    Args:
        keys: the wanted keys; a key that ends in `*` means all keys with that prefix.
        unused: the texts of wanted attributes that are still left out. The compiled decoder does not create them; after
            other decoders the intake removes them.
    """

    def __init__(self, keys: Iterable[str], unused: UnusedTexts | None = None) -> None:
        keys = frozenset(keys)
        self.patterns: Final = keys
        self.unused: Final = unused
        super().__init__((key, key) for key in keys if not key.endswith("*"))
        self._prefixes: Final = tuple(key[:-1] for key in keys if key.endswith("*"))

    def __missing__(self, key: str) -> str | None:
        answer = key if key.startswith(self._prefixes) else None
        if len(self) < _MAX_KEYS:
            self[key] = answer
        return answer


class Wanted(NamedTuple):
    """The parts of received data that are read."""

    attributes: WantedAttributes | None = None
    """Of spans that have a parent in their process; None is all."""
    log_names: tuple[str, ...] = ()
    """The prefixes of the names of log records that are read."""


def wanted_attributes(
    dialects: Iterable[Dialect],
    others: Iterable[str] = (),
    *,
    model_calls: bool = False,
    unused: UnusedTexts | None = None,
) -> WantedAttributes:
    """Return the keys that the dialects read, and `others`; with `model_calls` also the keys for requests to models.

    Prompts are long and are repeated in every request: configurations without model calls do not pay for them.
    """
    dialects = tuple(dialects)
    keys = {key for dialect in dialects for key in (*dialect.reads, *dialect.markers.attributes)}
    if model_calls:
        keys.update(
            key for dialect in dialects if isinstance(dialect, TellsModelCalls) for key in dialect.reads_for_model_calls
        )
    return WantedAttributes(keys.union(others), unused)


def log_names(dialects: Iterable[Dialect]) -> tuple[str, ...]:
    """Return the prefixes of the names of log records that the dialects read."""
    return tuple(sorted({name for dialect in dialects for name in dialect.markers.log_names}))
