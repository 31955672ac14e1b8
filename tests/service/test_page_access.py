"""Who may read the runs: with a bearer token where other machines can ask, and the metrics without."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.test_live_page import Served, served
from serving import DEADLINE_S, ON_ANY_PORT, Running, serving
from spanscore.errors import ConfigError
from spanscore.receivers.sockets.bearer import BearerTokens

EVERYWHERE = ON_ANY_PORT.replace('prometheus: {endpoint: "127.0.0.1:0"}', 'prometheus: {endpoint: "0.0.0.0:0"}')
RUNS = ("/", "/runs.json")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Return a file with two tokens."""
    path = tmp_path / "tokens.txt"
    path.write_text("# of the proxy\nsecret\nolder\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def statuses(running: Running, *paths: str, **headers: str) -> list[int]:
    """Return the status of each page."""
    port = int(running.pages.rpartition(":")[2])
    found = []
    for path in paths:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        connection.request("GET", path, headers=headers)
        found.append(connection.getresponse().status)
        connection.close()
    return found


@pytest.mark.parametrize("base", [EVERYWHERE, ON_ANY_PORT])
def test_the_runs_are_for_those_with_the_token(base: str, tokens: Path) -> None:
    """On every address, on loopback too; metrics and health are as they were."""
    with serving(f"{base}\npage: {{runs: 5, bearer_token_file: {tokens}}}") as running:
        assert [401, 401] == statuses(running, *RUNS)
        assert [401, 401] == statuses(running, *RUNS, Authorization="Bearer guess")
        assert [200, 200] == statuses(running, *RUNS, Authorization="Bearer secret")
        assert [200, 200] == statuses(running, *RUNS, Authorization="bearer older")
        assert [200, 200] == statuses(running, "/metrics", "/livez")


def test_without_a_token_it_is_for_this_machine(caplog: pytest.LogCaptureFixture) -> None:
    """Elsewhere nothing starts, and the message says what would; --insecure does, with a warning."""
    with pytest.raises(ConfigError) as raised, serving(f"{EVERYWHERE}\npage: {{runs: 5}}"):
        pass
    assert (
        "page: 0.0.0.0:0 can be reached from other machines: configure 'bearer_token_file', or 'runs: 0' for no page - "
        "or start with --insecure, where the network itself keeps others out"
    ) == str(raised.value)

    with serving(f"{EVERYWHERE}\npage: {{runs: 5}}", insecure=True) as running:
        assert [200, 200] == statuses(running, *RUNS)
    assert "page: other machines can read the last runs at 0.0.0.0:0 without a token" in caplog.messages


@pytest.mark.parametrize("more", ["", "page: {runs: 0}"])
def test_where_there_is_no_page_nothing_is_asked_for(more: str) -> None:
    """Metrics alone may be read from everywhere, as before."""
    with serving(f"{EVERYWHERE}\n{more}") as running:
        assert [404, 404, 200] == statuses(running, *RUNS, "/metrics")


def test_a_token_for_no_page_is_told(tokens: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Elsewhere than on loopback the page is there only if it is asked for."""
    with serving(f"{EVERYWHERE}\npage: {{bearer_token_file: {tokens}}}") as running:
        assert [404] == statuses(running, "/", Authorization="Bearer secret")
    assert "page.bearer_token_file has no effect: there is no page; 'page.runs' switches it on" in caplog.messages


@contextmanager
def guarded(tokens: Path) -> Iterator[Served]:
    """Serve the page and the runs to those with a token."""
    with served(tokens=BearerTokens(tokens), names=["spans.example"]) as page:
        yield page


@pytest.mark.parametrize("path", RUNS)
def test_a_wrong_token_is_told_and_nothing_else(path: str, tokens: Path) -> None:
    """Two headers are none, too: a proxy may have checked the other one."""
    wrong = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer secre",
        "Bearer secret older",
        "Basic secret",
        "secret",
        "Bearer " + "x" * 7_000,
    ]
    wrong += ["Bearer sécret", "Bearer # of the proxy", "Bearer\tsecret"]
    with guarded(tokens) as page:
        for each in wrong:
            status, headers, text = page.ask(path, Authorization=each.encode().decode("latin-1"))
            assert (401, "Bearer", "nosniff") == (
                status,
                headers["WWW-Authenticate"],
                headers["X-Content-Type-Options"],
            )
            assert "a valid bearer token is needed; browsers get it from a proxy in front of this page\n" == text
        assert 401 == page.ask(path, "HEAD")[0]
        connection = http.client.HTTPConnection(*page.address, timeout=DEADLINE_S)
        connection.putrequest("GET", path)
        for _ in range(2):
            connection.putheader("Authorization", "Bearer secret")
        connection.endheaders()
        assert 401 == connection.getresponse().status
        connection.close()


def test_a_token_opens_to_its_own_site_and_names_alone(tokens: Path) -> None:
    """What guards a page without a token guards one with it, too; places for readers are for those who may read."""
    with guarded(tokens) as page:
        page.show(1)
        right = {"Authorization": "Bearer secret"}
        for path in RUNS:
            assert 421 == page.ask(path, Host="evil.example", **right)[0]
            assert 200 == page.ask(path, Host="spans.example", **right)[0]
            assert 403 == page.ask(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors", **right)[0]
            assert 405 == page.ask(path, "OPTIONS")[0]
            status, headers, _ = page.ask(path, **right)
            assert (200, 304) == (status, page.ask(path, If_None_Match=headers["ETag"], **right)[0])
            assert 401 == page.ask(path, If_None_Match=headers["ETag"])[0]


def test_tokens_are_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that is added is accepted, one that is taken out is not, while all goes on."""
    caplog.set_level(logging.INFO)
    path, now = tmp_path / "tokens.txt", [0.0]
    path.write_text("old", encoding="utf-8")
    with served(tokens=BearerTokens(path, lambda: now[0])) as page:
        assert [200, 401] == [page.ask(Authorization=f"Bearer {each}")[0] for each in ("old", "new")]
        path.write_text("newer\nnew", encoding="utf-8")
        now[0] += 1
        assert [401, 200] == [page.ask(Authorization=f"Bearer {each}")[0] for each in ("old", "new")]
    assert ["read the bearer tokens again: 2"] == caplog.messages
