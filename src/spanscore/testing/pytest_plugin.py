"""The plug-in for pytest: records what an agent does in a test, and compares it with what is expected.

pytest loads this file in every run, so that nothing of spanscore is imported before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from spanscore.runs.golden_runs import GoldenRuns

_UPDATE = "--spanscore-update"
_MASK = "spanscore_mask"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("spanscore", "trajectories of agents")
    group.addoption(
        _UPDATE,
        action="store_true",
        help="write the calls of each test to its golden file, if assert_trajectory is given no expectation",
    )
    parser.addini(_MASK, "keys of values that are not written to golden files, and not shown", type="args", default=[])


@pytest.fixture
def spanscore_run(request: pytest.FixtureRequest) -> Iterator[GoldenRuns]:
    """The run of the test's agent: every span and log record of this process until the test ends.

    The application's own providers are recorded, or the global ones, which are created if there are none.
    """
    from spanscore.config import parts  # noqa: PLC0415 - as the module's docstring says
    from spanscore.errors import InputError  # noqa: PLC0415 - as above
    from spanscore.runs.golden_runs import GoldenRuns  # noqa: PLC0415 - as above
    from spanscore.runs.recorded_runs import recording  # noqa: PLC0415 - as above

    path: Path = request.path
    _, _, name = request.node.nodeid.partition("::")
    update: Any = request.config.getoption(_UPDATE)
    with ExitStack() as stack:
        try:
            masks = parts.masks(request.config.getini(_MASK))
            runs = stack.enter_context(recording())
        except InputError as error:
            pytest.fail(str(error), pytrace=False)
        yield GoldenRuns(runs, path.with_name(f"{path.stem}.golden.jsonl"), name, update=bool(update), masks=masks)
