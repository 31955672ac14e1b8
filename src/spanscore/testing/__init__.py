"""Checks for authors of plug-ins: does an evaluator, a dialect, an emitter or a receiver keep its contract?

Call them from a test; they raise AssertionError with what is wrong and on which input.

    def test_contract():
        check_evaluator(MyEvaluator(limit=3))
"""

from spanscore.testing._ends import SAMPLE_REQUEST, SampleIntake, check_emitter, check_receiver
from spanscore.testing._reading import check_dialect, check_evaluator, sample_trajectories

__all__ = [
    "SAMPLE_REQUEST",
    "SampleIntake",
    "check_dialect",
    "check_emitter",
    "check_evaluator",
    "check_receiver",
    "sample_trajectories",
]
