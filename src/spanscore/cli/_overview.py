"""The text of `spanscore` without arguments: its commands, and first steps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from spanscore import __version__
from spanscore.cli._columns import side_by_side

_FIRST: Final = {
    "spanscore demo": "watch a sample agent being scored: no other server, no network",
    "spanscore score FILE": "score recorded spans; fails if a run fails",
    "spanscore serve": "receive your agents' spans on ports 4317 and 4318",
}
_COMMANDS: Final = {
    "Score": {
        "demo": "watch a sample agent being scored",
        "record": "run a command and save the spans and logs it exports",
        "score": "score recorded spans, for CI",
        "fetch": "download traces from Jaeger or Tempo",
        "golden": "save the calls of good runs as expected calls",
        "learn": "derive rules from good runs",
        "diff": "compare the runs of two versions: better, the same, worse, or too few to say",
        "agree": "compare evaluators with labels that people gave to runs",
        "watch": "replay recorded runs through monitors: the alarms that there would have been",
        "explain": "show what was read from each span of a run, and why",
        "mcp": "let a coding agent ask why runs failed",
        "serve": "receive spans and score them as they come",
        "send": "send recorded spans and logs to an OTLP receiver",
    },
    "Configure": {
        "list": "list evaluators, dialects, receivers and emitters",
        "describe": "explain one of them, with its parameters",
        "check": "check a configuration",
        "schema": "print the JSON Schema of the configuration, or every key with its default",
    },
    "Shell": {"completion": "print a shell completion script for bash, zsh or fish"},
}
SUMMARIES: Final = {name: text for group in _COMMANDS.values() for name, text in group.items()}
"""One line for each command."""


_LONGEST: Final = max(map(len, _FIRST))


def overview(width: int | None) -> str:
    """Return the text, in lines of that width; None for no limit."""

    def wrapped(text: str) -> str:
        return text if width is None else textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)

    def listed(entries: Mapping[str, str]) -> Iterator[str]:
        return side_by_side(entries.items(), width, _LONGEST, "  ")

    lines = [
        wrapped(f"spanscore {__version__}: scores the tool calls of LLM agents from OpenTelemetry spans."),
        "",
        wrapped("Usage: spanscore COMMAND [OPTION...]"),
        "",
        "First steps:",
        *listed(_FIRST),
    ]
    for title, commands in _COMMANDS.items():
        lines += ["", f"{title}:", *listed(commands)]
    lines += [
        "",
        wrapped("Help on a command: spanscore COMMAND --help. Version: spanscore --version."),
        wrapped("Exit status: 0 success, 1 failure, 2 usage or configuration, 3 too few runs to compare (diff)."),
    ]
    return "\n".join(lines) + "\n"
