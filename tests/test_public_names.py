from __future__ import annotations

import pytest

import spanscore
from commands import python


def test_names_are_sorted_and_exist() -> None:
    """`__all__` is sorted, and every name in it is there."""
    assert sorted(spanscore.__all__) == spanscore.__all__
    for name in spanscore.__all__:
        assert hasattr(spanscore, name)


@pytest.mark.parametrize("module", ["pydantic", "yaml", "google", "grpc", "opentelemetry", "jsonschema", "rich"])
def test_import_is_light(module: str) -> None:
    """Importing spanscore imports nothing that takes long."""
    code = f"import sys, spanscore; sys.exit({module!r} in sys.modules)"

    assert 0 == python("-c", code).returncode


def test_an_unused_plug_in_of_pytest_imports_nothing() -> None:
    """It is loaded in every run of pytest, whatever is tested."""
    plugin = "spanscore.testing.pytest_plugin"
    code = f"import sys, {plugin}; print(sorted(name for name in sys.modules if 'spanscore' in name))"

    assert f"['spanscore', 'spanscore.testing', '{plugin}']" == python("-c", code).stdout.strip()
