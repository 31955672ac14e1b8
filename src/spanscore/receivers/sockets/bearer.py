"""Bearer tokens: a file with one token a line, read again when it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from spanscore.errors import ConfigError
from spanscore.watched_files import WatchedFiles


class BearerTokens:
    """Knows whose requests are let in.

    Args:
        path: a file with one token a line; empty lines and lines that start with # do not count.
        clock: seconds that never run backwards.

    Raises:
        ConfigError: the file cannot be read, or has no token.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._digests = WatchedFiles(
            [path],
            lambda: _read(path),
            "the bearer tokens",
            lambda digests: f"the bearer tokens again: {len(digests)}",
            clock,
        )

    def accept(self, authorizations: Sequence[str | bytes]) -> bool:
        """Return whether there is exactly one Authorization header, and it has one of the tokens.

        If there are two, a proxy before us may have checked the other one.
        """
        self._digests.look_again()
        if len(authorizations) != 1:
            return False
        authorization = authorizations[0]
        if isinstance(authorization, bytes):
            authorization = authorization.decode("utf-8", "surrogateescape")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return False
        digest = _digest(token.strip())
        # Digests have one length, and all of them are compared: the time taken reveals nothing.
        return sum(compare_digest(digest, known) for known in self._digests.content) > 0


def _read(path: Path) -> tuple[bytes, ...]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it must be UTF-8'}"
        raise ConfigError(message) from error
    tokens = [line.strip() for line in lines]
    digests = tuple(_digest(token) for token in tokens if token and not token.startswith("#"))
    if not digests:
        message = f"{path}: has no token; write one a line"
        raise ConfigError(message)
    return digests


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
