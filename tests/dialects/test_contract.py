from __future__ import annotations

import pytest

from spanscore.contracts import plugins
from spanscore.testing import check_dialect

NAMES = [name for name in plugins.names("dialects") if name != "custom"]


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_keeps_the_contract(name: str) -> None:
    """It never raises, changes nothing, and answers the same when asked again."""
    check_dialect(plugins.find("dialects", name)())
