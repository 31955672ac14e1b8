"""How many examples Hypothesis tries: `quick` is the default, and `.ci/run` asks for `--hypothesis-profile full`."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import HealthCheck, settings

_QUICK: Final = "quick"
_FULL: Final = "full"
_QUICK_EXAMPLES: Final = 10
_FULL_EXAMPLES: Final = 100


def register_profiles() -> None:
    """Make both profiles known, and the quick one the default."""
    # How long an example takes says something of the machine, not of the code: nothing here is a timed test.
    for name, examples in ((_QUICK, _QUICK_EXAMPLES), (_FULL, _FULL_EXAMPLES)):
        settings.register_profile(
            name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
    settings.load_profile(_QUICK)


def at_most(full: int, **more: Any) -> settings:
    """Return the settings of a test that tries `full` examples in the full profile, otherwise a tenth or ten."""
    examples = full if settings().max_examples == _FULL_EXAMPLES else max(full // 10, _QUICK_EXAMPLES)
    return settings(max_examples=examples, **more)
