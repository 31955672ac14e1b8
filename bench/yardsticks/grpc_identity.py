"""A grpc.aio server that answers each request with nothing and does not parse it."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio

_UNLIMITED = [("grpc.max_receive_message_length", -1)]


async def _serve() -> None:
    server = grpc.aio.server(options=_UNLIMITED)
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        _answer
    )  # without deserialisers: bytes in, bytes out
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"grpc {port}", flush=True)
    await server.wait_for_termination()


async def _answer(_request: bytes, _context: Any) -> bytes:
    return b""


if __name__ == "__main__":
    asyncio.run(_serve())
