"""All problems of a configuration as one error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spanscore.config._nodes import Node, Place, Problem, dotted
from spanscore.errors import ConfigError

_MOST_SHOWN: Final = 100


def first_causes(problems: Iterable[Problem], unread: Sequence[Problem], root: Node) -> Iterator[Problem]:
    """Yield the problems without those of a section as a whole, if they may only follow from an unread part of it."""
    above = {each.path[:end] for each in unread for end in range(1, len(each.path))}
    for each in problems:
        is_whole = each.path in above and not each.elsewhere and each.place == root.find(each.path).place
        if each in unread or not is_whole:
            yield each


def one_error(problems: list[Problem], source: str) -> ConfigError:
    """Make one error of all problems, in the order of the file. A second one at a place only follows from the first."""
    told: dict[tuple[Place, str], str] = {}
    for each in sorted(problems, key=lambda each: each.place):
        at = each.elsewhere or f"{source}:{each.place.line}:{each.place.column}"
        path = f" {dotted(each.path)}" if each.path else ""
        told.setdefault((each.place, f"{at}{path}"), f"{at}{path}: {each.message}")
    lines = list(dict.fromkeys(told.values()))  # several evaluators may use one dataset
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return ConfigError("\n".join([*lines[:_MOST_SHOWN], *more]))
