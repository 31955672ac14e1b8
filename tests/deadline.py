"""How long tests wait for what has to happen: until it does, or until it is certain that it never will."""

from __future__ import annotations

from typing import Final

DEADLINE_S: Final = 120.0
"""Nothing in the tests takes long, and no test passes or fails by how fast it was: a busy machine may need this."""
