"""JSON Schemas that are learned from recorded arguments."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from string import ascii_letters
from typing import Any, Final, NamedTuple

from spanscore.compare.differences import type_name
from spanscore.compare.matching import json_key
from spanscore.messages.plural import plural
from spanscore.model import JSON
from spanscore.runs.learn.evidence import (
    MANY,
    Noted,
    above,
    below,
    is_complete,
    is_enumeration,
    rounded_down,
    rounded_up,
)
from spanscore.trajectories.masked import has_mark

_FEW: Final = 5
"""In fewer runs nothing is seen but the types."""
_ROOM: Final = 0.25
"""The least distance of a limit from the number that it bounds, as a share of that number."""
_EXTREME: Final = 1e300
"""Numbers above it, or below its reciprocal, are marks such as the largest double: they get no limits."""
_DEEPEST: Final = 6
"""Values nested deeper are described by their types alone."""
_WORD: Final = 40
"""A value of an enumeration is no longer."""
_TIME: Final = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_FORMATS: Final[Mapping[str, str]] = {
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "date-time": rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_TIME}",
    "time": _TIME,
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "email": r"[^@\s]+@[^@\s]+[.][^@\s]+",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+",
}
_PIECES: Final = re.compile(r"[^\W_]+|.", re.DOTALL)
_CLASSES: Final[Sequence[tuple[str, Callable[[str], bool]]]] = (
    ("[0-9]", str.isdecimal),
    ("[0-9a-f]", lambda text: all(each in "0123456789abcdef" for each in text)),
    ("[a-z]", lambda text: text.isalpha() and text.islower()),
    ("[A-Z]", lambda text: text.isalpha() and text.isupper()),
    ("[a-z0-9]", lambda text: text == text.lower()),
    ("[A-Z0-9]", lambda text: text == text.upper()),
    ("[A-Za-z0-9]", str.isalnum),
)
_SPECIAL: Final = re.compile(r"[][.^$*+?{}()|\\]")
_LONGEST_EMAIL: Final = 320
"""64 characters, an @ and 255 more, by RFC 5321."""
_LONGEST: Final = 80
"""An id is no longer."""


class SeenValue(NamedTuple):
    """A value that was seen, and in which run."""

    run: int
    value: JSON


def schema_of(values: Sequence[SeenValue], depth: int = 0) -> dict[str, Any]:
    """Return the JSON Schema that values have in common, with notes; of masked values that of any value.

    There is at least one value. Below the deepest of the levels that are described, only types are.
    """
    if any(has_mark(each.value) for each in values):
        return {}
    by_type: dict[str, list[SeenValue]] = defaultdict(list)
    for each in values:
        by_type[_type_of(each.value)].append(each)
    types = _types(by_type)
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    runs = len({each.run for each in values})
    if runs < _FEW or depth >= _DEEPEST:
        return schema
    if fixed := _fixed(values, runs):
        return schema | fixed
    if numbers := [each for kind in ("integer", "number") for each in by_type.get(kind, ())]:
        schema |= _range(numbers)
    if texts := by_type.get("string"):
        schema |= _text([str(each.value) for each in texts], len({each.run for each in texts}))
    if arrays := by_type.get("array"):
        schema |= _array(arrays, depth)
    if objects := by_type.get("object"):
        schema |= _object(objects, depth)
    return schema


def _types(by_type: Mapping[str, Sequence[SeenValue]]) -> list[str]:
    """Return the types; a few whole numbers may be numbers that happened to be whole."""
    types = sorted(by_type)
    if "number" in types and "integer" in types:
        types.remove("integer")
    elif "integer" in types and len({each.run for each in by_type["integer"]}) < MANY:
        types[types.index("integer")] = "number"
    return types


def _fixed(values: Sequence[SeenValue], runs: int) -> dict[str, Any]:
    """Return the one value, or the few, that there are; nothing where there are others."""
    seen = _runs_of(values)
    distinct = {key: each.value for each in values for key in [json_key(each.value)]}
    if len(distinct) == 1 and runs >= MANY and not isinstance(values[0].value, (list, Mapping)):
        return {"const": values[0].value}
    if len(distinct) == 1 or not all(_is_word(value) for value in distinct.values()):
        return {}
    if not any(isinstance(value, str) for value in distinct.values()) or not is_enumeration(seen, runs):
        return {}
    return {"enum": sorted(distinct.values(), key=lambda value: (value is None, str(value)))}


def _is_word(value: JSON) -> bool:
    if isinstance(value, str):
        return len(value) <= _WORD
    return value is None or isinstance(value, (bool, int, float))


def _range(numbers: Sequence[SeenValue]) -> dict[str, Any]:
    drawn = [each.value for each in numbers if isinstance(each.value, (int, float))]
    if not all(map(_is_moderate, drawn)):
        return {}
    values = sorted(set(drawn))
    if len(values) > 1 and is_enumeration(_runs_of(numbers), len({each.run for each in numbers})):
        step = min(later - earlier for earlier, later in pairwise(values))  # there may be one more on each side
        low, high = values[0] - step, values[-1] + step
    else:
        low = rounded_down(min(below(drawn), values[0] - _ROOM * abs(values[0])))
        high = rounded_up(max(above(drawn), values[-1] + _ROOM * abs(values[-1])))
    if all(float(value).is_integer() for value in values):
        low, high = math.floor(low), math.ceil(high)
    if values[0] >= 0 > low:  # what never was negative is an amount or a count
        low = 0
    return {"minimum": low, "maximum": high}


def _is_moderate(number: float) -> bool:
    return not number or 1 / _EXTREME <= abs(number) <= _EXTREME


def _text(texts: Sequence[str], runs: int) -> dict[str, Any]:
    shape = shape_of(texts) if runs >= MANY and len(set(texts)) > 1 else {}
    return dict(shape) or ({"minLength": 1} if all(texts) else {})


def _array(arrays: Sequence[SeenValue], depth: int) -> dict[str, Any]:
    lengths = [len(each.value) for each in arrays if isinstance(each.value, list)]
    items = [SeenValue(each.run, item) for each in arrays if isinstance(each.value, list) for item in each.value]
    schema: dict[str, Any] = {"items": schema_of(items, depth + 1)} if items else {}
    if min(lengths):
        schema["minItems"] = 1
    return schema | {"maxItems": max(1, int(above(lengths)) + 1)}


def _object(objects: Sequence[SeenValue], depth: int) -> dict[str, Any]:
    by_name: dict[str, list[SeenValue]] = defaultdict(list)
    for each in objects:
        if isinstance(each.value, Mapping):
            for name, value in each.value.items():
                by_name[name].append(SeenValue(each.run, value))
    runs = len({each.run for each in objects})
    seen = {name: len({each.run for each in values}) for name, values in by_name.items()}
    if not is_complete(seen) and len(seen) > runs // 2:  # its names are data themselves
        return {}
    properties = {
        name: Noted(schema_of(values, depth + 1), _note(values, len(objects))) for name, values in by_name.items()
    }
    schema: dict[str, Any] = {"properties": properties} if properties else {}
    if required := [name for name, values in by_name.items() if len(values) == len(objects)]:
        schema["required"] = required
    if runs >= MANY and is_complete(seen):
        schema["additionalProperties"] = False
    return schema


def _note(values: Sequence[SeenValue], calls: int) -> str:
    distinct = len(_runs_of(values))
    seen = "always the same" if distinct == 1 else f"{distinct} values"
    numbers = [each.value for each in values if isinstance(each.value, (int, float))]
    are_numbers = len(numbers) == len(values) and not any(isinstance(each, bool) for each in numbers)
    if are_numbers and all(map(_is_moderate, numbers)):
        seen = f"{min(numbers):g} to {max(numbers):g}" if distinct > 1 else f"always {numbers[0]:g}"
    return f"in {len(values)} of {plural(calls, 'call')}, {seen}"


def _runs_of(values: Iterable[SeenValue]) -> Mapping[Hashable, int]:
    """Return in how many runs each value was seen: in one run, a value is handed on from call to call."""
    pairs = {(json_key(each.value), each.run) for each in values}
    return Counter(key for key, _ in pairs)


def _type_of(value: JSON) -> str:
    name = type_name(value) or "object"
    is_whole = name == "number" and not (isinstance(value, float) and not value.is_integer())
    return "integer" if is_whole else name


def shape_of(texts: Sequence[str]) -> Mapping[str, JSON]:
    """Return the keywords of a JSON Schema for the form of texts: `format` and `pattern`, or none.

    `format` says it to people; the pattern, of RE2, is what is checked.
    """
    for name, pattern in _FORMATS.items():
        if name == "email" and max(map(len, texts)) > _LONGEST_EMAIL:  # matching takes the square of the length
            continue
        if all(re.fullmatch(pattern, text) for text in texts):
            return {"format": name, "pattern": f"^{pattern}$"}
    found = _id_pattern(texts)
    return {} if found is None else {"pattern": f"^{found}$"}


def _id_pattern(texts: Sequence[str]) -> str | None:
    """Return the pattern of ids: texts of the same pieces, of which one always has a digit in it."""
    if not all(text.isascii() and text.isprintable() and 0 < len(text) <= _LONGEST for text in texts):
        return None
    if any(" " in text for text in texts):
        return None
    split = [_PIECES.findall(text) for text in texts]
    if len(set(map(len, split))) > 1:
        return None
    if not any(all(map(_has_digit, pieces)) for pieces in zip(*split, strict=True)):
        return None
    patterns = [_piece(pieces) for pieces in zip(*split, strict=True)]
    return None if None in patterns else "".join(each for each in patterns if each is not None)


def _piece(texts: Sequence[str]) -> str | None:
    """Return the pattern of one piece of all ids; None where it has no form."""
    if len(set(texts)) == 1:
        return _SPECIAL.sub(r"\\\g<0>", texts[0])
    if not all(text.isalnum() for text in texts):
        return None
    prefix = _letters_before(texts)
    rest = [text[len(prefix) :] for text in texts]
    kind = next(pattern for pattern, holds in _CLASSES if all(map(holds, rest)))
    if len({len(text) for text in rest}) == 1:
        return f"{prefix}{kind}{{{len(rest[0])}}}"
    return f"{prefix}{kind}+" if all(map(_has_digit, texts)) else None


def _has_digit(text: str) -> bool:
    return any(each.isdecimal() for each in text)


def _letters_before(texts: Sequence[str]) -> str:
    """Return the common letters before a number in all texts; None if another character follows them."""
    first = texts[0]
    prefix = first[: len(first) - len(first.lstrip(ascii_letters))]
    return prefix if all(text.startswith(prefix) and text[len(prefix) :].isdecimal() for text in texts) else ""
