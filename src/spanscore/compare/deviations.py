"""The deviations of a run from its expectation, call by call: in words for people, as JSON for programs.

An explanation goes down to the argument. Scores also go where arguments and results may not: every sentence is made
twice, once with what was expected and what came, and once without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from spanscore.compare.alignment import Aligned
from spanscore.compare.differences import (
    ABSENT,
    UNSHOWABLE,
    Difference,
    first_reason,
    json_text,
    json_type,
    path_text,
    shown,
)
from spanscore.compare.matching import positions
from spanscore.compare.names import short
from spanscore.messages.alike import apart, paths_apart
from spanscore.messages.plural import plural
from spanscore.messages.printable import error_type_or_error
from spanscore.model import ToolCall

Kind: TypeAlias = Literal[
    "missing",
    "unexpected",
    "wrong_tool",
    "order",
    "arguments",
    "result",
    "schema",
    "error",
    "rule",
    "count",
    "provenance",
    "limit",
]

DETAILED: Final = 20
"""Of so many deviations it is said how arguments differ; of the others only that they do."""

_TEENS: Final = (11, 12, 13)
_PATHS_TOLD: Final = 3
_LONGEST_VALUE: Final = 1_000

_WORDS: Final[Mapping[str, str]] = {
    "missing": "was not called",
    "unexpected": "was called, but not expected",
    "order": "was called out of order",
}
_REASONS: Final[Mapping[str, str]] = {**_WORDS, "unexpected": "was not expected"}


class Nth(NamedTuple):
    """The place of an expected call among those of the same name."""

    nth: int
    """From 1."""
    of: int

    def __str__(self) -> str:
        ending = "th" if self.nth % 100 in _TEENS else {1: "st", 2: "nd", 3: "rd"}.get(self.nth % 10, "th")
        return f"the {self.nth}{ending} of {self.of}"


def among_equals(expected: Sequence[str]) -> Sequence[Nth | None]:
    """Return the place of each expected call among those of its name; None where it is the only one."""
    if len(set(expected)) == len(expected):
        return [None] * len(expected)
    totals, so_far = Counter(expected), Counter[str]()
    found: list[Nth | None] = []
    for name in expected:
        so_far[name] += 1
        found.append(Nth(so_far[name], totals[name]) if totals[name] > 1 else None)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One call that was made, or not made, otherwise than expected."""

    kind: Kind
    tool: str
    """The tool that was called, or that was to be called."""
    call: int | None = None
    """The index of the call in the run; None where there is none."""
    span_id: bytes | None = None
    differences: tuple[Difference, ...] = ()
    """The places at which arguments or results differ from the expected ones, or break a rule of their schema."""
    expected: str | None = None
    """The tool in whose place it was called, the rule that it breaks, the number of calls expected, or the limit that
    the run exceeds."""
    nth: Nth | None = None
    """The place of a missing call among several equal expected ones."""
    sentence: str | None = None
    """Words after the name of the tool that replace the words of the kind; not in the JSON."""
    why: str | None = None
    """Words after the name of the tool that replace those of the kind in `reason`; not in the JSON by themselves."""

    @classmethod
    def at(cls, kind: Kind, call: int, calls: Sequence[ToolCall], **rest: Any) -> Self:
        """Return the deviation of a call that was made, given by its index among the calls that are evaluated."""
        if kind == "error":
            rest.setdefault("why", f"failed: {error_type_or_error(calls[call].error_type)}")
        made = calls[call]
        return cls(kind=kind, tool=made.name, call=made.in_run(call), span_id=made.span_id, **rest)

    @classmethod
    def of_limit(cls, limit: str) -> Self:
        """Return the deviation of a whole run that exceeds a limit, such as `duration_s`."""
        return cls(kind="limit", tool="", expected=limit)

    def words(self, *, content: bool) -> str:
        """Return the deviation in words, with its call: `issue_refund was called out of order (call 3)`.

        Args:
            content: whether the words may show arguments, results and error messages.
        """
        return self._words(content=content) + ("" if self.call is None else f" (call {self.call + 1})")

    def _words(self, *, content: bool) -> str:
        tool = short(self.tool)
        if self.sentence is not None:
            return f"{tool} {self.sentence}"
        match self.kind:
            case "wrong_tool":
                return "expected {}, got {}".format(*apart(short(self.expected or ""), tool))
            case "error":
                error = f": {short(str(self.differences[0].actual))}" if content and self.differences else ""
                return f"{tool} failed{error}"
            case "arguments" | "result" | "schema" | "provenance":
                return " and ".join(self._differences(content=content)) or f"{tool}: not the expected {self.kind}"
            case "rule" | "count" | "limit":
                return f"{tool} breaks {self.expected!r}"
            case _:
                return f"{self.nth} {tool} calls was not made" if self.nth else f"{tool} {_WORDS[self.kind]}"

    @property
    def reason(self) -> str:
        """The reason: a text that is the same in every run in which the same is wrong.

        It has names, and nothing of arguments, results, errors or keys that the expectation does not name.
        """
        match self.kind:
            case _ if self.why is not None:
                why = self.why
            case "wrong_tool":
                why = f"was called in place of {self.expected}"
            case "rule" if self.call is None:
                return f"breaks {self.expected}"
            case "rule":
                why = f"breaks {self.expected}"
            case "limit":
                return f"exceeds {self.expected}"
            case "missing" if self.nth:
                why = "was called too rarely"
            case "arguments" | "result":
                subject = f"{self.tool} result" if self.kind == "result" else self.tool
                return first_reason(subject, self.differences)
            case "schema":
                return first_reason(self.tool, self.differences, "breaks the schema")
            case "provenance":
                return first_reason(self.tool, self.differences, str(self.differences[0].expected))
            case kind:
                why = _REASONS[kind]
        return f"{self.tool} {why}".lstrip()

    def as_json(self) -> dict[str, Any]:
        """Return the deviation for a program: with the first path that differs, and under `more` the others."""
        row: dict[str, Any] = {
            "kind": self.kind,
            "tool": self.tool or None,
            "call": self.call,
            "span_id": None if self.span_id is None else self.span_id.hex(),
            "reason": self.reason,
        }
        if self.expected is not None:
            row["expected"] = self.expected
        if self.nth is not None:
            row.update(self.nth._asdict())
        paths = [_path_row(difference) for difference in self.differences]
        row.update(paths[0] if paths else {})
        if len(paths) > 1:
            row["more"] = paths[1:]
        return row

    def _differences(self, *, content: bool) -> Iterator[str]:
        subject = f"{short(self.tool)} result" if self.kind == "result" else short(self.tool)
        paths = paths_apart([path_text(subject, difference.path) for difference in self.differences])
        for difference, written in zip(self.differences[:_PATHS_TOLD], paths, strict=False):
            if self.kind in {"schema", "provenance"}:
                is_told = content and difference.actual is not ABSENT
                path = difference.path if content else difference.path_without_content
                rule, came = str(difference.expected), ""
                if is_told:
                    rule, came = apart(rule, shown(difference.actual))
                elif rule.startswith("type: ") and difference.actual is not ABSENT:
                    came = json_type(difference.actual) or ""
                yield f"{path_text(subject, path)}: {rule}{came and f', got {came}'}"
            elif content:
                yield f"{written}: {difference.words}"
            else:
                yield f"{path_text(subject, difference.path_without_content)}: {difference.words_without_content}"
        if len(self.differences) > _PATHS_TOLD:
            yield f"{len(self.differences) - _PATHS_TOLD} more paths"


Differ: TypeAlias = Callable[[int, int], Sequence[Difference]]
"""Returns where the arguments of an expected call and of an actual one, each by its place, differ."""


def of_alignment(
    aligned: Iterable[Aligned], expected: Sequence[str], calls: Sequence[ToolCall], differ: Differ
) -> list[Deviation]:
    """Return the deviations that an alignment shows, in its order."""
    found: list[Deviation] = []
    nth = among_equals(expected)
    for place, call, status in aligned:
        if status == "missing" and place is not None:
            found.append(Deviation(kind="missing", tool=expected[place], nth=nth[place]))
        elif call is None or status in {"ok", "ignored"}:
            pass
        elif status in {"extra", "order"}:
            found.append(Deviation.at("order" if status == "order" else "unexpected", call, calls))
        elif place is not None and status == "wrong":
            found.append(Deviation.at("wrong_tool", call, calls, expected=expected[place]))
        elif place is not None:
            paths = tuple(differ(place, call)) if len(found) < DETAILED else ()
            found.append(Deviation.at("arguments", call, calls, differences=paths))
    return found


def unmet(
    tools: Sequence[str],
    found: Sequence[int | None],
    names: Sequence[str],
    nearest: Callable[[int, int, list[int]], Deviation],
) -> list[Deviation]:
    """Return the deviation of each expected call without a match: no call of its tool is left, or one deviates.

    Args:
        tools: of the expected calls.
        found: the call that each of them found.
        names: of the calls made.
        nearest: takes one of the calls of the tool that are left, and returns how it deviates. It is called with the
            number of the deviation, the place of the expected call, and the calls left, at least one.
    """
    taken = frozenset(found)
    left = {tool: [call for call in calls if call not in taken] for tool, calls in positions(names).items()}
    nth = among_equals(tools)
    places = [place for place, index in enumerate(found) if index is None]
    return [
        nearest(number, place, calls)
        if (calls := left.get(tools[place]))
        else Deviation(kind="missing", tool=tools[place], nth=nth[place])
        for number, place in enumerate(places)
    ]


def matching_words(matching: int, made: int, expected: int) -> str:
    """Return how many calls match: `2 calls match (3 made, 2 expected)`."""
    return f"{plural(matching, 'call matches', 'calls match')} ({made} made, {expected} expected)"


def _path_row(difference: Difference) -> dict[str, Any]:
    values = {"expected": difference.expected, "actual": difference.actual}
    shown_values = {key: _bounded(value) for key, value in values.items() if value is not ABSENT}
    return {"path": path_text("", difference.path).removeprefix("."), **shown_values}


def _bounded(value: Any) -> Any:
    """Return a value as it is, or the beginning of its text where that is long."""
    if isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < _LONGEST_VALUE):
        return value
    text = json_text(value)
    if text is UNSHOWABLE:
        return text
    return value if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
