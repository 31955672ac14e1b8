"""A peer: how it is asked, and what its expectations are in spanscore's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.peers.expectations.verdicts import Configuration, Said, UnsayableError, differs, said
from spanscore import Trajectory


class Peer(NamedTuple):
    """A peer."""

    name: str
    """As its registry or repository has it."""
    script: Path
    """Draws expectations and runs, asks the peer, and prints a line of JSON for each, behind one that says of what."""
    translated: Callable[[Mapping[str, Any]], list[Configuration]]
    trajectory: Callable[[Mapping[str, Any]], Trajectory]
    differences: Mapping[str, str]
    """Where spanscore says something else, and why, by kind."""
    kind: Callable[[Peer, Mapping[str, Any], Said], str | None]
    """Returns of which kind a difference is that random expectations came upon; None where that is not known."""
    is_of_one_scale: Callable[[Mapping[str, Any]], bool] = lambda _: False
    """Whether the value of an expectation is on the peer's scale."""

    @property
    def file(self) -> str:
        """The name of its file of vectors, without suffixes."""
        return self.script.stem.removeprefix("ask_")

    def command(self, where: str) -> list[str]:
        """Return what asks it: from a folder with `node_modules`, or by the Python of an environment that has it."""
        return ["node", str(self.script), where] if self.script.suffix == ".mjs" else [where, str(self.script)]

    def said(self, row: Mapping[str, Any]) -> Said:
        """Return what spanscore says where the peer said something."""
        try:
            return said(self.translated(row["expectation"]), self.trajectory(row["run"]))
        except UnsayableError as error:
            return Said(None, {}, str(error))

    def differs(self, row: Mapping[str, Any]) -> bool:
        """Return whether that is something else than the peer said."""
        return differs(row, self.said(row), is_of_one_scale=self.is_of_one_scale(row["expectation"]))
