"""The answers of models that several spans of a trace record, or that no span lists."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from spanscore.contracts import CallRequest
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.tree import SpanTree


def unrecorded(tree: SpanTree) -> list[int]:
    """Return the positions of the model spans that asked for calls that are recorded nowhere.

    If one answer has two spans, a framework's and the client's own, one of them may list the calls: they are nested
    or overlap in time.
    """
    spans, silent, listing = tree.spans, tree.silent, tree.listing
    if not silent or not listing:
        return silent
    above, below = tree.nearest(set(listing)), tree.nearest(set(silent))
    told = {below[index] for index in listing}
    # The models are in the order of their start: of those that began before a span ends, one overlaps with it that
    # ends after its start.
    starts = [spans[index].start_ns for index in listing]
    latest_ends = [0, *accumulate((spans[index].end_ns for index in listing), max)]
    return [
        index
        for index in silent
        if above[index] == NONE
        and index not in told
        and latest_ends[bisect_left(starts, spans[index].end_ns)] <= spans[index].start_ns
    ]


def each_once(tree: SpanTree) -> dict[int, list[CallRequest]]:
    """Return for each model span the requests that no better span lists.

    A framework's model span often wraps the client's own: only one of them counts. If two instrumentations record one
    answer, their spans overlap: the one that ends first is nearer to the model. Without overlap, the same id is another
    call: some providers count calls from 0 in every answer.
    """
    readings, asking = tree.model_readings, tree.listing
    if not asking:
        return {}
    outer = tree.nearest(set(asking), barrier=tree.agents.keys() | tree.calls.keys())
    start_ns = {index: tree.spans[index].start_ns for index in asking}
    end_ns = {index: max(start_ns[index], tree.spans[index].end_ns) for index in asking}
    kept: dict[int, list[CallRequest]] = {index: [] for index in asking}
    asked_ns: dict[str, int] = {}
    for index in sorted(asking, key=lambda index: (end_ns[index], -start_ns[index], index)):
        for request in readings[index].requests if outer[index] == NONE else ():
            if request.call_id is None or asked_ns.get(request.call_id, start_ns[index]) <= start_ns[index]:
                kept[index].append(request)
            if request.call_id is not None:
                asked_ns[request.call_id] = end_ns[index]
    return kept
