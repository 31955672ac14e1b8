"""Expectations of peers, what the peers said of runs, and what the expectations are in spanscore's configuration.

For each peer there is a script that draws expectations and runs and asks the peer, and a function that translates them.
What peers said is in `tests/vectors`, compressed; `python -m bench.peers.expectations.make FILE WHERE` makes it anew.
"""

from __future__ import annotations

from typing import Final

from bench.peers.expectations import npm, pypi

PEERS: Final = (*npm.PEERS, *pypi.PEERS)
