"""The manifests have the fields that Kubernetes and the Prometheus operator know, of the right types, and no other."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
from jsonschema import Draft202012Validator, ValidationError

from cases import failing
from deploy.manifests import FORMS, built, files

VERSIONS = ["1.29", kubernetes_validate.latest_version()]


def check(manifest: dict[str, Any], version: str = VERSIONS[-1]) -> None:
    """Raise jsonschema's ValidationError where a manifest is wrong."""
    if manifest["apiVersion"].startswith("monitoring.coreos.com/"):
        operators(manifest["kind"]).validate(manifest)
    else:
        kubernetes_validate.validate(manifest, version, strict=True)


@cache
def operators(kind: str) -> Draft202012Validator:
    """Return the operator's own schema of a kind; its models let unknown fields pass, so they are closed here."""
    from cloudcoil.models.prometheus_operator import v1 as operator  # noqa: PLC0415 - two seconds, and 60 MB

    schema = getattr(operator, kind).model_json_schema(by_alias=True)
    for each in (schema, *schema["$defs"].values()):
        if "properties" in each:
            each.setdefault("additionalProperties", False)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Import the operator's models before a test that is measured."""
    operators("ServiceMonitor")


@pytest.mark.parametrize("version", VERSIONS)
def test_files_fit(version: str) -> None:
    """Each file of manifests fits as it is."""

    def fits(manifests: list[dict[str, Any]]) -> None:
        assert manifests
        for manifest in manifests:
            check(manifest, version)

    assert [] == failing(fits, {path: (manifests,) for path, manifests in files().items()})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_applied_fits(form: str, version: str) -> None:
    """What kustomize makes of them, with its patches, fits too."""
    assert built(form)
    for manifest in built(form):
        check(manifest, version)


def _first(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["spec"]["template"]["spec"]["containers"][0]  # type: ignore[no-any-return] # YAML


MISTAKES: list[tuple[str, str, Callable[[dict[str, Any]], object]]] = [
    ("kubernetes/base/statefulset.yaml", "a field misspelt", lambda each: _first(each).update(livenesProbe={})),
    ("kubernetes/base/statefulset.yaml", "a wrong type", lambda each: each["spec"].update(replicas="two")),
    ("kubernetes/base/statefulset.yaml", "nothing selected", lambda each: each["spec"].pop("selector")),
    ("kubernetes/base/networkpolicy.yaml", "a wrong level", lambda each: each.update(ingress=[])),
    ("kubernetes/monitoring/podmonitor.yaml", "misspelt", lambda each: each["spec"].update(nameSpaceSelector={})),
    (
        "kubernetes/monitoring/podmonitor.yaml",
        "a wrong type below",
        lambda each: each["spec"]["namespaceSelector"].update(any="true"),
    ),
    (
        "kubernetes/monitoring/servicemonitor.yaml",
        "no duration",
        lambda each: each["spec"]["endpoints"][0].update(interval="15 seconds"),
    ),
    ("kubernetes/monitoring/servicemonitor.yaml", "metadata", lambda each: each["metadata"].update(label={})),
    (
        "prometheus/kubernetes/prometheusrule.yaml",
        "a rule without a query",
        lambda each: each["spec"]["groups"][0]["rules"][0].pop("expr"),
    ),
]


@pytest.mark.parametrize(("path", "mistake", "make"), MISTAKES, ids=[f"{path}-{what}" for path, what, _ in MISTAKES])
def test_mistakes_are_found(path: str, mistake: str, make: Callable[[dict[str, Any]], object]) -> None:
    """What Kubernetes would refuse or drop in silence does not pass here."""
    manifest = copy.deepcopy(files()[path][0])
    make(manifest)

    with pytest.raises(ValidationError):
        check(manifest)
