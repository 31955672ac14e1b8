from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from dialects.spans import span
from spanscore.contracts import (
    CallReading,
    CallRequest,
    ModelCallReading,
    ModelReading,
    Reading,
    SentMessage,
    plugins,
)
from spanscore.testing import check_dialect

EXAMPLES = {
    "google_adk": [span(1, "execute_tool book", {"gen_ai.tool.type": "FunctionTool"}, scope="gcp.vertex.agent")],
    "mastra": [span(1, "agent run", {"mastra.span.type": "agent_run"})],
    "strands": [span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"})],
}
"""Spans that some of a dialect's reading needs."""
NAMES = [name for name in plugins.names("dialects") if name != "custom"]


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_keeps_the_contract(name: str) -> None:
    """It never raises, changes nothing, and answers the same when asked again."""
    check_dialect(plugins.find("dialects", name)(), EXAMPLES.get(name, ()))


@pytest.mark.parametrize(
    "reading",
    [Reading(agent="a"), CallReading(), CallRequest(name="a"), SentMessage(), ModelReading(), ModelCallReading()],
)
def test_readings_are_frozen_dataclasses(reading: Any) -> None:
    """Dialects of others replace fields of ours, as of any dataclass."""
    name = dataclasses.fields(reading)[0].name
    other = dataclasses.replace(reading, **{name: "b"})

    assert ("b", reading) == (getattr(other, name), dataclasses.replace(reading))
    assert other == pickle.loads(pickle.dumps(copy.deepcopy(other))) != reading
    with pytest.raises(AttributeError):
        setattr(reading, name, "b")
    with pytest.raises(TypeError):
        type(reading)(nobody=1)
