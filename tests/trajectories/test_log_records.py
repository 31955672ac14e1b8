"""The event and the run of log records."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.trajectories.log_records import event_name, run_id, with_body


@pytest.mark.parametrize(
    ("told", "name"),
    [(["a.b"], "a.b"), ([None, 1, "x.y", "a.b", "a.c"], "a.b"), (["x.a."], None), (["c"], "c"), ([], None)],
)
def test_the_first_name_with_a_prefix(told: list[object], name: str | None) -> None:
    """Values that are no texts, and other events, are passed over."""
    assert name == event_name(told, ("a.", "c"))


def test_the_body_is_an_attribute_or_several() -> None:
    """Attributes win over the body; without a body they are the same object."""
    attributes = {"k": 1, "body": 2}
    assert {"k": 1, "body": 2, "l": 3} == with_body(attributes, {"k": 0, "l": 3})
    assert attributes == with_body(attributes, "text")
    assert {"k": 1, "body": "text"} == with_body({"k": 1}, "text")
    assert attributes is with_body(attributes, None)
    assert {"k": 1, "body": ""} == with_body({"k": 1}, "")


RUN = {"session.id": "s", "prompt.id": "s#1"}
OF_APP = {"service.name": "app"}


@pytest.mark.parametrize(
    ("attributes", "resource", "is_same"),
    [
        (RUN, OF_APP, True),
        ({**RUN, "other": 1}, {**OF_APP, "host.name": "h"}, True),
        ({"prompt_id": "s#1", "conversation.id": "s"}, OF_APP, True),
        ({"prompt.id": "", "prompt_id": "s#1", "gen_ai.conversation.id": "s", "session.id": "t"}, OF_APP, True),
        (RUN, {}, False),
        (RUN, {"service.name": 1}, False),
        ({**RUN, "session.id": "t"}, OF_APP, False),
        ({**RUN, "prompt.id": "s#2"}, OF_APP, False),
        ({"session.id": "s"}, OF_APP, False),
    ],
)
def test_one_prompt_of_one_session_of_one_service_is_a_run(
    attributes: dict[str, Any], resource: dict[str, Any], *, is_same: bool
) -> None:
    """Other attributes make no difference."""
    assert is_same is (run_id(attributes, resource) == run_id(RUN, OF_APP))


def test_a_record_that_names_no_session_is_of_no_run() -> None:
    """A prompt alone is not enough, nor an id that is no text."""
    assert [None, None, None] == [
        run_id(each, OF_APP) for each in ({}, {"prompt.id": "p"}, {"session.id": 1, "conversation.id": ""})
    ]


@pytest.mark.parametrize(
    ("prompt", "is_session"),
    [(None, True), ("t1", True), ("sub#1", True), ("sub#12", True), ("sub", False), ("t1#1", False), ("sub#1x", False)],
)
def test_prompts_that_are_those_of_the_session(prompt: str | None, *, is_session: bool) -> None:
    """The only prompt has the session's id, and a sub-agent's turn another id with a number; own prompts begin so."""
    told = {"session.id": "t1", **({} if prompt is None else {"prompt.id": prompt})}
    assert is_session is (run_id(told, {}) == run_id({"session.id": "t1"}, {}))


def test_names_with_nul_are_of_different_runs() -> None:
    """The parts of a key stay apart."""
    first = run_id({"session.id": "b\0c"}, {"service.name": "a"})
    assert first != run_id({"session.id": "c"}, {"service.name": "a\0b"})
    assert first != run_id({"session.id": "b", "prompt.id": "c"}, {"service.name": "a"})
    nul = "\0"
    assert run_id({"session.id": nul * 2, "prompt.id": nul * 3}, {"service.name": nul}) != run_id(
        {"session.id": nul, "prompt.id": nul * 3}, {"service.name": nul * 2}
    )
    assert run_id({"session.id": "\ud800"}, {}) is not None
