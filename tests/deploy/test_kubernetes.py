"""The Kubernetes manifests fit each other, and keep what they promise; schemas are checked in test_schemas.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.manifests import DEPLOY, built
from spanscore import config


def pod_specs(form: str) -> Iterator[dict[str, Any]]:
    """Yield the pods that a form makes."""
    for manifest in built(form):
        if "template" in manifest.get("spec", {}):
            yield manifest["spec"]["template"]["spec"]


def containers(form: str) -> Iterator[dict[str, Any]]:
    """Yield the containers that a form makes."""
    for pod in pod_specs(form):
        yield from (*pod.get("initContainers", ()), *pod["containers"])


@pytest.mark.parametrize("form", ["base", "gateway", "kafka", "page", "sidecar"])
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
        assert re.fullmatch(r".+:v?\d+\.\d+\.\d+", container["image"])


@pytest.mark.parametrize("form", ["base", "gateway", "kafka", "page", "sidecar"])
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


def monitors_of_spanscore() -> list[dict[str, Any]]:
    """Return what has spanscore itself scraped, without the Collector's."""
    found = (each for each in built("monitoring") if each["kind"].endswith("Monitor"))
    return [each for each in found if each["metadata"]["name"] != "spanscore-collector"]


@pytest.mark.parametrize("form", ["gateway", "kafka"])
def test_what_the_collector_drops_is_seen(form: str) -> None:
    """Its metrics are on, at the port that its service, its policy and the operator's monitor name."""
    (monitor,) = (each["spec"] for each in built("monitoring") if each["metadata"]["name"] == "spanscore-collector")
    ours = {each["kind"]: each for each in built(form) if each["metadata"]["name"] == "collector"}
    (config,) = (each for each in built(form) if each["metadata"]["name"].startswith("collector-config"))
    metrics = yaml.safe_load(config["data"]["collector-config.yaml"])["service"]["telemetry"]["metrics"]
    (container,) = ours["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert [ports["metrics"]] == [each["pull"]["exporter"]["prometheus"]["port"] for each in metrics["readers"]]
    assert monitor["selector"]["matchLabels"].items() <= ours["Service"]["metadata"]["labels"].items()
    assert ["metrics"] == [each["port"] for each in monitor["endpoints"]]
    assert {"port": "metrics"} in [port for rule in ours["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]


@pytest.mark.parametrize("form", ["gateway", "kafka"])
def test_the_collector_takes_spans_of_labelled_namespaces_alone(form: str) -> None:
    """Who may send is said by a label of the namespace, for both ports of OTLP."""
    (policy,) = (
        each["spec"]
        for each in built(form)
        if (each["kind"], each["metadata"]["name"]) == ("NetworkPolicy", "collector")
    )
    senders = [rule for rule in policy["ingress"] if {"port": "metrics"} not in rule["ports"]]

    assert [[{"namespaceSelector": {"matchLabels": {"spanscore": "agents"}}}]] == [rule["from"] for rule in senders]
    assert [{"port": "otlp-grpc"}, {"port": "otlp-http"}] == senders[0]["ports"]


def test_operator_scrapes_ports_that_are_there() -> None:
    """The monitors select the service and the pods that the other forms make, by labels that they have."""
    monitors = {each["kind"]: each["spec"] for each in monitors_of_spanscore()}
    (service,) = (each for each in built("base") if each["kind"] == "Service")
    (agent,) = (each["spec"]["template"] for each in built("sidecar") if each["kind"] == "Deployment")
    named = {port["name"] for each in agent["spec"]["initContainers"] for port in each["ports"]}
    pods = monitors["PodMonitor"]

    assert monitors["ServiceMonitor"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitors["ServiceMonitor"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert pods["selector"]["matchLabels"].items() <= agent["metadata"]["labels"].items()
    assert pods["podMetricsEndpoints"][0]["port"] in named


def test_alerts_know_what_is_scraped() -> None:
    """Replicas and sidecars have the job for which alerts look: the first by their service's name."""
    monitors = {each["kind"]: each["spec"] for each in monitors_of_spanscore()}
    (service,) = (each for each in built("base") if each["kind"] == "Service")
    (rule,) = (each["spec"] for each in built("monitoring") if each["kind"] == "PrometheusRule")
    (down,) = (each["expr"] for group in rule["groups"] for each in group["rules"] if "SpanscoreDown" in each.values())
    (endpoint,) = monitors["PodMonitor"]["podMetricsEndpoints"]

    assert {"spanscore"} == set(re.findall(r'job="([^"]+)"', down))
    assert "spanscore" == service["metadata"]["name"]
    assert "jobLabel" not in monitors["ServiceMonitor"]
    assert [{"targetLabel": "job", "replacement": "spanscore"}] == endpoint["relabelings"]


def test_prometheus_of_the_chart_selects_what_it_is_to_read() -> None:
    """Monitors and rules have the label of a release, which selects nothing of what they look for."""
    read = [each for each in built("monitoring") if each["apiVersion"].startswith("monitoring.coreos.com/")]

    assert {"PodMonitor", "PrometheusRule", "ServiceMonitor"} == {each["kind"] for each in read}
    assert all("release" in each["metadata"]["labels"] for each in read)
    assert not any("release" in each["spec"].get("selector", {}).get("matchLabels", {}) for each in read)


def test_operator_finds_sidecars_wherever_they_are() -> None:
    """Sidecars are in the namespaces of their agents; the replicas are in the monitor's own."""
    monitors = {each["kind"]: each for each in monitors_of_spanscore()}

    assert {"any": True} == monitors["PodMonitor"]["spec"]["namespaceSelector"]
    assert "namespaceSelector" not in monitors["ServiceMonitor"]["spec"]
    assert {"spanscore"} == {each["metadata"]["namespace"] for each in (*monitors.values(), *built("gateway"))}


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


def test_the_page_is_for_those_who_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is switched on, under the name that the proxy is asked by, with the token that the proxy adds."""
    (pod,) = (each["spec"]["template"]["spec"] for each in built("page") if each["kind"] == "StatefulSet")
    (container,) = pod["containers"]
    (proxy,) = (each for each in containers("page") if each["name"] == "oauth2-proxy")
    (page_token,) = (each["secret"] for each in pod["volumes"] if each["name"] == "page-token")
    (settings,) = (each["data"] for each in built("page") if each["metadata"]["name"].startswith("page-proxy-config"))
    upstreams = yaml.safe_load(settings["oauth2-proxy.yaml"])["upstreamConfig"]["upstreams"]
    for name in ("page", "sender"):
        (tmp_path / name).write_text("secret")
    monkeypatch.setenv("SPANSCORE_TOKEN_FILE", str(tmp_path / "sender"))
    for each in container["env"]:
        monkeypatch.setenv(each["name"], each["value"].replace("/etc/spanscore-page/token", str(tmp_path / "page")))
    page = config.load(DEPLOY / "kubernetes" / "base" / "spanscore.yaml").for_serve().page

    assert (500, ("spans.example.com",), tmp_path / "page") == (page.runs, page.hosts, page.bearer_token_file)
    assert ("spanscore-page", "token") == (page_token["secretName"], page_token["items"][0]["key"])
    assert {"name": "spanscore-page", "key": "token"} == proxy["env"][0]["valueFrom"]["secretKeyRef"]
    assert f"--redirect-url=https://{page.hosts[0]}/oauth2/callback" in proxy["args"]
    assert [f"http://spanscore-{number}.spanscore:9464" for number in (0, 1)] == [each["uri"] for each in upstreams]


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
