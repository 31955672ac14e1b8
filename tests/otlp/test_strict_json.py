"""What the parser of JSON leaves behind; what it reads is tested with those that use it."""

from __future__ import annotations

import gc

import pytest

from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.strict_json import parse


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("end", ["]", ",NaN]", ""])
def test_garbage_is_collected_as_before(end: str, *, collects: bool) -> None:
    """While large JSON is parsed nothing is collected; then it is as it was, also where the JSON is broken."""
    try:
        if not collects:
            gc.disable()
        try:
            parse("[" + "1," * 600_000 + "1" + end)
        except MalformedRequest:
            assert "]" != end
        assert gc.isenabled() == collects
    finally:
        gc.enable()
