from __future__ import annotations

from spanscore.dialects._messages import Later
from spanscore.model import JSON


def test_what_is_found_later_is_found_once_and_only_where_it_is_looked_at() -> None:
    """A model is sent the whole conversation each time, and hardly a trace needs to know what of it are answers."""
    looked: list[int] = []

    def find() -> dict[str, JSON]:
        looked.append(1)
        return {"call_1": "sunny"}

    found = Later(find)
    assert [] == looked
    assert {"call_1": "sunny"} == found
    assert ("call_1" in found, len(found), found["call_1"]) == (True, 1, "sunny")
    assert [1] == looked
