"""The section `conversations`, and evaluators over conversations."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from spanscore.config import Config
from spanscore.config._schema import json_schema

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

ONCE = "evaluators: {once: {type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}}"


def test_what_is_read(read: Read) -> None:
    """Durations as seconds, sizes as bytes; the evaluator knows what it is over."""
    config = read(f"conversations: {{key: [user.id, session.id], idle: 5m, max_bytes: 1MiB}}\n{ONCE}")
    found = config.conversations

    assert found is not None
    assert (("user.id", "session.id"), 300.0, 2**20) == (found.key, found.idle_s, found.max_bytes)
    assert ["conversation"] == [entry.over for entry in config.evaluators]
    assert [] == list(config.for_files().doubts())


def test_defaults(read: Read) -> None:
    """Off without the section; then an evaluator is over runs."""
    config = read("")
    assert (None, ["run"]) == (config.conversations, [entry.over for entry in config.evaluators])

    found = read(f"conversations: {{}}\n{ONCE}").conversations
    assert found is not None
    assert (("gen_ai.conversation.id",), 900.0, 64 * 2**20) == (found.key, found.idle_s, found.max_bytes)


def test_an_evaluator_without_the_section(problems: Problems) -> None:
    """The error says what to add."""
    (line,) = problems(ONCE)
    assert line == (
        "c.yaml:1:46 evaluators.once.over: 'conversation' needs the section conversations, which names the turns of "
        "one: conversations: {key: [gen_ai.conversation.id]}"
    )


def test_kafka_is_refused(problems: Problems) -> None:
    """Its partitions go by trace."""
    kafka = 'receivers: {kafka: {brokers: ["localhost:9092"], topic: t, group_id: g}}'
    (line,) = problems(f"conversations: {{}}\n{ONCE}\n{kafka}")
    assert line == (
        "c.yaml:1:1 conversations: cannot be used with receivers.kafka, whose partitions go by trace: several members "
        "may read the turns of one conversation"
    )


@pytest.mark.parametrize(
    ("section", "at"),
    [
        ("{key: []}", "c.yaml:1:22 conversations.key: "),
        ("{key: x}", "c.yaml:1:22 conversations.key: "),
        ("{idle: 0s}", "c.yaml:1:23 conversations.idle: "),
        ("{max_bytes: 1}", "c.yaml:1:28 conversations.max_bytes: "),
        ("{keys: [x]}", "c.yaml:1:17 conversations.keys: "),
    ],
)
def test_mistakes(problems: Problems, section: str, at: str) -> None:
    """Each is named where it is."""
    (line,) = problems(f"conversations: {section}")
    assert line.startswith(at)


def test_other_words_for_over(problems: Problems) -> None:
    """Runs and conversations are all there is."""
    (line,) = problems(ONCE.replace("over: conversation", "over: session"))
    assert "evaluators.once.over" in line
    assert "'run'" in line
    assert "'conversation'" in line


def test_a_section_that_does_nothing(read: Read) -> None:
    """It is probably forgotten what it is for."""
    (doubt,) = read("conversations: {}").for_files().doubts()
    assert "no evaluator has 'over: conversation'" in doubt


@pytest.mark.parametrize(
    ("traces", "told"),
    [
        ("{pause_wait: 1h, late_spans: ignore}", 1),
        ("{pause_bytes: 1MiB, late_spans: ignore}", 1),
        ("{late_spans: ignore}", 0),
        ("{pause_wait: 1h}", 0),
    ],
)
def test_pauses_are_not_held_where_late_spans_are_ignored(read: Read, traces: str, told: int) -> None:
    """A warning for who asks for both."""
    doubt = "c.yaml: no spans are held for runs that pause, as traces.late_spans is 'ignore'"
    assert [doubt] * told == list(read(f"traces: {traces}").for_serve().doubts())


def test_storage_without_room_for_turns(read: Read) -> None:
    """A start with both says so."""
    config = read(f"conversations: {{max_bytes: 1GiB}}\n{ONCE}")
    (doubt,) = config.for_serve().doubts()

    assert doubt.startswith("c.yaml: conversations.max_bytes is more than an eighth of storage.max_size")
    assert [] == list(config.for_process().doubts())
    assert [] == list(read(f"conversations: {{}}\n{ONCE}").for_serve().doubts())


def test_the_schema() -> None:
    """Editors know both."""
    schema = json_schema()
    assert "conversations" in schema["properties"]
    assert {"key", "idle", "max_bytes"} == schema["$defs"]["ConversationSettings"]["properties"].keys()
    assert '"over"' in json.dumps(schema["$defs"]["ToolPolicy"])
