"""Measures, in a process of its own, what open traces of recorded agents take: `python -m bench.held_recordings SPANS`.

Prints JSON: the memory of an open span, how many there are, and how long one is on the wire.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from dataclasses import replace
from itertools import count
from typing import Final

from bench import recorded, scoring
from bench.measure import collect_rarely
from bench.process import resident

_SETTINGS: Final = "traces: {decision_delay: 1h, num_traces: 200000, trace_timeout: 1h, max_trace_age: 2h}\n"
_WARM_UP: Final = 50_000
"""Spans that stay open: what they took and gave back would be used again, and hide what others take."""
_MOST_BYTES: Final = 2**34


def main() -> None:
    """Take the recordings in again and again under other ids, until so many spans are open."""
    config = scoring.loaded(_SETTINGS + scoring.FOUR_EVALUATORS)
    config = replace(config, traces=replace(config.traces, max_bytes=_MOST_BYTES))
    pipeline, keys = scoring.receiving(config)
    engine = scoring.engine(config, pipeline, time.monotonic)
    bodies = recorded.requests()
    collect_rarely()
    generations = count()

    def hold(most: int) -> int:
        """Take in whole generations until so many spans are open, and return the bytes received."""
        received = 0
        while engine.counts().live < most:
            for body in recorded.renewed(bodies, next(generations)):
                decoded = scoring.decoded(body, keys, plain=False)
                engine.add(decoded.spans, decoded.sizes)
                received += len(body)
        return received

    hold(_WARM_UP)
    before, held = resident("self"), engine.counts().live
    received = hold(held + int(sys.argv[1]))
    gc.collect()
    spans = engine.counts().live - held
    result = {
        "open spans": spans,
        "bytes a span": (resident("self") - before) / spans,
        "as received": received / spans,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
