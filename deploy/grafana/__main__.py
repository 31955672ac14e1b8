"""Writes the Grafana boards: `python deploy/grafana`; with `--check` it only says which of them are out of date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from evaluator import evaluator
from overview import overview

DIRECTORY: Final = Path(__file__).parent / "dashboards"


def main() -> int:
    """Write or check every board, and return the exit status."""
    check = "--check" in sys.argv[1:]
    stale = []
    for board in (overview().build(), evaluator().build()):
        for number, panel in enumerate(board.panels or (), 1):
            panel.id_val = number
        text = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(board) + "\n"
        path = DIRECTORY / f"{board.uid}.json"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not check:
            path.write_text(text, encoding="utf-8")
    print("\n".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
