"""Reports go to every emitter, whatever goes wrong with another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from spanscore.contracts import AtMostOnce, Emitter
from spanscore.instruments.tallies import Tallies
from spanscore.model import Failed, Report
from spanscore.wording.faults import Faults


class Emission:
    """All emitters of an engine.

    Args:
        emitters: where reports go, by name.
        tallies: what could not be evaluated or emitted is counted there.
        faults: logs what an emitter raises.
    """

    def __init__(self, emitters: Mapping[str, Emitter], tallies: Tallies, faults: Faults) -> None:
        self.counted: Final[set[bytes]] = set()
        """Traces that emitters which count have counted already, before a restart."""
        self._emitters: Final = emitters
        self._tallies: Final = tallies
        self._faults: Final = faults

    def emit(self, report: Report) -> None:
        """Hand a report to every emitter."""
        for evaluation in report.evaluations:
            if isinstance(evaluation.outcome, Failed):
                self._tallies.evaluation_errors[evaluation.name, evaluation.outcome.error_type] += 1
        is_counted = report.trajectory.trace_id in self.counted and not report.revision
        for name, emitter in self._emitters.items():
            if is_counted and isinstance(emitter, AtMostOnce) and emitter.at_most_once:
                continue
            try:
                emitter.emit(report)
            except BaseException as error:  # noqa: BLE001 - the border to plug-ins: one must not stop another
                self._contain(name, error, "emit a report")

    def finish(self, action: Literal["flush", "close"], clock: Callable[[], float], timeout_s: float) -> bool:
        """Have every emitter send what it holds, and return whether all of it went out within the timeout."""
        deadline = clock() + timeout_s
        done = True
        for name, emitter in self._emitters.items():
            try:
                done &= bool(getattr(emitter, action)(max(0.0, deadline - clock())))
            except BaseException as error:  # noqa: BLE001 - as above
                self._contain(name, error, action)
                done = False
        return done

    def _contain(self, name: str, error: BaseException, action: str) -> None:
        self._faults.contain(error, f"{name!r} could not {action}")
        self._tallies.export_failures[name, type(error).__name__] += 1
