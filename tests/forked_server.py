"""`spanscore serve` in a process that is forked from one that has imported everything: it starts faster."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any, Final

from deadline import DEADLINE_S


class ForkedServer:
    """A server with the configuration of a file; it can be started again after its end."""

    def __init__(self, configuration: Path, log: Path) -> None:
        self.log: Final = log
        self._configuration: Final = configuration
        self._context: Final[Any] = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["spanscore.cli.serve", "spanscore.service.service", "spanscore.config"])
        self._process: Any = None

    def start(self) -> None:
        """Start it."""
        self._process = self._context.Process(target=_serve, args=(self._configuration, self.log))
        self._process.start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return bool(self._process.is_alive())

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        self._process.kill()
        self._process.join(DEADLINE_S)

    def stop(self) -> None:
        """End it as an operator does."""
        self._process.terminate()
        self._process.join(DEADLINE_S)
        assert self._process.exitcode == 0, self.log.read_text()


def _serve(configuration: Path, log: Path) -> None:
    """Run the command in a process that was just forked."""
    from spanscore import cli  # noqa: PLC0415 - in the child

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 2)
    os.chdir(configuration.parent)
    sys.exit(cli.main(["serve", "--config", str(configuration)]))
