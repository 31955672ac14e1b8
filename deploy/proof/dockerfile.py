"""What deploy/docker/Dockerfile says, as far as it can be done without an engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from shipped import DEPLOY

PATH: Final = DEPLOY / "docker" / "Dockerfile"


@dataclass(slots=True)
class Image:
    """What the Dockerfile makes."""

    copied: list[str] = field(default_factory=list)
    """The files of the repository that the first stage takes."""
    steps: list[str] = field(default_factory=list)
    """What the first stage runs."""
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    volume: str = ""
    health: list[str] = field(default_factory=list)
    entry_point: list[str] = field(default_factory=list)


def read() -> Image:
    """Return what it says."""
    _, first, last = PATH.read_text(encoding="utf-8").split("\nFROM ")
    image = Image()
    for instruction, rest in _instructions(first):
        match instruction:
            case "RUN":
                image.steps.append(rest)
            case "COPY":
                image.copied += rest.split()[:-1]
    for instruction, rest in _instructions(last):
        match instruction:
            case "ENV":
                image.environment |= dict(each.split("=", 1) for each in rest.split())
            case "USER":
                image.user = rest
            case "VOLUME":
                image.volume = rest
            case "HEALTHCHECK":
                image.health = json.loads(rest.partition(" CMD ")[2])
            case "ENTRYPOINT":
                image.entry_point = json.loads(rest)
    return image


def _instructions(stage: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in stage.splitlines()[1:] if not line.startswith("#")]
    # What a line that goes on begins with is a part of it.
    for line in re.sub(r"\\\n", "", "\n".join(lines)).splitlines():
        instruction, _, rest = line.partition(" ")
        yield instruction, rest.strip()
