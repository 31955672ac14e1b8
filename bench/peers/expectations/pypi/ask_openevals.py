"""Asks openevals what its trajectory matches say of runs. Runs in its environment."""

from __future__ import annotations

import json
from typing import Any

from draw import SEED, Draw, write
from openevals.trajectory.match import create_trajectory_match_evaluator

MODES = ("strict", "unordered", "subset", "superset")
ARGS_MODES = ("exact", "ignore", "subset", "superset")


def messages(turns: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a conversation: what the user says, the calls of each turn with their results, and a last answer."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in turns:
        listed = [
            {
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
                "id": f"{len(said)}-{index}",
            }
            for index, call in enumerate(turn)
        ]
        said.append({"role": "assistant", "content": "", "tool_calls": listed})
        said.append({"role": "tool", "content": "done", "tool_call_id": f"{len(said) - 1}-0"})
    return [*said, {"role": "assistant", "content": "done"}]


def asked(family: str, expectation: dict[str, Any], turns: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a row."""
    options = {key: value for key, value in expectation.items() if key != "turns"}
    evaluate = create_trajectory_match_evaluator(**options)
    result = evaluate(outputs=messages(turns), reference_outputs=messages(expectation["turns"]))
    calls = [{**call, "turn": number} for number, turn in enumerate(turns) for call in turn]
    return {"family": family, "expectation": expectation, "run": {"calls": calls}, "verdict": bool(result["score"])}


def in_turns(draw: Draw, calls: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return calls in turns of one or more."""
    turns: list[list[dict[str, Any]]] = []
    for call in calls:
        if turns and draw.chance(0.4):
            turns[-1].append(call)
        else:
            turns.append([call])
    return turns


draw = Draw(SEED)
rows = []
for mode in MODES:
    for args_mode in ARGS_MODES:
        for _ in range(26):
            calls = draw.calls(0, 6)
            made = draw.near_calls(calls)
            turns = in_turns(draw, calls)
            sizes = [len(turn) for turn in turns]
            # The same turns as far as the calls go, so that strict ones match now and then.
            same = [[made.pop(0) for _ in range(min(size, len(made)))] for size in sizes if made]
            same += [[call] for call in made]
            expectation = {"trajectory_match_mode": mode, "tool_args_match_mode": args_mode, "turns": turns}
            rows.append(asked("drawn", expectation, same))
for mode in MODES:
    for _ in range(30):
        calls = draw.calls(1, 5)
        overrides: dict[str, Any] = {}
        for name in sorted({call["name"] for call in calls}):
            if draw.chance(0.7):
                overrides[name] = draw.choice(
                    ["ignore", "exact", "subset", "superset", ["query"], ["order", "amount"], ["tags.c"]]
                )
        expectation = {
            "trajectory_match_mode": mode,
            "tool_args_match_mode": draw.choice(ARGS_MODES),
            "tool_args_match_overrides": overrides,
            "turns": [[call] for call in calls],
        }
        rows.append(asked("overrides", expectation, [[call] for call in draw.near_calls(calls)]))
call = {"name": "search_web", "arguments": {"q": 1}}
mail = {"name": "send_mail", "arguments": {}}
for mode in MODES:
    for expected, made in (
        ([], []), ([[call]], []), ([], [[call]]), ([[call], [call]], [[call]]), ([[call]], [[call], [call]]),
        ([[call, mail]], [[mail, call]]), ([[call, mail]], [[call], [mail]]), ([[call], [mail]], [[mail], [call]]),
        ([[call], [mail]], [[call, mail]]),
    ):  # fmt: skip
        rows.append(asked("edges", {"trajectory_match_mode": mode, "turns": expected}, made))
    yes = {"name": "search_web", "arguments": {"q": True}}
    rows.append(
        {**asked("differs", {"trajectory_match_mode": mode, "turns": [[yes]]}, [[call]]), "kind": "truth is no number"}
    )
write("openevals", rows)
