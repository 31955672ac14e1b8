"""A module that takes its time to load, in the process that runs evaluators."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from scoring.isolation.hostile import Hostile

LOADING_S = 3.0

if "spanscore.scoring.isolation.time_limit" not in sys.modules:
    time.sleep(LOADING_S)


@dataclass(frozen=True)
class SlowToLoad(Hostile):
    """Answers at once."""
