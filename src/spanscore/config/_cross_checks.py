"""Problems of sections that do not fit to other sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from spanscore.config._nodes import Node, Problem
from spanscore.config._nodes import Path as KeyPath
from spanscore.config._sections import Document
from spanscore.contracts import Dialect
from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion
from spanscore.scoring.keep.settings import KeepSettings, values_of
from spanscore.scoring.monitors.settings import MonitorSettings
from spanscore.trajectories.masks import Masks
from spanscore.trajectories.wanted import wanted_attributes

_NEEDS_SECTION: Final = (
    "'conversation' needs the section conversations, which names the turns of one: "
    "conversations: {key: [gen_ai.conversation.id]}"
)
_NOT_WITH_KAFKA: Final = (
    "cannot be used with receivers.kafka, whose partitions go by trace: several members may read the turns of one "
    "conversation"
)


def cross_problems(root: Node, document: Document | None, dialects: Sequence[Dialect]) -> Iterator[Problem]:
    """Yield the problems between sections.

    The document is None if the configuration cannot be read.
    """
    yield from _conversation_problems(root)
    yield from _monitor_problems(root)
    if document is not None:
        if document.content.mask:
            yield from _mask_problems(
                document.content.mask, wanted_attributes(dialects, model_calls=True).patterns, root
            )
            yield from _masked_keys(document.content.mask, document.monitors, root)
        yield from _keep_problems(root, document.keep)


def _conversation_problems(root: Node) -> Iterator[Problem]:
    """Yield the problems of evaluators over conversations, and of receivers that cannot have any."""
    if root.has("conversations"):
        if "kafka" in root.mapping("receivers"):
            section: KeyPath = ("conversations",)
            yield Problem(root.key_place(section), section, _NOT_WITH_KAFKA)
        return
    for name in root.mapping("evaluators"):
        at: KeyPath = ("evaluators", name, "over")
        if root.find(at[:2]).has("over") and root.find(at).value == "conversation":
            yield Problem(root.find(at).place, at, _NEEDS_SECTION)


def _mask_problems(masks: Sequence[str], read: Iterable[str], root: Node) -> Iterator[Problem]:
    for index, mask in enumerate(masks):
        try:
            Masks([mask], b"", read)
        except InputError as error:
            at: KeyPath = ("content", "mask", index)
            yield Problem(root.find(at).place, at, str(error))


def _masked_keys(masks: Sequence[str], monitors: Mapping[str, MonitorSettings], root: Node) -> Iterator[Problem]:
    """Yield the attributes of monitors that a mask replaces: their values would be names of series, or match nothing.

    Marks are others after each start, so that no series by them would be found again.
    """
    for name, monitor in monitors.items():
        keys: dict[KeyPath, str] = {("by", index): key for index, key in enumerate(monitor.by)}
        keys |= {(section, key): key for section in ("new", "stable") for key in getattr(monitor, section)}
        for below, key in keys.items():
            if mask := next((each for each in masks if _is_masked(key, each)), None):
                at: KeyPath = ("monitors", name, *below)
                yield Problem(
                    root.key_place(at), at, f"{key!r} is masked by {mask!r} of content.mask: take another attribute"
                )


def _is_masked(key: str, mask: str) -> bool:
    try:
        _, is_masked = Masks([mask], b"").below((), key)
    except InputError:
        return False
    return is_masked


def _keep_problems(root: Node, keep: KeepSettings | None) -> Iterator[Problem]:
    """Yield the problems of rules that are never reached, or about the score of an evaluator that is not there."""
    evaluators = root.mapping("evaluators")
    decides_all: str | None = None
    for index, rule in enumerate(() if keep is None else keep.rules):
        if decides_all is not None:
            place: KeyPath = ("keep", "rules", index)
            yield Problem(
                root.find(place).place, place, f"is never reached, as rule {decides_all!r} matches every trace"
            )
        elif not values_of(rule):
            decides_all = rule.name
        name = rule.when.score
        if name is None:
            continue
        over = root.find(("evaluators", name, "over")).value
        if name not in evaluators or over == "conversation":
            at: KeyPath = ("keep", "rules", index, "when", "score")
            yield Problem(
                root.find(at).place, at, f"must be an evaluator of runs: {', '.join(evaluators)}; not {name!r}"
            )


def _monitor_problems(root: Node) -> Iterator[Problem]:
    """Yield the problems of the monitors' evaluators."""
    evaluators = root.mapping("evaluators")
    for name, monitor in root.mapping("monitors").items():
        for key in ("evaluator", "score"):
            at: KeyPath = ("monitors", name, "of", key)
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
    at: KeyPath = ("evaluators", evaluator, key)
    return root.find(at).value if root.find(at[:2]).has(key) else None
