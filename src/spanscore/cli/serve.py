"""`spanscore serve`: runs the standalone receiver until a signal stops it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spanscore import config as configuration
from spanscore.cli import FAILED, OK
from spanscore.cli._ending_signals import ENDING, end_at_once, on_signals
from spanscore.cli._log import LOGGER, log_to_standard_error
from spanscore.cli._service_manager import ServiceManager, hold_hangups, take_hangups
from spanscore.config import Config
from spanscore.errors import ConfigError, SpanscoreError
from spanscore.messages.printable import printable

if TYPE_CHECKING:
    from spanscore.service.service import Service

_LOOK_AGAIN_S: Final = 0.05

_log = logging.getLogger("spanscore.service")


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Receive OTLP over gRPC and HTTP and score it as it comes. Without a configuration: on localhost:4317 and "
        "localhost:4318, with scores on standard output and as metrics for Prometheus on localhost:9464. "
        "SIGHUP reads the configuration again. At SIGTERM or SIGINT, complete traces are "
        "scored and the command ends; with storage, the default, open traces wait on disk for the next start. "
        "Exit status: 0 ended by a signal, 1 cannot listen or write, 2 usage or configuration."
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration (default: see above)")
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="allow addresses other than localhost without TLS and tokens; use only on a trusted network",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal, and return the exit status."""
    config = _load(arguments.config)
    log_to_standard_error(config.telemetry.log_level, tool_content=config.tool_content and not config.content.mask)
    # gRPC itself writes to standard error, in its own format, and with received data.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    allow_descriptors()
    try:
        asyncio.run(_serve(config, arguments))
    except ConfigError:
        raise
    except SpanscoreError as error:
        print(error, file=sys.stderr)
        return FAILED
    return OK


async def _serve(config: Config, arguments: argparse.Namespace) -> None:
    # Not before gRPC's variable is set.
    from spanscore.cli._greeting import greeting, ready_line  # noqa: PLC0415
    from spanscore.otlp.clean_requests import chosen  # noqa: PLC0415
    from spanscore.service.service import Service  # noqa: PLC0415

    decoder = chosen()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_tell)
    ended = asyncio.Event()
    manager = ServiceManager()

    def end() -> None:
        _log.info("ending; a second signal ends at once")
        manager.stopping()
        ended.set()
        end_at_once()

    on_signals(end, *ENDING)
    service = Service(config, insecure=arguments.insecure)
    gc.collect()
    gc.freeze()  # the stored requests may be those of hours
    await service.start()
    _take_hangups(loop, service.reload, arguments.config, manager)
    try:
        await _first_of(service.ready(), ended.wait())
        if not ended.is_set():
            gc.freeze()
            troubles = service.troubles
            print(greeting(service.addresses, config, decoder, troubles), file=sys.stderr, flush=True)
            await _readiness(service, ended)
            if not ended.is_set():
                if troubles:
                    print(ready_line(), file=sys.stderr, flush=True)
                manager.ready()
        await ended.wait()
    finally:
        hold_hangups()  # the loop removes its handler
        await service.stop()
    _log.info("ended")


async def _first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of them, and cancel the others. Raises the error of the first."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()


def _take_hangups(
    loop: asyncio.AbstractEventLoop, reload: Callable[[Config], None], path: Path | None, manager: ServiceManager
) -> None:
    is_due = False

    def hear() -> None:
        # All hangups during a reload count as one: else frequent hangups would leave no time for other work.
        nonlocal is_due
        if not is_due:
            is_due = True
            loop.call_soon(read_again)

    def read_again() -> None:
        nonlocal is_due
        is_due = False
        with manager.reloading():
            _reload(reload, path)

    if hasattr(signal, "SIGHUP"):  # Windows has none: there, a restart reads the configuration again
        loop.add_signal_handler(signal.SIGHUP, hear)
        take_hangups()


async def _readiness(service: Service, ended: asyncio.Event) -> None:
    """Wait until the service is ready, or ends."""
    while service.troubles and not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_AGAIN_S)


def _load(path: Path | None) -> Config:
    return (configuration.load(path) if path is not None else configuration.default()).for_serve()


def _check_again(path: Path) -> None:
    """Raise ConfigError if a file is empty, which would be the defaults, or a pipe, which may never end."""
    problem = None
    with suppress(OSError):  # that it cannot be read is told by what reads it
        if path.is_fifo():
            problem = "a pipe, which can be read only once"
        elif path.is_file() and not path.read_bytes().strip():
            problem = "empty"
    if problem is not None:
        raise ConfigError(f"{printable(str(path), 4_096)} is {problem}")


def _reload(reload: Callable[[Config], None], path: Path | None) -> None:
    if path is None:
        _log.warning("there is no configuration file to read again")
        return
    try:
        _check_again(path)
        config = _load(path)
    except ConfigError as error:
        for line in str(error).splitlines():
            _log.error("the configuration stays as it was: %s", line)
    else:
        logging.getLogger(LOGGER).setLevel(config.telemetry.log_level.upper())
        reload(config)


def _tell(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log uncaught errors: mostly of a client that went away, or one that does not speak TLS."""
    error = context.get("exception")
    known = isinstance(error, OSError)
    _log.log(logging.DEBUG if known else logging.ERROR, "%s", context.get("message"), exc_info=None if known else error)


MOST: Final = 4_096
"""Twice as many as connections over HTTP and gRPC: those that are in their TLS handshake are not counted."""


def allow_descriptors() -> None:
    """Raise the soft limit, as far as the hard one allows: often it is 1,024, less than the connections that are taken.

    Without descriptors, no client is let in, and nothing can be stored.
    """
    if sys.platform != "win32":
        with suppress(ImportError, OSError, ValueError):
            import resource  # noqa: PLC0415 - not every system has it

            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
            if soft != resource.RLIM_INFINITY and soft < most:
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
