from __future__ import annotations

import pytest

from spanscore.compare._structure_keys import DISTINCT, number_key, secret_key


@pytest.mark.parametrize("number", [0, 0.5, -1, 2**61 - 2, 2 - 2**61])
def test_numbers_with_a_hash_of_their_own(number: float) -> None:
    """They are their own keys."""
    assert (number, type(number)) == (number_key(number), type(number_key(number)))


@pytest.mark.parametrize("number", [2**61 - 1, 1 - 2**61, 2 * DISTINCT, 1e30, -(10**30)])
def test_numbers_that_share_their_hash_with_others(number: float) -> None:
    """Their keys are hashed with a secret."""
    assert isinstance(number_key(number), bytes)


def test_equal_numbers_have_equal_keys() -> None:
    """Whether integers or floats, and only those."""
    assert secret_key(10**20) == secret_key(1e20) == number_key(1e20)
    assert secret_key(5) == secret_key(5.0)
    assert 4 == len({secret_key(number) for number in (5, -5, 0.5, 5.5)})
    assert len({secret_key(10**5_000), secret_key(10**5_000 + 1)}) == 2
