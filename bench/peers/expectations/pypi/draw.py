"""Draws runs and expectations, by a seed. Needs nothing but Python: the peers' own environments import it."""

from __future__ import annotations

import importlib.metadata
import json
import random
import sys
from typing import Any

SEED = 20261123
TOOLS = ("search_web", "lookup_order", "check_policy", "issue_refund", "send_mail")
KEYS = ("query", "limit", "order", "amount", "tags", "to")
_VALUES: tuple[Any, ...] = ("a", "b", "", 0, 1, 2, 1.5, -3, True, False, None, [], ["x"], ["x", "y"], {}, {"c": 1})


class Draw(random.Random):
    """Draws."""

    def chance(self, likelihood: float) -> bool:
        """Return true so often."""
        return self.random() < likelihood

    def names(self, least: int, most: int, tools: tuple[str, ...] = TOOLS) -> list[str]:
        """Return names of tools, some more than once."""
        return [self.choice(tools) for _ in range(self.randint(least, most))]

    def value(self, depth: int = 0) -> Any:
        """Return a JSON value."""
        if depth < 2 and self.chance(0.25):
            return (
                self.args(depth + 1) if self.chance(0.6) else [self.value(depth + 1) for _ in range(self.randint(1, 3))]
            )
        return self.choice(_VALUES)

    def args(self, depth: int = 0) -> dict[str, Any]:
        """Return the arguments of a call."""
        return {key: self.value(depth) for key in self.sample(KEYS, self.randint(0, 3))}

    def calls(self, least: int, most: int) -> list[dict[str, Any]]:
        """Return calls; those of one tool are often the same, or nearly."""
        made: list[dict[str, Any]] = []
        for name in self.names(least, most):
            alike = [call for call in made if call["name"] == name]
            args = self.near_args(self.choice(alike)["arguments"]) if alike and self.chance(0.7) else self.args()
            made.append({"name": name, "arguments": args})
        return made

    def near_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the same arguments, or some that differ in one of them."""
        near = dict(args)
        what = self.random()
        if what < 0.25 and near:
            near[self.choice(sorted(near))] = self.value()
        elif what < 0.4 and near:
            del near[self.choice(sorted(near))]
        elif what < 0.55:
            near[self.choice(KEYS)] = self.value()
        return near

    def near(self, items: list[Any], change: Any = None) -> list[Any]:
        """Return the same items, or with one left out, added, twice, moved, or changed."""
        near = list(items)
        for _ in range(self.choice((0, 0, 0, 1, 1, 2))):
            what = self.randrange(5)
            place = self.randrange(len(near)) if near else 0
            if what == 0 and near:
                del near[place]
            elif what == 1 and items:
                near.insert(place, self.choice(items))
            elif what == 2 and len(near) > 1:
                near.insert(self.randrange(len(near)), near.pop(place))
            elif what == 3:
                self.shuffle(near)
            elif near and change is not None:
                near[place] = change(near[place])
        return near

    def near_calls(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return nearly the same calls."""

        def changed(call: dict[str, Any]) -> dict[str, Any]:
            if self.chance(0.2):
                return {**call, "name": self.choice(TOOLS)}
            return {**call, "arguments": self.near_args(call["arguments"])}

        return self.near(calls, changed)


def write(peer: str, rows: list[dict[str, Any]]) -> None:
    """Print what a peer said: a head with its version, and the rows."""
    head = {"peer": peer, "version": importlib.metadata.version(peer), "rows": len(rows)}
    sys.stdout.writelines(json.dumps(line) + "\n" for line in (head, *rows))
