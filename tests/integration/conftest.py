from collections.abc import Iterator

import pytest

from integration.frameworks import FRAMEWORKS, Framework, need_environment
from integration.receiver import Receiver, receiving


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """Give one receiver for all agents; each test has a service name of its own."""
    with receiving(tmp_path_factory.mktemp("receiver")) as running:
        yield running


@pytest.fixture(params=FRAMEWORKS, ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest) -> Framework:
    """Give each framework in turn."""
    found: Framework = request.param
    need_environment(found.environment_name)
    return found
