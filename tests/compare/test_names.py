from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanscore.compare.names import called_names, canonical, listed, normaliser, same_tool, sanitized
from spanscore.contracts import Parameters
from spanscore.model import ToolCall, Trajectory

ANY_NAME = st.text(st.characters() | st.sampled_from("aB_.:/ \"'`()-\ud800"), max_size=30)


class TestSanitized:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("get weather", "get_weather"),
            ("get \t\u00a0 weather", "get_weather"),
            ("ns.search!", "nssearch"),
            ("a-b_C9", "a-b_C9"),
            ("日本", ""),
            ("n" * 70, "n" * 64),
        ],
    )
    def test_keeps_what_providers_accept(self, name: str, expected: str) -> None:
        """White space becomes `_`, other characters are dropped, case is kept, and 64 characters are left."""
        assert expected == sanitized(name)


class TestCanonical:
    @pytest.mark.parametrize(
        "name",
        [
            "web_search",
            "WebSearch",
            "webSearch",
            "web-search",
            "  Web Search ",
            "`web_search()`",
            '"web_search"',
            "mcp__my_server__web_search",
            "MCP__my_server__web_search",
            "execute_tool web_search",
            "gen_ai.execute_tool web_search",
            "tools/call web_search",
            "running tool: web_search",
            "running tool web_search",
            "call_tool web_search",
            "functions.web_search",
            "default_api:web_search",
            "mcp::travel::web_search",
            "\uff37\uff45\uff42\uff33\uff45\uff41\uff52\uff43\uff48",
        ],
    )
    def test_sees_through_the_ways_to_write_a_name(self, name: str) -> None:
        """Case styles, quotes, operations, protocols and well-known roots do not matter, whatever the namespaces."""
        assert ("web_search", "web_search") == (canonical(name), canonical(name, "keep"))

    @pytest.mark.parametrize(
        ("name", "stripped", "kept"),
        [
            ("web.search", "search", "web.search"),
            ("web/search", "search", "web.search"),
            ("Travel::HotelSearch", "hotel_search", "travel.hotel_search"),
            ("tools.web.search", "search", "web.search"),
            ("mcp__search", "mcp_search", "mcp_search"),
            ("mcp.search", "search", "search"),
            ("mcp.travel.search", "search", "search"),
            ("functions.tools.search", "search", "search"),
            ("functions.tools", "tools", "tools"),
            ("tools", "tools", "tools"),
            ("mcp__srv__get__item", "get_item", "get_item"),
        ],
    )
    def test_namespaces(self, name: str, stripped: str, kept: str) -> None:
        """`strip` keeps the last segment, `keep` all but the roots, joined by dots."""
        assert (stripped, kept) == (canonical(name), canonical(name, "keep"))

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("HTTPGet", "http_get"),
            ("getURLFor", "get_url_for"),
            ("search_v2", "search_v2"),
            ("OAuth2Token", "o_auth2_token"),
            ("a__b--c", "a_b_c"),
        ],
    )
    def test_words(self, name: str, expected: str) -> None:
        """Camel case and acronyms are words, and separators collapse."""
        assert expected == canonical(name)

    @pytest.mark.parametrize("name", ["!!!", "::", "日本", ""])
    def test_never_empties_a_name(self, name: str) -> None:
        """A name of which nothing would be left stays as it is."""
        assert name == canonical(f" {name} ")

    @settings(deadline=None)
    @given(name=ANY_NAME)
    def test_takes_any_text(self, name: str) -> None:
        """No name raises, and what is canonical has no white space around it."""
        assert canonical(name).strip() == canonical(name)

    @given(words=st.lists(st.from_regex("[a-z]{2,5}", fullmatch=True), min_size=1, max_size=4))
    def test_camel_case_is_snake_case(self, words: list[str]) -> None:
        """A name means the same in snake_case, kebab-case, CamelCase and camelCase."""
        camel = "".join(map(str.capitalize, words))
        styles = ["_".join(words), "-".join(words), camel, camel[0].lower() + camel[1:]]

        assert {"_".join(words)} == {canonical(style) for style in styles}


class TestNormaliser:
    def test_exact_is_the_default(self) -> None:
        """Names are compared as they are unless told otherwise."""
        assert "Web Search" == normaliser(Parameters())("Web Search")

    def test_sanitized(self) -> None:
        """`sanitized` compares names as providers accept them."""
        assert "Web_Search" == normaliser(Parameters(tool_names="sanitized"))("Web Search")

    def test_canonical_with_namespaces(self) -> None:
        """`canonical` respects the choice of namespaces."""
        assert "web.search" == normaliser(Parameters(tool_names="canonical", namespaces="keep"))("web/Search")

    @pytest.mark.parametrize("name", ["google", "Google", "mcp__web__google", "web_search", "WebSearch"])
    def test_aliases(self, name: str) -> None:
        """An alias holds for every way to write its name, and its target may be written in any way too."""
        normalise = normaliser(Parameters(tool_names="canonical", aliases={"google": "WebSearch"}))

        assert "web_search" == normalise(name)

    def test_an_alias_for_a_name_as_written_wins(self) -> None:
        """`a.search` and `b.search` can be told apart although both are `search`."""
        normalise = normaliser(Parameters(tool_names="canonical", aliases={"a.search": "first", "b.search": "second"}))

        assert ["first", "second"] == [normalise("a.search"), normalise(" b.search ")]

    def test_called_names(self) -> None:
        """The names of calls come in order, normalised."""
        run = Trajectory(calls=(ToolCall(name="B b"), ToolCall(name="a"), ToolCall(name="B b")))

        assert ("B b", "a", "B b") == called_names(run, normaliser(Parameters()))
        assert ("B_b", "a", "B_b") == called_names(run, normaliser(Parameters(tool_names="sanitized")))


class TestSameTool:
    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            ("search", "search", True),
            ("mcp__travel__get_weather", "get_weather", True),
            ("search", None, True),
            (None, None, True),
            ("search", "book", False),
        ],
    )
    def test_two_spans_of_one_call(self, one: str | None, other: str | None, *, expected: bool) -> None:
        """Two instrumentations may name one tool differently, or one of them not at all."""
        assert (expected, expected) == (same_tool(one, other), same_tool(other, one))


class TestListed:
    def test_is_bounded(self) -> None:
        """A sentence names a few and counts the rest, and cuts names that would fill a page."""
        assert "'a', 'b' and 2 more" == listed(["a", "b", "c", "d"], limit=2)
        assert f"'{'n' * 100}…'" == listed(["n" * 1_000_000])
