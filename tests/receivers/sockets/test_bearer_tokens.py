from __future__ import annotations

import os
from pathlib import Path

import pytest

from spanscore.errors import ConfigError
from spanscore.receivers.sockets.bearer import BearerTokens


class Clock:
    """Seconds that a test tells."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


@pytest.mark.parametrize(
    ("authorization", "accepted"),
    [
        ("Bearer first", True),
        ("bearer  second", True),
        (b"Bearer first", True),
        ("Bearer third", False),
        ("Bearer", False),
        ("Bearer # comment", False),
        ("first", False),
        ("Basic first", False),
        ("Bearer \udcff", False),
        (b"Bearer \xff", False),
        ("", False),
        (None, False),
    ],
)
def test_a_token_of_the_file_lets_in(tmp_path: Path, authorization: str | bytes | None, *, accepted: bool) -> None:
    """Each line is a token, except comments and empty lines."""
    path = tmp_path / "tokens"
    path.write_text("# comment\n\nfirst\n  second  \n")

    assert accepted == BearerTokens(path).accept([] if authorization is None else [authorization])


def test_a_changed_file_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Within a second new tokens count and old ones do not; a file that became unusable changes nothing."""
    path, clock = tmp_path / "tokens", Clock()
    path.write_text("old")
    tokens = BearerTokens(path, clock)
    path.write_text("new one")
    assert tokens.accept(["Bearer old"])
    clock.now = 1.0
    assert [False, True] == [tokens.accept([f"Bearer {token}"]) for token in ("old", "new one")]
    path.write_text("# nothing")
    clock.now = 2.0
    assert tokens.accept(["Bearer new one"])
    path.unlink()
    clock.now = 3.0
    assert tokens.accept(["Bearer new one"])

    assert [
        f"the bearer tokens stay as they were: {path}: has no token; write one a line",
        f"the bearer tokens stay as they were: {path}: cannot be read: {os.strerror(2)}",
    ] == caplog.messages


@pytest.mark.parametrize("content", [None, b"", b"# only a comment\n", b"\xff"])
def test_a_file_without_tokens_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    """Nobody could send with it, or everybody could think so."""
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{path}: "):
        BearerTokens(path)
