"""The problems of monitors that name an evaluator which is not there, or does what they are about for no run."""

from __future__ import annotations

from collections.abc import Iterator

from spanscore.config._nodes import Node, Path, Problem
from spanscore.messages.nearest import suggestion


def monitor_problems(root: Node) -> Iterator[Problem]:
    """Yield the problems of the monitors' evaluators."""
    evaluators = root.mapping("evaluators")
    for name, monitor in root.mapping("monitors").items():
        for key in ("evaluator", "score"):
            at: Path = ("monitors", name, "of", key)
            if not (monitor.has("of") and root.find(at[:3]).has(key)):
                continue
            node = root.find(at)
            if isinstance(node.value, str) and (why := _problem(node.value, key, evaluators, root)):
                yield Problem(node.place, at, why)


def _problem(name: str, key: str, evaluators: dict[str, Node], root: Node) -> str:
    entry = evaluators.get(name)
    if entry is None:
        return f"there is no evaluator {name!r}{suggestion(name, evaluators)}"
    if _value(root, name, "over") == "conversation":
        return f"{name!r} evaluates conversations; monitors count runs"
    if key == "evaluator" and _value(root, name, "informational") is True:
        return f"{name!r} is informational and fails no run; monitor its score: {{score: {name}, below: 0.8}}"
    return ""


def _value(root: Node, evaluator: str, key: str) -> object:
    at: Path = ("evaluators", evaluator, key)
    return root.find(at).value if root.find(at[:2]).has(key) else None
