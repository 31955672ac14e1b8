"""Expectations of peers from npm, what they said of runs, and what the expectations are in spanscore's configuration.

For each peer there is a script that draws expectations and runs and asks the peer, and a module that translates them.
What peers said is in `tests/vectors`, compressed; `python -m bench.peers.expectations.npm.make PEER FOLDER` makes it
anew, with Node.js 22 and the peer in FOLDER/node_modules:

    npm install --prefix FOLDER promptfoo
    npm install --prefix FOLDER @mastra/evals @mastra/core

webmcp-tools is in no registry. From a clone of GoogleChromeLabs/webmcp-tools (the vectors: 9626f8d), its folder
webmcp-evals comes to FOLDER/node_modules, and in dist there what TypeScript's compiler makes of src/utils.ts and
src/matcher.ts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

from bench.peers.expectations.npm import mastra, promptfoo, webmcp
from bench.peers.expectations.npm.verdicts import Configuration, Said, UnsayableError, differs, said

from spanscore import Trajectory


class Peer(NamedTuple):
    """A peer."""

    name: str
    """As its registry or repository has it."""
    file: str
    """The name of its script, and of the file of vectors, without suffixes."""
    translated: Callable[[Mapping[str, Any]], list[Configuration]]
    trajectory: Callable[[Mapping[str, Any]], Trajectory]
    is_of_one_scale: Callable[[Mapping[str, Any]], bool] = lambda _: False
    """Whether the value of an expectation is on the peer's scale."""

    def said(self, row: Mapping[str, Any]) -> Said:
        """Return what spanscore says where the peer said something."""
        try:
            return said(self.translated(row["expectation"]), self.trajectory(row["run"]))
        except UnsayableError as error:
            return Said(None, {}, str(error))

    def differs(self, row: Mapping[str, Any]) -> bool:
        """Return whether that is something else than the peer said."""
        return differs(row, self.said(row), is_of_one_scale=self.is_of_one_scale(row["expectation"]))


def _peer(name: str, module: ModuleType, **more: Any) -> Peer:
    return Peer(name, module.__name__.rpartition(".")[2], module.translated, module.trajectory, **more)


PEERS: Final = (
    _peer("promptfoo", promptfoo),
    _peer("@mastra/evals", mastra, is_of_one_scale=mastra.is_of_one_scale),
    _peer("webmcp-tools", webmcp),
)
