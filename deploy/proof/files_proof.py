"""What the programs themselves say about the shipped files, without running them for long."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from programs import AMTOOL, COLLECTOR, COMPOSE, HELM, PROMTOOL, Programs
from results import Results
from shipped import DEPLOY

_COLLECTORS: Final = (
    "compose/collector.yaml",
    "collector/side.yaml",
    "collector/in-line.yaml",
    "collector/webhook.yaml",
    "kubernetes/gateway/collector-config.yaml",
)


def prove(results: Results, programs: Programs) -> None:
    """Let promtool, amtool, Compose, Helm and the Collector check their files."""
    results.section("The files, checked by the programs they are for")
    promtool = programs.find(PROMTOOL)
    if not results.lacks(programs, "promtool: configuration, rules and their unit tests", PROMTOOL) and promtool:
        tests = sorted(map(str, (DEPLOY / "prometheus/tests").glob("*.yaml")))
        results.check("promtool: configuration", partial(_run, promtool, "check", "config", _prometheus()))
        results.check("promtool: rules", partial(_run, promtool, "check", "rules", _rules()))
        results.check("promtool: unit tests of the rules", partial(_run, promtool, "test", "rules", *tests))
    amtool = programs.find(AMTOOL)
    if not results.lacks(programs, "amtool: deploy/prometheus/alertmanager.yaml", AMTOOL) and amtool:
        results.check(
            "amtool: deploy/prometheus/alertmanager.yaml", partial(_run, amtool, "check-config", _alertmanager())
        )
    compose = programs.find(COMPOSE)
    if not results.lacks(programs, "Compose: deploy/compose/compose.yaml", COMPOSE) and compose:
        results.check("Compose: deploy/compose/compose.yaml", partial(_compose, compose))
    helm = programs.find(HELM)
    if not results.lacks(programs, "Helm: the chart of deploy/helm", HELM) and helm:
        chart = str(DEPLOY / "helm")
        for options in ((), ("--values", f"{chart}/values-kafka.yaml")):
            results.check(
                " ".join(("Helm: the chart of deploy/helm", *(Path(each).name for each in options[1:]))),
                partial(_run, helm, "lint", "--strict", chart, "--set", "image.repository=spanscore", *options),
            )
    collector = programs.find(COLLECTOR)
    for shipped in _COLLECTORS:
        claim = f"the Collector: deploy/{shipped}"
        if not results.lacks(programs, claim, COLLECTOR) and collector:
            results.check(claim, partial(_run, collector, "validate", f"--config={DEPLOY / shipped}"))


def _compose(program: Path) -> str:
    services = yaml.safe_load(_said(program, str(DEPLOY / "compose/compose.yaml")))["services"]
    return f"valid, with {', '.join(services)}"


def _run(program: Path, *arguments: str) -> str:
    lines = _said(program, *arguments).splitlines()
    return " | ".join(line.strip() for line in lines if line.strip()) or "valid"


def _said(program: Path, *arguments: str) -> str:
    environment = {**os.environ, "SPANSCORE_TOKEN": "a token"}
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _prometheus() -> str:
    return str(DEPLOY / "prometheus/prometheus.yaml")


def _rules() -> str:
    return str(DEPLOY / "prometheus/rules.yaml")


def _alertmanager() -> str:
    return str(DEPLOY / "prometheus/alertmanager.yaml")
