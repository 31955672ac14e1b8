"""Makes the vectors of a peer: `python -m bench.peers.expectations.npm.make PEER FOLDER`.

Each row in which spanscore says something else than the peer gets the kind of the difference; one of no known kind is
an error, with the row.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from bench.peers.expectations.npm import PEERS, Peer
from bench.peers.expectations.npm.differences import DIFFERENCES, kind

VECTORS: Final = Path(__file__).parents[4] / "tests" / "vectors"


def main(name: str, folder: str) -> None:
    """Ask the peer, and write what it said."""
    peer = next(each for each in PEERS if each.file == name)
    script = Path(__file__).with_name(f"{peer.file}.mjs")
    told = subprocess.run(["node", str(script), folder], capture_output=True, text=True, check=True).stdout  # noqa: S607
    head, *rows = map(json.loads, told.splitlines())
    lines = [head, *(_marked(peer, row) for row in rows)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    file = VECTORS / f"{peer.file}.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    marked = sum("kind" in line for line in lines)
    print(
        f"{file.name}: {head['version']}, {len(rows) - marked} equal, {marked} different, {file.stat().st_size} bytes"
    )


def _marked(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the kind of the difference, where there is one."""
    found, is_different = peer.said(row), peer.differs(row)
    named = row.get("kind") or (kind(peer.name, row, found) if is_different else None)
    if is_different != (named is not None) or (named is not None and named not in DIFFERENCES[peer.name]):
        message = f"{'different' if is_different else 'equal'}, but of kind {named}: {json.dumps(row)}; here: {found}"
        raise ValueError(message)
    return row if named is None else {**row, "kind": named}


if __name__ == "__main__":
    main(*sys.argv[1:])
