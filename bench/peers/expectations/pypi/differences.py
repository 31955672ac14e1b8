"""Where spanscore says something else than a peer from PyPI, on purpose, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from bench.peers.expectations.peer import Peer
from bench.peers.expectations.verdicts import Said

TRUTH: Final = "truth is no number"
GREEDY: Final = "greedy"
SETS: Final = "sets"
TEXT: Final = "text is no number"

_TRUTH: Final = "To Python, True and 1 are equal. In JSON, and here, they are not."

DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "google-adk": {TRUTH: _TRUTH},
    "openevals": {
        TRUTH: _TRUTH,
        GREEDY: "openevals gives a call to the first that it fits, and does not take it back where another needs it. "
        "Here the steps are aligned so that as few calls as possible deviate.",
    },
    "pydantic-evals": {TRUTH: _TRUTH},
    "deepeval": {TEXT: "DeepEval compares arguments as text, so that 1 and '1' are the same."},
    "mlflow": {SETS: "MLflow compares sets: a call that was made twice in place of another is not noticed."},
}
"""By peer and kind."""


def kind(peer: Peer, row: Mapping[str, Any], found: Said) -> str | None:
    """Return of which kind a difference is that random expectations came upon; None where that is not known."""
    if TRUTH in peer.differences and not peer.differs(_with_numbers(row)):
        return TRUTH
    if peer.name == "openevals" and found.verdict and not row["verdict"]:
        return GREEDY
    if peer.name == "mlflow" and row["verdict"] and not row["expectation"]["should_consider_ordering"]:
        made, expected = row["run"]["calls"], row["expectation"]["expected_tool_calls"]
        return SETS if Counter(map(repr, made)) != Counter(map(repr, expected)) else None
    return None


def _with_numbers(value: Any, *, are_arguments: bool = False) -> Any:
    """Return a row with 1 and 0 for true and false in arguments; elsewhere they are not compared."""
    if isinstance(value, Mapping):
        return {
            key: _with_numbers(item, are_arguments=are_arguments or key in _ARGUMENTS) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with_numbers(item, are_arguments=are_arguments) for item in value]
    return int(value) if are_arguments and isinstance(value, bool) else value


_ARGUMENTS: Final = frozenset({"arguments", "expected_arguments"})
