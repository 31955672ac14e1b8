"""What an argument of a tool may be: how it is drawn, and what would be wrong of it.

A value is drawn with a memory of the run, so that what is said once, such as an order's number, is the same in each
call. `path` is the way to a value inside of arguments: keys of objects and positions in arrays.
"""

# ruff: noqa: D102 - the protocol documents the methods
from __future__ import annotations

import math
import random
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from campaigns.learned_agents.words import CITIES, NAMES, WORDS

Memory = dict[str, Any]
"""What a run has said so far, by name, and under `TOOLS` the names of the tools that it calls."""
TOOLS: Final = "tools"
Path = tuple[str | int, ...]


class Value(Protocol):
    """What a value may be."""

    def draw(self, chance: random.Random, memory: Memory) -> Any: ...

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        ...


@dataclass(frozen=True)
class Number:
    """A number between two others, both included; many are small and few are large."""

    lowest: float
    highest: float
    decimals: int = 0

    def draw(self, chance: random.Random, memory: Memory) -> float:
        width = self.highest - self.lowest
        drawn = round(self.lowest + width * chance.betavariate(1.2, 1.8), self.decimals)
        return int(drawn) if drawn == int(drawn) else drawn  # as JavaScript writes it

    def holds(self, value: Any) -> bool:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and self.lowest <= value <= self.highest and (self.decimals > 0 or value == int(value))

    def far(self, chance: random.Random, value: float) -> float:
        """Return a number that is far outside: ten times the largest, or the same with a minus where none has one."""
        if self.lowest >= 0 < value and chance.random() < 1 / 2:
            return -value
        return self.highest * 10


@dataclass(frozen=True)
class OneOf:
    """One of a closed list; `new` are those that it might get one day."""

    values: tuple[str, ...]
    new: tuple[str, ...]

    def draw(self, chance: random.Random, memory: Memory) -> str:
        return chance.choice(self.values)

    def holds(self, value: Any) -> bool:
        return value in self.values


@dataclass(frozen=True)
class ByWay(OneOf):
    """One of a closed list: that which stands beside the tool by which the run goes on."""

    tools: tuple[str, ...]

    def draw(self, chance: random.Random, memory: Memory) -> str:
        on_its_way = [value for value, tool in zip(self.values, self.tools, strict=True) if tool in memory[TOOLS]]
        return on_its_way[0] if on_its_way else super().draw(chance, memory)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    share: float = 0.5

    def draw(self, chance: random.Random, memory: Memory) -> bool:
        return chance.random() < self.share

    def holds(self, value: Any) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True)
class Formed:
    """A text of one form: `#` is a digit, `@` a capital letter, `%` a hexadecimal digit."""

    form: str

    def draw(self, chance: random.Random, memory: Memory) -> str:
        kinds = {"#": string.digits, "@": string.ascii_uppercase, "%": "0123456789abcdef"}
        return "".join(chance.choice(kinds[each]) if each in kinds else each for each in self.form)

    def holds(self, value: Any) -> bool:
        kinds = {"#": "[0-9]", "@": "[A-Z]", "%": "[0-9a-f]"}
        pattern = "".join(kinds.get(each, re.escape(each)) for each in self.form)
        return isinstance(value, str) and re.fullmatch(pattern, value) is not None


@dataclass(frozen=True)
class Date:
    """A day of two years, with a time of the day if wanted."""

    time: bool = False

    def draw(self, chance: random.Random, memory: Memory) -> str:
        day = f"{chance.choice((2026, 2027))}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        return f"{day}T{chance.randrange(24):02}:{chance.randrange(60):02}:00Z" if self.time else day

    def holds(self, value: Any) -> bool:
        pattern = r"202[67]-\d\d-\d\d" + (r"T\d\d:\d\d:00Z" if self.time else "")
        return isinstance(value, str) and re.fullmatch(pattern, value) is not None


@dataclass(frozen=True)
class Text:
    """Words as people write them."""

    fewest: int = 2
    most: int = 12

    def draw(self, chance: random.Random, memory: Memory) -> str:
        text = " ".join(chance.choices(WORDS, k=chance.randint(self.fewest, self.most)))
        return text.capitalize() + chance.choice(("", ".", "?", " 24/7", " (2nd)"))

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value)


@dataclass(frozen=True)
class Email:
    """An address of somebody."""

    def draw(self, chance: random.Random, memory: Memory) -> str:
        number = chance.choice(("", str(chance.randrange(100))))
        return f"{chance.choice(NAMES)}{number}@{chance.choice(('example.com', 'mail.example.org', 'example.net'))}"

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and re.fullmatch(r"[a-z]+\d*@[a-z.]+", value) is not None


@dataclass(frozen=True)
class City:
    """One of many: no closed list."""

    def draw(self, chance: random.Random, memory: Memory) -> str:
        return chance.choice(CITIES)

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value)


@dataclass(frozen=True)
class Sql:
    """A query as a model writes it."""

    def draw(self, chance: random.Random, memory: Memory) -> str:
        columns = ", ".join(chance.sample(("region", "amount", "customer_id", "created_at"), chance.randint(1, 3)))
        query = f"SELECT {columns} FROM {chance.choice(('orders', 'invoices', 'refunds'))}"
        if chance.random() < 2 / 3:
            query += f" WHERE created_at >= '{Date().draw(chance, memory)}'"
        return query + chance.choice(("", ";", f" LIMIT {chance.choice((10, 50, 100))}", "\nORDER BY amount DESC"))

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and value.startswith("SELECT ")


@dataclass(frozen=True)
class Said:
    """The same in each call of a run that says it."""

    name: str
    value: Value

    def draw(self, chance: random.Random, memory: Memory) -> Any:
        if self.name not in memory:
            memory[self.name] = self.value.draw(chance, memory)
        return memory[self.name]

    def holds(self, value: Any) -> bool:
        return self.value.holds(value)


@dataclass(frozen=True)
class Sometimes:
    """A member of an object that is there in a share of the calls."""

    value: Value
    share: float = 0.5

    def draw(self, chance: random.Random, memory: Memory) -> Any:
        return self.value.draw(chance, memory)

    def holds(self, value: Any) -> bool:
        return self.value.holds(value)


@dataclass(frozen=True)
class Items:
    """An array."""

    value: Value
    fewest: int = 1
    most: int = 4

    def draw(self, chance: random.Random, memory: Memory) -> list[Any]:
        return [self.value.draw(chance, memory) for _ in range(chance.randint(self.fewest, self.most))]

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and self.fewest <= len(value) <= self.most and all(map(self.value.holds, value))


@dataclass(frozen=True)
class Members:
    """An object; the arguments of a tool are one."""

    members: Mapping[str, Value] = field(default_factory=dict)

    def draw(self, chance: random.Random, memory: Memory) -> dict[str, Any]:
        there = (
            (key, value)
            for key, value in self.members.items()
            if not isinstance(value, Sometimes) or chance.random() < value.share
        )
        return {key: value.draw(chance, memory) for key, value in there}

    def holds(self, value: Any) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() <= self.members.keys()
            and all(
                self.members[key].holds(value[key]) if key in value else isinstance(self.members[key], Sometimes)
                for key in self.members
            )
        )


def places(allowed: Value, value: Any, path: Path = ()) -> Iterator[tuple[Path, Value, Any]]:
    """Yield each value inside of another, with what it may be."""
    while isinstance(allowed, (Said, Sometimes)):
        allowed = allowed.value
    if path:
        yield path, allowed, value
    if isinstance(allowed, Members):
        for key, each in value.items():
            yield from places(allowed.members[key], each, (*path, key))
    elif isinstance(allowed, Items):
        for index, each in enumerate(value):
            yield from places(allowed.value, each, (*path, index))


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Return the same with another value at one place."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [replaced(each, tuple(rest), new) if index == first else each for index, each in enumerate(value)]
    return {key: replaced(each, tuple(rest), new) if key == first else each for key, each in value.items()}


def of_another_type(chance: random.Random, value: Any) -> Any:
    """Return a value of another type of JSON, as a model might write it by mistake."""
    match value:
        case bool():
            return chance.choice(("yes" if value else "no", str(value).lower(), None))
        case int() | float():
            return chance.choice((str(value), f"about {math.floor(value)}", [value], {"value": value}, None))
        case str():
            return chance.choice((chance.randrange(1_000), [value], {"value": value}, True, None))
        case list():
            return chance.choice((", ".join(map(str, value)), {"items": value}, None))
        case _:
            return chance.choice((str(value), [value], None))
