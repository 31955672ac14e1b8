"""The peers from npm, asked with Node.js 22 and the peer in FOLDER/node_modules: WHERE is that folder.

    npm install --prefix FOLDER promptfoo
    npm install --prefix FOLDER @mastra/evals @mastra/core

webmcp-tools is in no registry. From a clone of GoogleChromeLabs/webmcp-tools (the vectors: 9626f8d), its folder
webmcp-evals comes to FOLDER/node_modules, and in dist there what TypeScript's compiler makes of src/utils.ts and
src/matcher.ts.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bench.peers.expectations.npm import mastra, promptfoo, webmcp
from bench.peers.expectations.npm.differences import DIFFERENCES, kind
from bench.peers.expectations.peer import Peer


def _peer(name: str, module: ModuleType, **more: Any) -> Peer:
    script = Path(__file__).with_name(f"{module.__name__.rpartition('.')[2]}.mjs")
    return Peer(name, script, module.translated, module.trajectory, DIFFERENCES[name], kind, **more)


PEERS: Final = (
    _peer("promptfoo", promptfoo),
    _peer("@mastra/evals", mastra, is_of_one_scale=mastra.is_of_one_scale),
    _peer("webmcp-tools", webmcp),
)
