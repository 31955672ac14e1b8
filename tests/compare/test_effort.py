from __future__ import annotations

import pytest

from spanscore.compare.effort import MAX_COMPARISONS, Effort, TooMuchWorkError


def test_so_many_comparisons_and_no_more() -> None:
    """What is spent adds up; the last comparison that may be made is made."""
    effort = Effort()
    effort.spend(MAX_COMPARISONS - 1)
    effort.spend()
    assert MAX_COMPARISONS == effort.spent

    with pytest.raises(TooMuchWorkError, match="more than 250000 comparisons"):
        effort.spend(1)
