"""Hands reports to every emitter; a fault of one emitter affects no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from spanscore.contracts import AtMostOnce, Emitter
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults
from spanscore.model import Failed, Report, Trace


class Emission:
    """All emitters of an engine.

    Args:
        emitters: the emitters, by name.
        tallies: counts failed evaluations and reports that could not be emitted.
        faults: logs the errors of emitters.
    """

    def __init__(self, emitters: Mapping[str, Emitter], tallies: Tallies, faults: Faults) -> None:
        self.counted_before: Final[set[bytes]] = set()
        """Traces with closings that emitters have counted before a restart, and that are still to be repeated."""
        self.counted: Final[set[tuple[bytes, int]]] = set()
        """The revisions of traces that emitters which count have counted already, before a restart."""
        self.unfinished: tuple[str, ...] = ()
        """The emitters that did not send everything in the last `finish`; while it runs, also the next ones."""
        self._emitters: Final = emitters
        self._tallies: Final = tallies
        self._faults: Final = faults

    def is_counted(self, trace: Trace) -> bool:
        """Return whether emitters that count have counted this revision of a trace before a restart."""
        return (trace.trace_id, trace.revision) in self.counted

    def emit(self, report: Report, trace_id: bytes) -> None:
        """Hand a report of a trace to every emitter."""
        for evaluation in report.evaluations:
            if isinstance(evaluation.outcome, Failed):
                self._tallies.evaluation_errors[evaluation.name, evaluation.outcome.error_type] += 1
        is_counted = bool(self.counted) and (trace_id, report.revision) in self.counted
        for name, emitter in self._emitters.items():
            if is_counted and isinstance(emitter, AtMostOnce) and emitter.at_most_once:
                continue
            try:
                emitter.emit(report)
            except BaseException as error:  # noqa: BLE001 - the border to plug-ins: one must not stop another
                self._contain(name, error, "emit a report")

    def finish(self, action: Literal["flush", "close"], clock: Callable[[], float], timeout_s: float) -> bool:
        """Flush or close every emitter, and return whether all of them sent everything within the timeout."""
        deadline = clock() + timeout_s
        self.unfinished = tuple(self._emitters)
        for name, emitter in self._emitters.items():
            try:
                if getattr(emitter, action)(max(0.0, deadline - clock())):
                    self.unfinished = tuple(each for each in self.unfinished if each != name)
            except BaseException as error:  # noqa: BLE001 - as above
                self._contain(name, error, action)
        return not self.unfinished

    def _contain(self, name: str, error: BaseException, action: str) -> None:
        self._faults.contain(error, f"{name!r} could not {action}")
        self._tallies.export_failures[name, type(error).__name__] += 1
