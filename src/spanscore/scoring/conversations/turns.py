"""Turns of a conversation as bytes, and joined into one trajectory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

from spanscore.compare.matching import json_key
from spanscore.model import (
    CloseReason,
    Completeness,
    ModelCall,
    ToolCall,
    Trajectory,
    TurnOutline,
    Unit,
    WithheldCall,
)
from spanscore.trajectories.joined_readings import joined_definitions
from spanscore.trajectories.trajectory import DialectFailedError

VERSION: Final = 1
"""Of the form of a turn in bytes."""

_CALLS: Final = ("calls", "uncertain", "refused")
_OF_TRAJECTORY: Final = ("service", "agent", "conversation_id", "response_id", "start_ns", "end_ns", "unread")


_Identity: TypeAlias = tuple[str, str | None, Hashable]


class Turn(NamedTuple):
    """A closed trace as part of a conversation."""

    trajectory: Trajectory
    """Of the whole trace."""
    start_ns: int
    """Its place among the turns."""
    close_reason: CloseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNeeds:
    """The parts of a turn that evaluators look at."""

    attributes: Collection[str] = ()
    """The keys of attributes."""
    results: bool = True


class JoinedTurns(NamedTuple):
    """The trajectory of a conversation."""

    trajectory: Trajectory
    outline: tuple[TurnOutline, ...]
    close_reason: CloseReason
    unread: str | None
    """Why the calls of a turn are unreliable; None if those of all turns are reliable."""


def encoded_turn(turn: Turn, needs: TurnNeeds) -> bytes:
    """Return a turn as JSON, with what is needed of it."""
    run = turn.trajectory
    left_out = frozenset() if needs.results else frozenset({"result"})
    unread, definitions = run.unread, {}
    try:
        definitions = {name: run.tool_definitions[name] for name in sorted({*run.names} & run.tool_definitions.keys())}
    except DialectFailedError as error:
        unread = unread or str(error)
    row = {
        "v": VERSION,
        "start": turn.start_ns,
        "closed": turn.close_reason.value,
        "trace": run.trace_id,
        "root": run.root_span_id,
        **{name: value for name in _OF_TRAJECTORY if (value := getattr(run, name)) is not None},
        **({} if unread is None else {"unread": unread}),
        **{name: [_row(call, left_out) for call in getattr(run, name)] for name in _CALLS},
        "seen": _row(run.completeness),
        "withheld": run.withheld,
        "reordered": run.reordered,
        "attributes": {key: run.attributes[key] for key in needs.attributes if key in run.attributes},
        "definitions": definitions,
        "models": [_row(each) for each in run.model_calls],
        "user": run.user_text,
        "system": run.system_text,
    }
    return json.dumps(
        {key: value for key, value in row.items() if value not in ((), [], {})},
        separators=(",", ":"),
        default=bytes.hex,
    ).encode()


def decoded_turn(content: bytes) -> Turn:
    """Return the turn that was encoded.

    Raises:
        ValueError: it has another version.
    """
    row: Any = json.loads(content)
    if row["v"] != VERSION:
        raise ValueError(f"a turn of version {row['v']}, not {VERSION}")
    seen: Any = {key: tuple(each) if isinstance(each, list) else each for key, each in row.get("seen", {}).items()}
    trajectory = Trajectory(
        **cast("Any", {name: tuple(map(_call, row.get(name, ()))) for name in _CALLS}),
        trace_id=bytes.fromhex(row["trace"]),
        root_span_id=bytes.fromhex(row["root"]),
        **cast("Any", {name: row.get(name) for name in _OF_TRAJECTORY}),
        attributes=row.get("attributes", {}),
        tool_definitions=row.get("definitions", {}),
        model_calls=tuple(ModelCall(**each) for each in row.get("models", ())),
        user_text=tuple(row.get("user", ())),
        system_text=tuple(row.get("system", ())),
        completeness=Completeness(**seen),
        withheld=tuple(WithheldCall(*each) for each in row.get("withheld", ())),
        reordered=tuple(row.get("reordered", ())),
    )
    return Turn(trajectory, row["start"], CloseReason(row["closed"]))


def joined_turns(turns: Iterable[Turn], *, continued: bool = False) -> JoinedTurns:
    """Return the conversation of at least one turn. The order, by start and then by trace id, is made here.

    Calls that were executed are never merged: models number the ids of calls anew in each turn. Whether an uncertain
    call was made before a pause, and the order of restored ones, is known by the turns before. Those of the first turn
    stay uncertain.

    Args:
        turns: the turns.
        continued: whether there were turns before these.
    """
    ordered = sorted(turns, key=lambda turn: (turn.start_ns, turn.trajectory.trace_id))
    runs = [turn.trajectory for turn in ordered]
    first, last = runs[0], runs[-1]
    by_turn = list(_calls_by_turn(runs))
    calls = tuple(call for of_turn in by_turn for call in of_turn)
    reason, from_logs = _close_reason(ordered)
    trajectory = replace(
        last,
        calls=calls,
        unit=Unit.CONVERSATION,
        tool_definitions=joined_definitions(run.tool_definitions for run in runs),
        model_calls=tuple(each for run in runs for each in run.model_calls),
        user_text=_texts(run.user_text for run in runs),
        system_text=_texts(run.system_text for run in runs),
        withheld=tuple(each for run in runs for each in run.withheld),
        uncertain=first.uncertain,
        refused=tuple(each for run in runs for each in run.refused),
        reordered=first.reordered,
        completeness=_all_seen(
            [run.completeness for run in runs],
            from_logs=from_logs,
            begin_unseen=continued or first.completeness.begin_unseen,
        ).of(calls),
        unread=None,
    )
    unread = next((run.unread for run in runs if run.unread is not None), None)
    outline = tuple(TurnOutline(run.trace_id, len(found)) for run, found in zip(runs, by_turn, strict=True))
    return JoinedTurns(trajectory, outline, reason, unread)


def _calls_by_turn(runs: Sequence[Trajectory]) -> Iterator[list[ToolCall]]:
    """Yield the calls of each turn, without restored ones that an earlier turn has."""
    executed: set[_Identity] = set()
    models = 0
    for run in runs:
        found = [call for call in run.calls if not call.restored or _identities(call)[0] not in executed]
        yield [replace(call, turn=call.turn + models) if models and call.turn is not None else call for call in found]
        executed.update(each for call in found for each in _identities(call))
        models += len(run.model_calls)


def _identities(call: ToolCall) -> list[_Identity]:
    """Return by what an execution is recognised: the id of the call, if it has one, and its arguments."""
    by_id: list[_Identity] = [] if call.call_id is None else [(call.name, call.call_id, None)]
    return [*by_id, (call.name, None, json_key(call.arguments))]


def _texts(texts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for each in texts for text in each))


def _close_reason(turns: Sequence[Turn]) -> tuple[CloseReason, bool]:
    """Return why the conversation was not seen whole, and whether all of it is from log records, which have no root."""
    rooted = [turn.close_reason for turn in turns if not turn.trajectory.completeness.from_logs]
    if not rooted:
        return turns[-1].close_reason, True
    return next((reason for reason in rooted if reason is not CloseReason.ROOT_ENDED), CloseReason.ROOT_ENDED), False


def _all_seen(seen: Sequence[Completeness], *, from_logs: bool, begin_unseen: bool) -> Completeness:
    def total(name: str) -> int:
        return sum(getattr(each, name) for each in seen)

    return Completeness(
        root_seen=all(each.root_seen for each in seen),
        from_logs=from_logs,
        parents_missing=total("parents_missing"),
        truncated=any(each.truncated for each in seen),
        spans_missing=total("spans_missing"),
        spans_refused=total("spans_refused"),
        spans_dropped=total("spans_dropped"),
        content_elsewhere=any(each.content_elsewhere for each in seen),
        masked=any(each.masked for each in seen),
        paused=seen[-1].paused,
        resumed=seen[0].resumed,
        begin_unseen=begin_unseen,
        uncertain=seen[0].uncertain,
        between_unseen=any(each.between_unseen for each in seen),
        may_pause=seen[-1].may_pause,
        may_continue=seen[0].may_continue,
    )


def _row(value: Any, left_out: Collection[str] = ()) -> Mapping[str, Any]:
    """Return the fields of a call, or the like, that differ from their defaults."""
    return {
        field.name: found
        for field in dataclasses.fields(value)
        if field.name not in left_out and (found := getattr(value, field.name)) is not field.default
    }


def _call(row: Mapping[str, Any]) -> ToolCall:
    span_id = row.get("span_id")
    return ToolCall(**{**row, "span_id": None if span_id is None else bytes.fromhex(span_id)})
