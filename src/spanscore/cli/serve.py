"""`spanscore serve`: the standalone receiver, until it is told to end."""

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
from spanscore.cli._log import LOGGER, log_to_standard_error
from spanscore.cli._overview import SUMMARIES
from spanscore.cli._service_manager import ServiceManager, hold_hangups, take_hangups
from spanscore.config import Config
from spanscore.errors import ConfigError, SpanscoreError

if TYPE_CHECKING:
    from spanscore.service.service import Service

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOOK_AGAIN_S: Final = 0.05
_COLLECT_AFTER: Final = (50_000, 20, 100)
"""Measured with 5,000 open traces: the longest pause falls from 40 ms to 10 ms, and each span costs 8 % less."""

_log = logging.getLogger("spanscore.service")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "serve",
        help=SUMMARIES["serve"],
        description=(
            "Receive OTLP over gRPC and HTTP and score it as it comes. Without a configuration: on localhost:4317 and "
            "localhost:4318, with scores on standard output and as metrics for Prometheus on localhost:9464. "
            "SIGHUP reads the configuration again; SIGTERM and SIGINT score what is complete and "
            "end; the rest is kept for the next start. "
            "Exit status: 0 ended by a signal, 1 cannot listen or write, 2 usage or configuration."
        ),
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration (default: see above)")
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="let other machines send without TLS and authentication, where the network keeps strangers out",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal, and return the exit status."""
    config = _load(arguments.config)
    log_to_standard_error(config.telemetry.log_level, tool_content=config.tool_content)
    # gRPC writes to standard error by itself, in lines of its own form that hold what clients sent.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
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
    from spanscore.cli._greeting import greeting  # noqa: PLC0415
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
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end)
    service = Service(config, insecure=arguments.insecure)
    _calm_the_garbage_collector()  # what is stored may be as much as is received in hours
    await service.start()
    _take_hangups(loop, service.reload, arguments.config, manager)
    try:
        await _first_of(service.ready(), ended.wait())
        if not ended.is_set():
            gc.freeze()
            print(greeting(service.addresses, config, decoder), file=sys.stderr, flush=True)
            await _tell_ready(service, ended, manager)
        await ended.wait()
    finally:
        hold_hangups()  # the loop lets go of its handler
        await service.stop()
    _log.info("ended")


async def _first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for one of them, and give up the others. Raises what that one raises."""
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
        # All hangups that come before it is done are one: else whoever hangs up often leaves no time for anything else.
        nonlocal is_due
        if not is_due:
            is_due = True
            loop.call_soon(read_again)

    def read_again() -> None:
        nonlocal is_due
        is_due = False
        with manager.reloading():
            _reload(reload, path)

    loop.add_signal_handler(signal.SIGHUP, hear)
    take_hangups()


async def _tell_ready(service: Service, ended: asyncio.Event, manager: ServiceManager) -> None:
    """Tell the service manager, where there is one, when everything is well."""
    while manager.is_told and not service.is_ready and not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_AGAIN_S)
    if not ended.is_set():
        manager.ready()


def _load(path: Path | None) -> Config:
    return (configuration.load(path) if path is not None else configuration.default()).for_serve()


def _reload(reload: Callable[[Config], None], path: Path | None) -> None:
    if path is None:
        _log.warning("there is no configuration file to read again")
        return
    try:
        config = _load(path)
    except ConfigError as error:
        for line in str(error).splitlines():
            _log.error("the configuration stays as it was: %s", line)
    else:
        logging.getLogger(LOGGER).setLevel(config.telemetry.log_level.upper())
        reload(config)


def _calm_the_garbage_collector() -> None:
    """Let it look rarely, and not at what stays for ever: spans of open traces are many, and hold no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _tell(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody caught: mostly a client that went away, or one that does not speak TLS."""
    error = context.get("exception")
    known = isinstance(error, OSError)
    _log.log(logging.DEBUG if known else logging.ERROR, "%s", context.get("message"), exc_info=None if known else error)
