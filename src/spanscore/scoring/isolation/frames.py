"""The frames between us and the process that runs evaluators: requests as pickles of our own, answers as JSON.

No object of an evaluator is unpickled here: its process gets our objects, and returns text.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from typing import Any, Final, get_args

from spanscore.model import Failed, Lack, Outcome, Score, Skipped
from spanscore.model.outcomes import MAX_MESSAGE_CHARS, MendedBy, checked, failure

LARGEST_ANSWER: Final = 16 * 2**20

_HEAD: Final = struct.Struct("!QdB")
_CHUNK: Final = 2**16


def send(connection: socket.socket, kind: int, limit_s: float, content: bytes) -> None:
    """Send a frame.

    Args:
        connection: the connection to the other process.
        kind: the kind of the request.
        limit_s: the time limit for the answer, in seconds.
        content: the content of the frame.
    """
    connection.sendall(_HEAD.pack(len(content), limit_s, kind) + content)


def receive(connection: socket.socket, largest: int, deadline: float = math.inf) -> tuple[int, float, bytes]:
    """Receive a frame.

    Args:
        connection: to the other side.
        largest: how long it may be.
        deadline: when it must be there, on the clock of `time.monotonic`.

    Raises:
        EOFError: the other side is gone.
        TimeoutError: it takes too long.
    """
    length, limit_s, kind = _HEAD.unpack(_exactly(connection, _HEAD.size, deadline))
    if length > largest:
        raise EOFError(f"an answer of {length} bytes is too long")
    return kind, limit_s, _exactly(connection, length, deadline)


def encoded(outcome: object) -> bytes:
    """Return an evaluator's outcome as JSON: checked, and a failure if it cannot be encoded."""
    try:
        content = json.dumps(_told(checked(outcome)), default=str).encode()
    except BaseException as error:  # noqa: BLE001 - the evaluator's own code converts its outcome to text
        content = json.dumps(_told(failure(error))).encode()
    if len(content) > LARGEST_ANSWER:
        return json.dumps(_told(Failed("InvalidResult", f"an answer of {len(content)} bytes is too long"))).encode()
    return content


def decoded(content: bytes) -> Outcome:
    """Return an answer that was sent.

    Raises:
        ValueError: it is none.
    """
    match json.loads(content):
        case {
            "value": float() | int() as value,
            "passed": bool() as passed,
            "explanation": str() as explanation,
            "details": dict() as details,
            "without_content": None | str() as plain,
            "mended_by": int() as mended_by,
        }:
            return checked(Score(value, passed, explanation, details, plain, MendedBy(mended_by)))
        case {"reason": str() as reason, "lacks": list() as lacks}:
            return Skipped(reason, tuple(lack for lack in get_args(Lack) if lack in lacks))
        case {"error_type": str() as error_type, "message": str() as told}:
            return Failed(error_type, told[:MAX_MESSAGE_CHARS])
    raise ValueError("the answer is none of an evaluator")


def _told(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Score(value, passed, explanation, details, plain, mended_by):
            told = {"value": value, "passed": bool(passed), "explanation": str(explanation), "details": dict(details)}
            return {**told, "without_content": None if plain is None else str(plain), "mended_by": int(mended_by)}
        case Skipped(reason, lacks):
            return {"reason": str(reason), "lacks": list(lacks)}
        case Failed(error_type, message):
            return {"error_type": str(error_type), "message": str(message)}


def _exactly(connection: socket.socket, length: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < length:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(None if left_s == math.inf else left_s)
        chunk = connection.recv(min(_CHUNK, length - len(received)))
        if not chunk:
            raise EOFError("the process is gone")
        received += chunk
    return bytes(received)
