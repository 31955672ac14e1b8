"""The tools of `spanscore mcp`: why runs failed, which runs, and one run whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import signature
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeAlias

from annotated_types import Interval

from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion, unmatched
from spanscore.messages.printable import MAX_LABEL_CHARS, encodable, printable
from spanscore.reports.bounded_line import LEFT_OUT_KEY, bounded
from spanscore.reports.json_reports import bare_report, first_call_ns, reasons_in
from spanscore.reports.reason_table import TRACE_ID_START, WantedRuns

MOST_BYTES: Final = 64 * 1024
"""Of an answer."""
_MOST_RUNS: Final = 50
_MOST_ASKED: Final = 200
_USUAL_RUNS: Final = 20
_IDS_SHOWN: Final = 5
_NAMES_SHOWN: Final = 30
_REASONS_SHOWN: Final = 20
_REASONS_KEPT: Final = 5
_MOST_OF_A_TRACE: Final = 10
_RESERVED: Final = 100
"""Bytes for the ends of lines, and for the number of runs that are left out."""
_LIMITS: Final = frozenset(map(str, range(1, _MOST_RUNS + 1)))
_WIDEST: Final = 4
"""Bytes of a character."""
_OF_A_RUN: Final = ("trace_id", "unit", "service", "agent", "test_case", "verdict", "complete", "close_reason")

Limit: TypeAlias = Annotated[int, Interval(ge=1, le=_MOST_RUNS)]


class RunsFound(NamedTuple):
    """Runs, and the reasons of all runs of their source."""

    told: Mapping[str, Any]
    """About the source: how many runs it has, and since when."""
    reasons: Sequence[Mapping[str, Any]]
    """As `ReasonRow.as_json` returns them."""
    matching: int
    """The runs that fit, of which `runs` has the first ones."""
    runs: Sequence[dict[str, Any]]
    """Reports as JSON, the newest first."""


class RunSource(Protocol):
    """A source of scored runs."""

    def ask(self, asked: WantedRuns) -> RunsFound:
        """Return runs, and the reasons of all.

        Raises:
            InputError: the source cannot be read.
        """


class RunTools:
    """The tools, whose descriptions are for the model that calls them. Each returns JSON of at most 64 KiB.

    The source has the runs with the content that may be shown.
    """

    def __init__(self, source: RunSource) -> None:
        self._source: Final = source

    def reasons(self, agent: str | None = None) -> str:
        """List the reasons for which recorded runs of LLM agents failed, the most frequent first. Start here.

        Each row has: `reason` (the evaluator, and what was wrong), `runs` (how many runs failed for it) `of` (all
        runs), `agents`, `trace_id` (the latest of these runs: pass it to `run`), `part_of` (a more frequent reason that
        at least 90 % of these runs have as well: look at that one first), `errors` (the most frequent texts of errors),
        and `since` (it became more frequent by this ratio at some time between `begin` and `end`; a ratio of null: no
        run failed for it before; null: no change was found).

        Args:
            agent: the exact name of an agent: only reasons for which runs of it failed. The numbers are of all agents.
        """
        found = self._source.ask(WantedRuns())
        rows = [_reason(row) for row in found.reasons if not agent or agent in row.get("agents", ())]
        if agent and not rows:
            self._need_agent(agent)
        return _fitting(found.told, "reasons", rows)

    def runs(self, reason: str | None = None, agent: str | None = None, limit: Limit = _USUAL_RUNS) -> str:
        """List runs: failing ones first, then the newest. To see calls, arguments and errors, pass a trace_id to `run`.

        Each row has the trace id, the agent, the verdict (`pass`, `fail`, or `none`: nothing could be evaluated),
        whether the whole run was seen (`complete`), when its first call started, the reasons for which it failed, and
        the names of the tools that it called, in order. `matching` is the number of all runs that fit.

        Args:
            reason: the exact text of a `reason` that the tool `reasons` returned.
            agent: the exact name of an agent.
            limit: the most rows, from 1 to 50.
        """
        found = self._source.ask(WantedRuns(reason=reason or None, agent=agent or None, limit=_MOST_ASKED))
        if not found.matching and reason:
            _need("reason", reason, [row["reason"] for row in found.reasons])
        if not found.matching and agent:
            self._need_agent(agent)
        rows = [_summary(run) for run in sorted(found.runs, key=_passes)[:limit]]
        return _fitting({"matching": found.matching}, "runs", rows)

    def run(self, trace_id: str) -> str:
        """Show one run whole: each tool call in order, and what each evaluator found wrong in it.

        `tool_calls` has the calls with arguments, results and errors; null: not recorded, or not shown. `outcomes` has
        for each evaluator its score and an explanation; in `details.deviations`, `call` is an index in `tool_calls`.
        If the run is too large, `left_out` says what is missing: `content` (arguments, results and errors), `calls`
        (these as well) or `outcomes`. A trace with several runs has a line for each, ten at most.

        Args:
            trace_id: as `reasons` and `runs` return it, or at least its first 4 hexadecimal digits.
        """
        asked = trace_id.strip().lower()
        if not TRACE_ID_START.fullmatch(asked):
            raise InputError(f"trace_id: must be 4 to 32 hexadecimal digits, not {printable(trace_id)!r}")
        runs = self._source.ask(WantedRuns(trace=asked, limit=_MOST_RUNS)).runs
        ids = list(dict.fromkeys(each["trace_id"] for each in runs))
        if not ids:
            raise InputError(f"no run has a trace id that begins with {asked}: call runs for those that there are")
        if len(ids) > 1:
            listed = ", ".join(ids[:_IDS_SHOWN])
            message = f"several trace ids begin with {asked}: {listed}{', ...' if len(ids) > _IDS_SHOWN else ''}"
            raise InputError(message)
        shown = sorted(runs, key=_passes)[:_MOST_OF_A_TRACE]
        lines = [_whole(each, (MOST_BYTES - _RESERVED) // len(shown)) for each in shown]
        if len(runs) > len(shown):
            lines.append(_encoded({LEFT_OUT_KEY: len(runs) - len(shown)}))
        return "\n".join(lines)

    def _need_agent(self, agent: str) -> None:
        """Raise InputError if there are runs, and none is of this agent."""
        if not self._source.ask(WantedRuns(agent=agent)).matching:
            found = self._source.ask(WantedRuns(limit=_MOST_ASKED))
            failing = (name for row in found.reasons for name in row.get("agents", ()))
            _need("agent", agent, [*failing, *(run["agent"] for run in found.runs if run.get("agent"))])


def check_arguments(tool: Callable[..., str], given: Mapping[str, Any]) -> None:
    """Check what a client passes to a tool, as the library's own message does not say it in our words.

    Raises:
        InputError: an argument is missing, unknown or wrong; the message names what is allowed.
    """
    known = signature(tool).parameters
    for name in given:
        if name not in known:
            near = suggestion(name, known) or f"; allowed: {', '.join(known)}"
            raise InputError(f"there is no argument {printable(name)!r}{near}")
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is parameter.empty:
            raise InputError(f"{name}: must be given")
        if name == "limit" and str(value) not in _LIMITS:
            raise InputError(f"limit: must be a whole number from 1 to {_MOST_RUNS}, not {printable(str(value))}")
        if name != "limit" and not isinstance(value, str) and (value is not None or parameter.default is not None):
            raise InputError(f"{name}: must be a text, not {printable(str(value))}")


def _need(name: str, wanted: str, known: Iterable[str]) -> None:
    """Raise InputError if a value is not known, unless nothing is."""
    if message := unmatched(name, wanted, known):
        raise InputError(message)


def _passes(run: Mapping[str, Any]) -> bool:
    return run.get("verdict") != "fail"


def _reason(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with times to read, and without its bars."""
    told = {key: value for key, value in row.items() if key != "over_time"}
    if isinstance(since := row.get("since"), dict):
        begin, end = (_rfc3339(since.get(f"{which}_unix_nano", 0)) for which in ("begin", "end"))
        told["since"] = {"ratio": since.get("ratio"), "begin": begin, "end": end}
    return told


def _rfc3339(unix_nano: int) -> str:
    return datetime.fromtimestamp(unix_nano // 10**9, UTC).isoformat().replace("+00:00", "Z")


def _summary(run: Mapping[str, Any]) -> dict[str, Any]:
    reasons = reasons_in(run)
    calls, started = run["tool_calls"], first_call_ns(run)
    names = None if calls is None else [each.get("name") for each in calls[:_NAMES_SHOWN]]
    return {
        **{key: run[key] for key in _OF_A_RUN if run.get(key) is not None},
        **({} if started is None else {"first_call": _rfc3339(started)}),
        "reasons": reasons[:_REASONS_SHOWN],
        **_more("more_reasons", len(reasons) - _REASONS_SHOWN),
        "tool_calls": names,
        **_more("more_tool_calls", len(calls or ()) - _NAMES_SHOWN),
    }


def _more(key: str, count: int) -> dict[str, int]:
    return {key: count} if count > 0 else {}


def _fitting(told: Mapping[str, Any], key: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return an object with as many rows as have room, and the number of the others."""
    kept: list[str] = []
    left_out = 0
    left = MOST_BYTES - len(_encoded({**told, key: [], LEFT_OUT_KEY: 10**9}).encode())
    for row in rows:
        text = _encoded(row)
        left -= len(text.encode()) + len(",")
        if left < 0:
            left_out += 1
        else:
            kept.append(text)
    head = _encoded({**told, **_more(LEFT_OUT_KEY, left_out)})[:-1]
    return f'{head}{"," if len(head) > 1 else ""}"{key}":[{",".join(kept)}]}}'


def _whole(run: Mapping[str, Any], most: int) -> str:
    """Return a run as a line of at most so many bytes."""
    for characters in (most, most // _WIDEST):
        line = encodable(bounded(run, characters, lambda: bare_report(run, explained=True)))
        if len(line.encode()) <= most:
            return line
    kept = {key: printable(run[key]) if isinstance(run[key], str) else run[key] for key in _OF_A_RUN if key in run}
    reasons = [printable(each, MAX_LABEL_CHARS) for each in reasons_in(run)[:_REASONS_KEPT]]
    return _encoded({**kept, "reasons": reasons, LEFT_OUT_KEY: "outcomes"})


def _encoded(value: Any) -> str:
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
