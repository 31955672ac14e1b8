"""Checks for authors of plug-ins, and the plug-in for pytest.

Call them from a test; they raise AssertionError with the problem and the input.

    def test_contract():
        check_evaluator(MyEvaluator(limit=3))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanscore.testing._ends import SAMPLE_REQUEST, SampleIntake, check_emitter, check_receiver
    from spanscore.testing._pure_checks import check_dialect, check_evaluator, sample_trajectories

__all__ = [
    "SAMPLE_REQUEST",
    "SampleIntake",
    "check_dialect",
    "check_emitter",
    "check_evaluator",
    "check_receiver",
    "sample_trajectories",
]


def __getattr__(name: str) -> Any:
    """Import names on first use: pytest loads the plug-in in this package in every run."""
    if name not in __all__:
        raise AttributeError(f"module 'spanscore.testing' has no attribute {name!r}")
    is_end = name in {"SAMPLE_REQUEST", "SampleIntake", "check_emitter", "check_receiver"}
    return getattr(import_module("spanscore.testing._ends" if is_end else "spanscore.testing._pure_checks"), name)
