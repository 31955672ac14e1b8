"""An aiohttp server that throws the body away, on the fastest event loop there is."""

from __future__ import annotations

import asyncio

import uvloop
from aiohttp import web


async def _serve() -> None:
    runner = web.ServerRunner(web.Server(_answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http {runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


async def _answer(request: web.BaseRequest) -> web.Response:
    await request.content.read()
    return web.Response(content_type="application/x-protobuf")


if __name__ == "__main__":
    uvloop.run(_serve())
