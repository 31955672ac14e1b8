from __future__ import annotations

from spanscore.contracts import Markers, Precedence, plugins
from spanscore.dialects.custom import Custom
from spanscore.trajectories.wanted import WantedAttributes, wanted_attributes


def test_keys_and_beginnings() -> None:
    """A key is wanted when it is named, or when it begins as one that ends in an asterisk."""
    wanted = WantedAttributes(["tool", "llm.tools.*"])

    assert {
        "tool": "tool",
        "tools": None,
        "llm.tools.0.name": "llm.tools.0.name",
        "llm.toolset": None,
        "llm.tool": None,
        "": None,
    } == {key: wanted[key] for key in ("tool", "tools", "llm.tools.0.name", "llm.toolset", "llm.tool", "")}


def test_made_up_keys_take_no_memory() -> None:
    """What was found out of a key is remembered for a few thousand keys; of any others it is found out again."""
    wanted = WantedAttributes(["llm.*"])

    assert all(wanted[f"llm.{number}"] for number in range(10_000))
    assert len(wanted) < 5_000
    assert not wanted["another"]
    assert wanted["llm.more"]


def test_of_dialects() -> None:
    """What a dialect reads, its markers, and what a configuration names beside it."""
    custom = Custom(name="shop", match={"kind": "tool", "span.name": "*"}, tool_name="tool", error="failed")

    wanted = wanted_attributes([custom], ["customer"])

    assert Precedence.CUSTOM == custom.precedence
    assert Markers(attributes=frozenset({"kind"})) == custom.markers
    assert {"kind": True, "tool": True, "failed": True, "customer": True, "shop": False} == {
        key: wanted[key] is not None for key in ("kind", "tool", "failed", "customer", "shop")
    }


def test_no_built_in_dialect_reads_all_attributes() -> None:
    """Else every attribute of every span would be decoded and kept."""
    names = [name for name in plugins.names("dialects") if name != "custom"]
    wanted = wanted_attributes([plugins.find("dialects", name)() for name in names])

    assert not any(wanted[key] for key in ("http.request.method", "url.full", "server.address", "db.query.text"))
