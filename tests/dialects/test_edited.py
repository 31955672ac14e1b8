"""Calls that a person has edited, as LangChain tells the model."""

from __future__ import annotations

import json

import pytest

from spanscore.contracts import CallReading
from spanscore.dialects._edited import edited

NOTE = (
    "Note: a human reviewer replaced this tool call before it ran. Executed instead: refund with arguments {}."
    "\n\nTool response:\nok"
)


@pytest.mark.parametrize("arguments", ['{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud83d"}', '{"a": Infinity}'])
def test_arguments_are_json(arguments: str) -> None:
    """Python's decoder takes more: what is no JSON is not recorded, or is a text that can be written."""
    made = edited(CallReading(name="asked", arguments={"a": 1}, result=NOTE.format(arguments), call_id="c1"))

    json.dumps(made.arguments, allow_nan=False, ensure_ascii=False).encode()
