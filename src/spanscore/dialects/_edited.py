"""Calls that a person has edited, as LangChain tells the model: its message keeps the call that it asked for."""

from __future__ import annotations

import json
from typing import Final

from spanscore.contracts import CallReading
from spanscore.dialects import _content as content
from spanscore.model import NOT_RECORDED, changed

_NOTE: Final = "Note: a human reviewer replaced this tool call before it ran. "
_EXECUTED: Final = " Executed instead: "
_WITH: Final = " with arguments "
_RESPONSE: Final = "\n\nTool response:\n"


def edited(answer: CallReading) -> CallReading:
    """Return an answer with the name and the arguments of the call that was made, if its result begins with the note.

    `HumanInTheLoopMiddleware` writes the note before the result (recorded with langchain 1.5.2).
    """
    told = answer.result
    if not isinstance(told, str) or not told.startswith(_NOTE):
        return answer
    name, _, others = told.partition(_EXECUTED)[2].partition(_WITH)
    try:
        _, end = json.JSONDecoder().raw_decode(others)
    except (ValueError, RecursionError):
        return answer
    arguments = content.arguments(others[:end])  # that decoder lets values through that are no JSON
    dot, _, result = others[end:].partition(_RESPONSE)
    if dot != "." or arguments is NOT_RECORDED:
        return answer
    return changed(answer, name=name, arguments=arguments, result=content.reparsed(result))
