"""The decoders that a benchmark measures: the compiled one where it is installed, and the one that is always there."""

from __future__ import annotations

from typing import Final

from spanscore.otlp.clean_requests import COMPILED

PLAIN: Final = "spanscore"
FAST: Final = "spanscore, spanscore-fast"
DECODERS: Final = {**({} if COMPILED is None else {FAST: "fast"}), PLAIN: "python"}
"""What `SPANSCORE_DECODER` has to say for each of them, by what the table calls it."""
