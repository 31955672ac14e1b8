"""Objects that Python printed with `repr`, as `ToolCall(name='x', arguments={...})`; shared by dialects."""

from __future__ import annotations

import ast
import re
from typing import Final

from spanscore.dialects import _content as content
from spanscore.model import JSON, NOT_RECORDED, Recorded

_ENUM: Final = re.compile(r"<[A-Za-z_][\w.]*: ('[^'\\]*'|\d+)>")


def printed(value: str) -> Recorded:
    """Return printed objects as JSON: their fields by name, members of enumerations as their values.

    NOT_RECORDED when the text is anything else, or was cut.
    """
    if not content.is_parsable(value):
        return NOT_RECORDED
    try:
        return _json(ast.parse(_ENUM.sub(r"\1", value.strip()), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return NOT_RECORDED


def _json(node: ast.expr) -> JSON:
    match node:
        case ast.Call(args=[], keywords=fields):
            return {field.arg: _json(field.value) for field in fields if field.arg}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_json(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {str(_json(key)): _json(item) for key, item in zip(keys, values, strict=True) if key}
    try:
        return content.plain(ast.literal_eval(node))
    except ValueError:  # a date, an id: as it was printed
        return ast.unparse(node)
