"""The campaign of renamed spans on ten recordings; it is a command of its own for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.load_balanced_cluster import NoCollectorError
from campaigns.normalised import by_rules, collector_program, differences, through, with_processor

pytestmark = pytest.mark.campaign

NAMES = (
    "crewai-oi",
    "langchain-0x-tl",
    "langchain-js-tl-wrapped",
    "langchain-oi",
    "llama-index-tl",
    "openai-agents-js-oi",
    "openinference-core-js",
    "smolagents-oi",
    "traceloop-sdk",
    "voltagent",
)


@pytest.mark.parametrize("removed", [False, True], ids=["originals kept", "originals removed"])
@pytest.mark.parametrize("gathered", [False, True], ids=["messages flat", "messages gathered"])
@pytest.mark.parametrize("name", NAMES)
def test_renamed_spans_are_read_as_they_were(tmp_path: Path, name: str, *, gathered: bool, removed: bool) -> None:
    """What the processor's source says that it does to spans changes nothing in what is read."""
    assert differences(name, tmp_path, by_rules(remove_originals=removed, gather_messages=gathered)) == []


@pytest.mark.parametrize("removed", [False, True], ids=["originals kept", "originals removed"])
def test_the_processor_changes_nothing_in_what_is_read(tmp_path: Path, *, removed: bool) -> None:
    """As above, with the real one."""
    try:
        program = collector_program(None)
    except NoCollectorError as missing:
        pytest.skip(str(missing))
    with through(program, tmp_path, with_processor(remove_originals=removed)) as passed:
        assert [line for name in NAMES for line in differences(name, tmp_path, passed)] == []


def test_a_collector_without_the_processor_changes_nothing(tmp_path: Path) -> None:
    """What is found above is the processor's doing: recordings get through a Collector as they are."""
    try:
        program = collector_program(None, processor=None)
    except NoCollectorError:
        pytest.skip("needs the program otelcol: `deploy/prove --build`, then add `deploy/prove --where` to the PATH")
    with through(program, tmp_path, {}) as passed:
        assert [line for name in NAMES for line in differences(name, tmp_path, passed)] == []
