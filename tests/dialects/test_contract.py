from __future__ import annotations

import pytest

from dialects.spans import span
from spanscore.contracts import plugins
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
