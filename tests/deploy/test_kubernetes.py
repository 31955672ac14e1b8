"""The Kubernetes manifests fit the published schemas and each other."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deadline import DEADLINE_S

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
FORMS = ["base", "gateway", "kafka", "sidecar", "monitoring"]
OPERATORS = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
NEEDS_SCHEMAS = "needs the package kubernetes-validate: pip install --group manifests"
OLDEST_AND_NEWEST = ["1.29", "1.35"]

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="needs the program kubectl, 1.21 or later, which has kustomize in it: https://kubernetes.io/docs/tasks/tools",
)


@cache
def built(form: str) -> list[dict[str, Any]]:
    """Return what kustomize makes."""
    command = ["kubectl", "kustomize", KUBERNETES / form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return list(yaml.safe_load_all(done.stdout))


def pod_specs(form: str) -> Iterator[dict[str, Any]]:
    """Yield the pods that a form makes."""
    for manifest in built(form):
        if "template" in manifest.get("spec", {}):
            yield manifest["spec"]["template"]["spec"]


def containers(form: str) -> Iterator[dict[str, Any]]:
    """Yield the containers that a form makes."""
    for pod in pod_specs(form):
        yield from (*pod.get("initContainers", ()), *pod["containers"])


@pytest.mark.parametrize("version", OLDEST_AND_NEWEST)
@pytest.mark.parametrize("form", FORMS)
def test_manifests_fit_the_schemas(form: str, version: str) -> None:
    """Every manifest has the keys that Kubernetes knows, and no other."""
    validate = pytest.importorskip("kubernetes_validate", reason=NEEDS_SCHEMAS).validate
    checked = [manifest for manifest in built(form) if manifest["kind"] not in OPERATORS]
    for manifest in checked:
        validate(manifest, version, strict=True)

    assert checked


@pytest.mark.parametrize("form", ["base", "gateway", "kafka", "sidecar"])
def test_containers_have_no_rights_and_bounds(form: str) -> None:
    """No container runs as root, gains rights, or writes to its image; each has bounds and a version."""
    for pod in pod_specs(form):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
    for container in containers(form):
        context = container["securityContext"]
        assert (False, True) == (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"])
        assert {"drop": ["ALL"]} == context["capabilities"]
        assert {"requests", "limits"} == container["resources"].keys()
        assert re.fullmatch(r".+:\d+\.\d+\.\d+", container["image"])


@pytest.mark.parametrize("form", ["base", "gateway", "kafka", "sidecar"])
def test_what_a_pod_names_is_there(form: str) -> None:
    """Config maps that pods mount are made, services and budgets select pods, and probes ask ports that are open."""
    made = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in built(form)}
    templates = [manifest["spec"]["template"] for manifest in built(form) if "template" in manifest.get("spec", {})]
    pods = [template["metadata"]["labels"] for template in templates]
    for pod in pod_specs(form):
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in made
    for container in containers(form):
        ports = {port["name"] for port in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container.get(probe, {})
            assert {each["port"] for key in ("httpGet", "tcpSocket") if (each := asked.get(key))} <= ports
    for manifest in built(form):
        if manifest["kind"] in {"Service", "PodDisruptionBudget"}:
            selector = manifest["spec"]["selector"]
            wanted = selector.get("matchLabels", selector)
            assert any(wanted.items() <= labels.items() for labels in pods), manifest["metadata"]["name"]


def test_operator_scrapes_ports_that_are_there() -> None:
    """The monitors select the service and the pods that the other forms make, by labels that they have."""
    monitors = {each["kind"]: each["spec"] for each in built("monitoring") if each["kind"] in OPERATORS}
    (service,) = (each for each in built("base") if each["kind"] == "Service")
    (agent,) = (
        each["spec"]["template"]["metadata"]["labels"] for each in built("sidecar") if each["kind"] == "Deployment"
    )

    assert monitors["ServiceMonitor"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitors["ServiceMonitor"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert monitors["PodMonitor"]["selector"]["matchLabels"].items() <= agent.items()


def test_nothing_can_be_sent_to_what_reads_from_kafka() -> None:
    """Its pods have no port but that of the metrics, no token, and no volume: Kafka keeps what is not scored yet."""
    (replicas,) = (each["spec"] for each in built("kafka") if each["kind"] == "StatefulSet")
    (service,) = (
        each["spec"]
        for each in built("kafka")
        if each["metadata"]["name"] == "spanscore" and "ports" in each.get("spec", {})
    )
    (container,) = replicas["template"]["spec"]["containers"]

    assert ["metrics"] == [port["name"] for port in container["ports"]] == [port["name"] for port in service["ports"]]
    assert ["config"] == [mount["name"] for mount in container["volumeMounts"]]
    assert "--insecure" not in container["args"]
    assert "volumeClaimTemplates" not in replicas


def test_the_autoscaler_decides_alone() -> None:
    """What is scaled is there, asks for CPU, and does not say itself how many there are to be."""
    (scaler,) = (each["spec"] for each in built("kafka") if each["kind"] == "HorizontalPodAutoscaler")
    target = scaler["scaleTargetRef"]
    (scaled,) = (
        each["spec"]
        for each in built("kafka")
        if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])
    )

    assert "replicas" not in scaled
    assert "cpu" in scaled["template"]["spec"]["containers"][0]["resources"]["requests"]
