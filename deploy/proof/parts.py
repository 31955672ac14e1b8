"""The parts of the proof, each of which can be run by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import compose_proof
import files_proof
import forms_proof
import gateway_proof
import grafana_proof
import image_proof
import keep_proof
import page_proof
import systemd_proof
from programs import (
    AMTOOL,
    CHROMIUM,
    COLLECTOR,
    COMPOSE,
    GRAFANA,
    HELM,
    JAEGER,
    OAUTH2_PROXY,
    PHOENIX,
    PROMETHEUS,
    PROMTOOL,
    ROOT,
    SYSTEMD,
    Programs,
)
from results import Results


@dataclass(frozen=True, slots=True)
class Asked:
    """What a part has to do with."""

    results: Results
    programs: Programs
    directory: Path
    """An empty one."""
    kept: Path | None
    """Where what was built is kept, if anywhere."""
    pictures: Path | None


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the claims."""

    name: str
    what: str
    needs: tuple[str, ...]
    prove: Callable[[Asked], None]
    left_because: str = ""
    """Why the short form leaves it out, if it does."""

    @property
    def is_short(self) -> bool:
        """Whether CI has time for it."""
        return not self.left_because


PARTS: Final = (
    Part(
        "files",
        "the files, checked by the programs they are for",
        (PROMTOOL, AMTOOL, COMPOSE, HELM, COLLECTOR),
        lambda asked: files_proof.prove(asked.results, asked.programs),
    ),
    Part(
        "compose",
        "the stack of deploy/compose, from the sample agent to the queries of the boards",
        (COLLECTOR, JAEGER, PROMETHEUS),
        lambda asked: compose_proof.prove(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "collectors",
        "beside a Collector, and in line with one",
        (COLLECTOR, JAEGER),
        lambda asked: forms_proof.prove_collectors(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "keep",
        "the section `keep` in line with a Collector",
        (COLLECTOR, JAEGER),
        lambda asked: keep_proof.prove(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "gateway",
        "the Collector and the two replicas of deploy/kubernetes/gateway",
        (COLLECTOR, JAEGER),
        lambda asked: gateway_proof.prove(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "sidecar",
        "an agent with the configuration of deploy/kubernetes/sidecar",
        (JAEGER,),
        lambda asked: forms_proof.prove_sidecar(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "page",
        "the page for a team of deploy/kubernetes/page, behind oauth2-proxy",
        (OAUTH2_PROXY,),
        lambda asked: page_proof.prove(asked.results, asked.programs, asked.directory),
    ),
    Part(
        "image",
        "the image's environment as each manifest runs it: its user, no rights, a root that cannot be written",
        (ROOT,),
        lambda asked: image_proof.prove(asked.results, asked.programs, asked.directory, asked.kept),
    ),
    Part(
        "systemd",
        "the unit of deploy/systemd, by a system's instance of systemd",
        (ROOT, SYSTEMD),
        lambda asked: systemd_proof.prove(asked.results, asked.programs, asked.directory, asked.kept),
        "it changes the machine's control groups",
    ),
    Part(
        "grafana",
        "the boards in a real Grafana, looked at with Chromium",
        (COLLECTOR, JAEGER, PROMETHEUS, PROMTOOL, GRAFANA, CHROMIUM),
        lambda asked: grafana_proof.prove(asked.results, asked.programs, asked.directory, asked.pictures),
        "no Grafana comes from a package registry",
    ),
    Part(
        "phoenix",
        "Arize Phoenix in Jaeger's place",
        (COLLECTOR, PHOENIX),
        lambda asked: forms_proof.prove_phoenix(asked.results, asked.programs, asked.directory),
        "an environment of its own, with some hundred packages",
    ),
)
