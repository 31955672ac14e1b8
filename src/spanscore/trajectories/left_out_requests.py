"""The calls that answers of models ask for, and only the next request to a model lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from spanscore.contracts import CallRequest, ModelReading
from spanscore.model import changed
from spanscore.trajectories.sent_calls import content_of


def listed_by_next(readings: Mapping[int, ModelReading]) -> dict[int, ModelReading]:
    """Return the readings, those without requests with the ones that the next request's messages have more than before.

    The calls in the messages of the first request are of earlier turns. If a request's messages are not recorded, the
    answer before it may have asked for calls.
    """
    found = dict(readings)
    known: Counter[Hashable] = Counter()
    before: int | None = None
    for index, reading in readings.items():
        if not reading.leaves_out_requests:
            continue
        times: Counter[Hashable] = Counter()
        fresh: list[CallRequest] = []
        for request in (request for message in reading.history for request in message.requests):
            key = request.call_id or content_of(request)
            times[key] += 1
            if times[key] > known[key]:
                fresh.append(request)
        known |= times
        if before is not None and not readings[before].requests:
            asks = bool(fresh) or not reading.history
            found[before] = changed(readings[before], requests=tuple(fresh), asks=asks or readings[before].asks)
        before = index
    return found
