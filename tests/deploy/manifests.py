"""The Kubernetes manifests: what is in the files, and what kustomize makes of them."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deadline import DEADLINE_S

DEPLOY = Path(__file__).parents[2] / "deploy"
FORMS = sorted(path.parent.name for path in (DEPLOY / "kubernetes").glob("*/kustomization.yaml"))


@cache
def built(form: str) -> list[dict[str, Any]]:
    """Return what kustomize makes; skips the test where it is not there."""
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl, 1.21 or later, which has kustomize: https://kubernetes.io/docs/tasks/tools")
    command = ["kubectl", "kustomize", DEPLOY / "kubernetes" / form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return list(yaml.safe_load_all(done.stdout))


@cache
def files() -> dict[str, list[dict[str, Any]]]:
    """Return what is in each file that a kustomization names as a resource."""
    found = {}
    for kustomization in sorted(DEPLOY.rglob("kustomization.yaml")):
        named = yaml.safe_load(kustomization.read_text(encoding="utf-8")).get("resources", ())
        for path in (kustomization.parent / name for name in named if name.endswith(".yaml")):
            found[str(path.relative_to(DEPLOY))] = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    return found
