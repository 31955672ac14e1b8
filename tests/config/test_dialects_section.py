from __future__ import annotations

from collections.abc import Callable

import pytest

from spanscore.config import Config, default
from spanscore.contracts import plugins
from spanscore.dialects.custom import Custom

Problems = Callable[..., list[str]]
Read = Callable[..., Config]


def test_all_installed_dialects_are_in_use() -> None:
    """By default every dialect that is installed reads spans."""
    installed = [name for name in plugins.names("dialects") if name != "custom"]

    assert [plugins.find("dialects", name) for name in installed] == [type(each) for each in default().dialects]


def test_custom_and_disabled(read: Read) -> None:
    """One's own dialects come first; a disabled one is not there."""
    config = read("""\
        dialects:
          custom:
            - name: acme
              match: {span.name: "run tool *"}
              tool_name: acme.tool
              arguments: acme.input
              error: acme.error
          disabled: [openinference]
        """)

    custom = Custom(
        name="acme",
        match={"span.name": "run tool *"},
        tool_name="acme.tool",
        arguments="acme.input",
        error="acme.error",
    )
    assert custom == config.dialects[0]
    assert plugins.find("dialects", "openinference") not in [type(each) for each in config.dialects]
    assert len(default().dialects) == len(config.dialects)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{disabled: [openinferenc]}", ("c.yaml:1:23 dialects.disabled[0]: there is no dialect 'openinferenc'; "
         "did you mean 'openinference'?")),
        (
            "{disabled: openinference}",
            "c.yaml:1:22 dialects.disabled: must be a list, not 'openinference'; write [openinference]",
        ),
        ("{custom: [{}]}", "c.yaml:1:21 dialects.custom[0].name: the key is required"),
        (
            "{custom: [{name: mcp, match: {a: b}, tool_name: c}]}",
            "c.yaml:1:28 dialects.custom[0].name: there is already a dialect 'mcp'",
        ),
        (
            "{custom: [{name: a, match: {a: b}, tool_name: c}, {name: a, match: {a: b}, tool_name: c}]}",
            "c.yaml:1:68 dialects.custom[1].name: there is already a dialect 'a'",
        ),
        (
            "{custom: [{name: a, match: {}, tool_name: c}]}",
            "c.yaml:1:38 dialects.custom[0].match: must not be empty",
        ),
        (
            "{custom: [{name: a, match: {a: b}, toolname: c}]}",
            "c.yaml:1:46 dialects.custom[0].toolname: unknown key; did you mean 'tool_name'?",
        ),
    ],
)  # fmt: skip
def test_mistakes(problems: Problems, text: str, expected: str) -> None:
    """A mistake is told with its place."""
    assert expected == problems(f"dialects: {text}")[0].partition(" (")[0]
