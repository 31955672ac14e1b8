from __future__ import annotations

import pytest

from spanscore.cli.serve import MOST, allow_descriptors

resource = pytest.importorskip("resource", reason="Windows has no limit on descriptors")


def test_the_soft_limit_is_raised() -> None:
    """A lower one, as far as the hard one allows; a higher one stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    found = []
    try:
        for before in (256, most):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))
            allow_descriptors()
            found.append(resource.getrlimit(resource.RLIMIT_NOFILE))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert [(most, hard)] * 2 == found
