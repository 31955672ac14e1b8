"""Reports with masked values: runs are evaluated with all values, and shown with marks in place of the masked ones.

A text that repeats a masked value of the run, such as the error of a tool or the id of a conversation, becomes a mark
as a whole. A score that is
about a masked value has the words without content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from spanscore.compare.alignment import Shortened, whole
from spanscore.compare.differences import Described
from spanscore.dialects import parsed_text
from spanscore.model import NOT_RECORDED, Failed, Later, LaterList, Outcome, Report, Score, ToolCall
from spanscore.model.outcomes import Told, Words
from spanscore.trajectories.mask_paths import Keys
from spanscore.trajectories.masks import Masks, is_name, leaves

WITHHELD: Final = "its message is not shown, as values of the run are masked"
"""The message of an evaluator that had an error: exceptions quote values."""

_SHORTEST: Final = 3
"""Texts are searched for masked values of so many characters or more."""
_MOST_COMPARED: Final = 50_000_000
"""So many characters of a run are searched, once for each value; texts beyond them count as repeating one."""
_CUT: Final = 1_000
"""A value in a deviation is cut behind so many characters: an end that is cut may be the begin of a masked value."""
_DEEPEST: Final = 100
"""A value that is nested deeper is masked as a whole."""
_STEP: Final = re.compile(r'\.?([^\W\d]\w*|\d+)|\[("(?:[^"\\]|\\.)*")\]')
"""A step of a path as deviations write it."""
_NAMES_A_CASE: Final = re.compile(r"test\..*|.*(?:\b|_)id|.*Id")
"""Attributes of cases, sessions and users: people put values into these."""
_RULES: Final = frozenset({"schema", "provenance"})
"""The kinds of deviations that expect a rule and no value."""
_ARGUMENTS: Final[Keys] = ("arguments",)
_RESULT: Final[Keys] = ("result",)


def masked_report(report: Report, masks: Masks) -> Report:
    """Return a report without masked values; its verdicts are the same."""
    run = _MaskedRun(report, masks)
    evaluations = [replace(each, outcome=run.outcome(each.outcome)) for each in report.evaluations]
    trajectory = replace(report.trajectory, **run.changes)
    return replace(report, trajectory=trajectory, evaluations=tuple(evaluations))


class _MaskedRun:
    """Masks the values of one run."""

    def __init__(self, report: Report, masks: Masks) -> None:
        run = report.trajectory
        self._masks: Final = masks
        self._attributes: Final = run.attributes
        self._left = _MOST_COMPARED
        calls = {"calls": run.calls, "uncertain": run.uncertain, "refused": run.refused}
        by_keys = {name: [self._by_keys(call) for call in each] for name, each in calls.items()}
        self._hidden: Final = frozenset(
            text
            for name, each in by_keys.items()
            for call, masked in zip(calls[name], each, strict=True)
            for text in (*_hidden(call.arguments, masked.arguments), *_hidden(call.result, masked.result))
        )
        masked = {name: tuple(map(self._without_repeats, each)) for name, each in by_keys.items()}
        self._is_changed: Final = masked != calls
        self.changes: Final[Mapping[str, Any]] = {
            **masked,
            "conversation_id": self._unrepeated(run.conversation_id),
            "attributes": Later(self._masked_attributes),
            "user_text": LaterList(lambda: [*map(self._text, run.user_text)]),
            "system_text": LaterList(lambda: [*map(self._text, run.system_text)]),
        }
        """The parts of the trajectory that are shown otherwise."""
        if masks.has_unmatched:  # the key of a mask may be that of an attribute
            self._masked_attributes()

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return an outcome without masked values."""
        if isinstance(outcome, Failed):
            return replace(outcome, message=WITHHELD) if self._is_changed else outcome
        if not isinstance(outcome, Score):
            return outcome
        score = outcome

        def tell() -> Told:
            rows = score.details.get("deviations")
            if not isinstance(rows, (list, tuple)):  # nothing says what a plug-in's explanation is about
                return Told(score.details, lambda: words(is_about_masked=self._is_changed))
            shown = [self._row(row) for row in rows]
            listed = Shortened(shown, lambda: [self._row(row) for row in whole(rows)])
            return Told({**score.details, "deviations": listed}, lambda: words(is_about_masked=shown != list(rows)))

        def words(*, is_about_masked: bool) -> Words:
            bare = score.without_content
            return Words(bare) if is_about_masked and bare is not None else Words(score.explanation, bare)

        return Score.told_later(score.value, score.passed, tell, score.mended_by)

    def _masked_attributes(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for key, value in self._attributes.items():
            path, is_masked = self._masks.below((), key)
            plain = _plain(value)
            if is_masked:
                self._masks.look(plain, path)
            hidden = self._masks.mark(plain) if is_masked else self._by_path(plain, path)
            if not is_name(path) or _NAMES_A_CASE.fullmatch(key):
                hidden = self._unrepeated(hidden)
            found[key] = value if hidden == plain else hidden
        return found

    def _by_keys(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._arguments(call.arguments), result=self._by_path(call.result, _RESULT))

    def _arguments(self, value: Any) -> Any:
        """Return arguments, with marks in place of those without a name: no mask can name them."""
        if isinstance(value, list):
            return [self._by_path(item, _ARGUMENTS) if isinstance(item, dict) else self._mark(item) for item in value]
        parsed = parsed_text(value) if isinstance(value, str) else value
        is_open = isinstance(parsed, dict) or value in {None, NOT_RECORDED, ""}
        return self._by_path(value, _ARGUMENTS) if is_open else self._mark(value)

    def _mark(self, value: Any) -> Any:
        return self._masks.mark(None if _is_deep(value) else value)

    def _by_path(self, value: Any, path: Keys) -> Any:
        if value is NOT_RECORDED:
            return value
        try:
            return self._mark(value) if _is_deep(value) else self._masks.value(value, path)
        except RecursionError:  # in a text
            return self._masks.mark(None)

    def _without_repeats(self, call: ToolCall) -> ToolCall:
        return replace(
            call,
            arguments=self._unrepeated(call.arguments),
            result=self._unrepeated(call.result),
            error=None if call.error is None else self._text(call.error),
        )

    def _text(self, text: str) -> str:
        return str(self._unrepeated(self._masks.text(text, ())))

    def _unrepeated(self, value: Any) -> Any:
        """Return a value with marks in place of texts that repeat a masked value."""
        if not self._hidden:
            return value
        if isinstance(value, str):
            return self._masks.mark(value) if self._repeats(value) else value
        if isinstance(value, list):
            return [self._unrepeated(item) for item in value]
        return {key: self._unrepeated(item) for key, item in value.items()} if isinstance(value, dict) else value

    def _repeats(self, text: str) -> bool:
        self._left -= len(text) * len(self._hidden)
        return self._left < 0 or any(each in text for each in self._hidden)

    def _row(self, row: Any) -> Any:
        """Return a row of a score's deviations with marks in place of masked values. A plug-in's may be anything."""
        if not isinstance(row, Mapping):
            return row
        kind, more = row.get("kind"), row.get("more")
        shown = self._values(row, kind)
        if isinstance(more, list):
            shown["more"] = [self._values(each, kind) if isinstance(each, Mapping) else each for each in more]
        return shown

    def _values(self, row: Mapping[str, Any], kind: Any) -> dict[str, Any]:
        if not isinstance(row.get("path"), str):
            return dict(row)
        base = {"result": _RESULT, "error": ()}.get(kind, _ARGUMENTS)
        path = base + tuple(_steps(row["path"]))
        is_masked = self._masks.is_masked(path, len(base))
        values = {"actual"} if kind in _RULES else {"actual", "expected"}
        return {
            key: value if key not in values else self._mark(value) if is_masked else self._value(value, path)
            for key, value in row.items()
        }

    def _value(self, value: Any, path: Keys) -> Any:
        if self._is_changed and isinstance(value, str) and len(value) > _CUT:
            return self._masks.mark(value)
        if isinstance(value, Described):  # values between words
            masked = self._text(str(value))
            return value if masked == value else masked
        return self._unrepeated(self._arguments(value) if path == _ARGUMENTS else self._by_path(value, path))


def _steps(path: str) -> Iterator[str]:
    """Yield the keys of a path as deviations write it, without indexes of lists."""
    for plain, quoted in _STEP.findall(path):
        for step in (json.loads(quoted) if quoted else plain).split("."):
            if step and not step.isdecimal():
                yield step


def _hidden(value: Any, masked: Any) -> Iterator[str]:
    """Yield the texts of a value that a masked copy of it does not have."""
    if value == masked:
        return
    if isinstance(value, dict) and isinstance(masked, dict) and value.keys() == masked.keys():
        for key, item in value.items():
            yield from _hidden(item, masked[key])
    elif isinstance(value, list) and isinstance(masked, list):
        for item, other in zip(value, masked, strict=True):
            yield from _hidden(item, other)
    elif isinstance(value, str) and isinstance(parsed := parsed_text(value), (dict, list)) and not _is_deep(parsed):
        yield from _hidden(parsed, parsed_text(str(masked)))
    else:
        for text in leaves(value):
            if len(text) >= _SHORTEST:
                yield text
                yield json.dumps(text)[1:-1]


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for each in level
            if isinstance(each, (dict, list))
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(map(_plain, value)) if isinstance(value, tuple) else value
