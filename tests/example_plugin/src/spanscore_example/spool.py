"""Requests that others put into a directory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

from annotated_types import Gt

from spanscore.contracts import SpanIntake
from spanscore.contracts.settings import Duration, Example, FilePath
from spanscore.errors import RefusedError, TryAgainError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """Which directory, and how often it is looked at."""

    directory: Annotated[FilePath, Example("spool")]
    """Where the files are put."""
    every_s: Annotated[Duration, Gt(0)] = 1.0
    """How often to look."""


class Spool:
    """A directory of OTLP requests: files that end in .json or .pb, each removed when it was taken."""

    Settings: ClassVar = SpoolSettings

    def __init__(self, settings: SpoolSettings, intake: SpanIntake) -> None:
        self._settings = settings
        self._intake = intake
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    def configured(cls, settings: SpoolSettings, intake: SpanIntake) -> Self:
        """Return what looks there, once it is started."""
        return cls(settings, intake)

    async def start(self) -> str:
        """Begin to look."""
        if not self._settings.directory.is_dir():
            message = f"{self._settings.directory} is no directory"
            raise NotADirectoryError(message)
        self._looking = asyncio.create_task(self._look())
        return str(self._settings.directory)

    async def stop(self, grace_s: float) -> None:
        """Look no more; a file that was not taken is there at the next start."""
        del grace_s
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def _look(self) -> None:
        while True:
            wait_s = self._settings.every_s
            for file in await asyncio.to_thread(sorted, self._settings.directory.iterdir()):
                if file.suffix in (".json", ".pb"):
                    wait_s = max(wait_s, await self._take(file))
            await asyncio.sleep(wait_s)

    async def _take(self, file: Path) -> float:
        """Take a file, and return how long to wait before the next look."""
        try:
            request = await asyncio.to_thread(file.read_bytes)
            await self._intake.take(request, is_json=file.suffix == ".json")
        except TryAgainError as busy:
            return busy.retry_after_s
        except RefusedError:
            await asyncio.to_thread(file.rename, file.with_suffix(".refused"))
        else:
            await asyncio.to_thread(file.unlink)
        return 0
