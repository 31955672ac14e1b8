"""Makes the vectors of a peer: `python -m bench.peers.expectations.make FILE WHERE`.

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

from bench.peers.expectations import PEERS
from bench.peers.expectations.peer import Peer

VECTORS: Final = Path(__file__).parents[3] / "tests" / "vectors"


def main(name: str, where: str) -> None:
    """Ask the peer, and write what it said."""
    peer = next(each for each in PEERS if each.file == name)
    told = subprocess.run(peer.command(where), stdout=subprocess.PIPE, text=True, check=True).stdout
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
    named = row.get("kind") or (peer.kind(peer, row, found) if is_different else None)
    if is_different != (named is not None) or (named is not None and named not in peer.differences):
        message = f"{'different' if is_different else 'equal'}, but of kind {named}: {json.dumps(row)}; here: {found}"
        raise ValueError(message)
    return row if named is None else {**row, "kind": named}


if __name__ == "__main__":
    main(*sys.argv[1:])
