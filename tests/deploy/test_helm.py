"""The chart of deploy/helm, rendered by helm: what the manifests of deploy/kubernetes say, where the values say so."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deadline import DEADLINE_S
from deploy.manifests import DEPLOY, built
from deploy.test_schemas import VERSIONS, check
from spanscore import __version__, config

CHART = DEPLOY / "helm"
IMAGE = ("--set", "image.repository=spanscore")
OURS = ("--set", "fullnameOverride=spanscore,collector.fullnameOverride=collector")
"""The names of deploy/kubernetes."""
FORMS = {
    "gateway": (),
    "kafka": ("--values", str(CHART / "values-kafka.yaml")),
    "page": ("--set", "page.host=spans.example.com"),
}
_NAMING = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "checksum/config",
    "imagePullPolicy",
}
"""Kustomize or Helm alone have these; that selectors find pods is a test of its own."""


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("needs helm: scripts/prove builds it, and `deploy/prove --where` says where it is then")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def rendered(chart: Path, *options: str) -> list[dict[str, Any]]:
    """Return the manifests of a release `mine`."""
    done = helm("template", "mine", chart, *IMAGE, *options)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def normal(manifests: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return manifests by kind and name, without what kustomize or Helm add to each of theirs."""
    found = {}
    for manifest in copy.deepcopy(manifests):
        plain = _plain(manifest)
        plain["metadata"].pop("namespace", None)
        name = plain["metadata"]["name"]
        if plain["kind"] == "ConfigMap":
            name = name.partition("-config")[0]
            plain["metadata"]["name"] = name
            plain["data"] = {file: yaml.safe_load(text) for file, text in plain["data"].items()}
        found[plain["kind"], name] = plain
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        # The order of ports, volumes and variables says nothing.
        return sorted(
            map(_plain, value), key=lambda each: str(each["name"]) if isinstance(each, dict) and "name" in each else ""
        )
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(each) for key, each in value.items() if key not in _NAMING}
    if "configMap" in plain:
        plain["configMap"] = {"name": plain["configMap"]["name"].partition("-config")[0]}
    if "secret" in plain:  # one key under the name that it has anyhow
        plain["secret"].pop("items", None)
    for name in ("annotations", "labels"):
        if plain.get(name) == {}:
            del plain[name]
    return plain


@pytest.mark.programs
@pytest.mark.parametrize("form", FORMS)
def test_the_chart_makes_what_the_manifests_say(form: str) -> None:
    """Field by field: but for labels of Helm, and for the proxy of the page, which has a chart of its own."""
    wanted = normal(built(form))
    for key in [("Deployment", "page-proxy"), ("Service", "page-proxy"), ("ConfigMap", "page-proxy")]:
        wanted.pop(key, None)
    made = normal(rendered(CHART, *FORMS[form], *OURS))

    assert wanted.keys() == made.keys()
    for key, manifest in wanted.items():
        assert manifest == made[key], key


@pytest.mark.programs
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", [*FORMS.values(), ("--set", "monitoring.enabled=true")])
def test_what_it_makes_fits(options: tuple[str, ...], version: str) -> None:
    """Kubernetes and the operator know each field."""
    manifests = rendered(CHART, *options)
    assert manifests
    for manifest in manifests:
        check(manifest, version)


@pytest.mark.programs
def test_a_release_selects_its_own_pods_alone() -> None:
    """Two releases in one namespace: every selector names the release, and has pods."""
    # The monitor of sidecars looks for those of all releases.
    manifests = [each for each in rendered(CHART, "--set", "monitoring.enabled=true") if each["kind"] != "PodMonitor"]
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in manifests if "template" in each.get("spec", {})]
    selectors = [each["spec"]["selector"] for each in manifests if "selector" in each.get("spec", {})]
    selectors += [each["spec"]["podSelector"] for each in manifests if "podSelector" in each.get("spec", {})]

    assert len(selectors) == 10
    for selector in selectors:
        wanted = selector.get("matchLabels", selector)
        assert "mine" == wanted["app.kubernetes.io/instance"]
        assert any(wanted.items() <= labels.items() for labels in pods)
    assert {each["metadata"]["name"] for each in manifests} >= {"mine-spanscore", "mine-spanscore-collector"}


@pytest.mark.programs
def test_monitoring_is_that_of_the_manifests() -> None:
    """The rules and boards are the files that others load, whole."""
    made = rendered(CHART, "--set", "monitoring.enabled=true", *OURS)
    (rules,) = (each["spec"] for each in made if each["kind"] == "PrometheusRule")
    boards = {name: text for each in made if each["kind"] == "ConfigMap" for name, text in each["data"].items()}

    assert yaml.safe_load((DEPLOY / "prometheus/rules.yaml").read_text(encoding="utf-8")) == rules
    for file in (DEPLOY / "grafana/dashboards").glob("*.json"):
        assert json.loads(file.read_text(encoding="utf-8")) == json.loads(boards[file.name])
    for each in made:
        if each["apiVersion"].startswith("monitoring.coreos.com/"):
            assert "kube-prometheus-stack" == each["metadata"]["labels"]["release"]
    assert 3 == sum(each["kind"] in {"ServiceMonitor", "PodMonitor"} for each in made)


@pytest.mark.programs
def test_a_pod_of_another_chart_has_the_sidecar(tmp_path: Path) -> None:
    """By the two templates that README.md names: what deploy/kubernetes/sidecar has."""
    shutil.copytree(CHART, tmp_path / "charts" / "spanscore")
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: agent, version: 1.0.0}\n", encoding="utf-8")
    (tmp_path / "values.yaml").write_text(
        "spanscore: {mode: sidecar, fullnameOverride: spanscore, image: {repository: spanscore}}\n", encoding="utf-8"
    )
    used = [line for line in (CHART / "README.md").read_text(encoding="utf-8").splitlines() if "{{- include" in line]
    pod = [
        "apiVersion: v1",
        "kind: Pod",
        "metadata: {name: agent}",
        "spec:",
        *(line.removeprefix("    ") for line in used),
    ]
    (tmp_path / "templates" / "pod.yaml").write_text("\n".join(pod).replace("nindent 8", "nindent 4"), encoding="utf-8")
    made = {each["kind"]: each for each in rendered(tmp_path)}
    wanted = {each["kind"]: each for each in built("sidecar")}
    expected = wanted["Deployment"]["spec"]["template"]["spec"]
    (container,) = made["Pod"]["spec"]["initContainers"]
    for volume in (*expected["initContainers"][0]["volumeMounts"], *expected["volumes"]):
        volume["name"] = f"spanscore-{volume['name']}"

    assert {"ConfigMap", "Pod"} == made.keys()
    assert _plain(expected["initContainers"][0]) == _plain(container)
    assert {each["name"]: each.get("emptyDir") for each in expected["volumes"]} == {
        each["name"]: each.get("emptyDir") for each in made["Pod"]["spec"]["volumes"]
    }
    text, shipped = (each["ConfigMap"]["data"]["spanscore.yaml"] for each in (made, wanted))
    assert yaml.safe_load(shipped) == yaml.safe_load(text)


@pytest.mark.programs
@pytest.mark.parametrize("options", [(), FORMS["kafka"]])
def test_its_configuration_is_one(options: tuple[str, ...]) -> None:
    """What the chart writes is read."""
    (text,) = (
        each["data"]["spanscore.yaml"]
        for each in rendered(CHART, *options)
        if each["kind"] == "ConfigMap" and "spanscore.yaml" in each["data"]
    )
    config.loads(text, "spanscore.yaml", DEPLOY)


@pytest.mark.programs
def test_helm_finds_nothing_to_complain_about() -> None:
    """Lint, strictly, with each file of values."""
    for options in FORMS.values():
        done = helm("lint", "--strict", CHART, "--set", "image.repository=spanscore", *options)
        assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.programs
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("replica=2", "replica"),
        ("config.evaluator.health.type=tool_policy", "evaluator"),
        ("mode=daemon", "mode"),
        ("replicas=two", "replicas"),
        ("config.exporters.prometheus=null", "config.exporters.prometheus.endpoint is missing"),
        ("image.repository=", "image.repository is missing"),
        ("config.receivers.otlp=null", "neither otlp nor kafka"),
        ("config.receivers.otlp.protocols.grpc.endpoint=localhost:4317", "no other pod can reach it"),
        ("config.receivers.otlp.protocols.grpc.endpoint=0.0.0.0", "the endpoint 0.0.0.0 has no port: HOST:PORT"),
        ("config.exporters.prometheus.endpoint=localhost", "the endpoint localhost has no port: HOST:PORT"),
        ("page.host=https://spans.example.com", "/page/host"),
        ("config.storage.directory=/data", "must be below /var/lib/spanscore/"),
        ("autoscaling.enabled=true", "autoscaling needs config.receivers.kafka"),
        ("autoscaling.maxReplicas=1", "autoscaling.minReplicas is above"),
        ("storage.size=512Mi", "storage.size is 512Mi, less than config.storage.max_size, which is 1GiB"),
        ("storage.size=large", "large is not a size such as 512Mi"),
        (
            "config.receivers.otlp.protocols.grpc.tls.cert_file=/tls.crt",
            "tls, too, to {insecure: false, server_name_override: mine-spanscore, ca_file: FILE}",
        ),
    ],
)
def test_wrong_values_are_refused(option: str, said: str) -> None:
    """By name, before anything is applied."""
    done = helm("template", "mine", CHART, "--set", "image.repository=spanscore", "--set", option)

    assert 0 != done.returncode
    assert said in done.stderr


def test_its_schema_knows_every_section_of_a_configuration() -> None:
    """And the values that are shipped fit it."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    sections = json.loads((DEPLOY.parent / "config/spanscore.schema.json").read_text(encoding="utf-8"))["properties"]

    assert sections.keys() == schema["definitions"]["configuration"]["properties"].keys()
    assert yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")).keys() <= schema["properties"].keys()


def test_its_version_is_that_of_spanscore() -> None:
    """The image of the chart is that of its version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    base = yaml.safe_load((DEPLOY / "kubernetes/base/kustomization.yaml").read_text(encoding="utf-8"))

    assert {__version__} == {base["images"][0]["newTag"], chart["appVersion"]}
    assert chart["version"] == re.sub("(?=[abr])", "-", __version__, count=1)  # semantic


@pytest.mark.programs
def test_ports_and_brokers_are_said_once() -> None:
    """Another port of spanscore, or other brokers, reach the Collector too."""

    def exporters(*options: str) -> Any:
        (told,) = (
            each["data"] for each in rendered(CHART, *options) if "collector-config.yaml" in each.get("data", {})
        )
        return yaml.safe_load(told["collector-config.yaml"])["exporters"]

    port = exporters("--set", "config.receivers.otlp.protocols.grpc.endpoint=0.0.0.0:5317")
    kafka = exporters(*FORMS["kafka"], "--set", "config.receivers.kafka.brokers={one:1,two:2}")

    assert "5317" == port["loadbalancing"]["resolver"]["dns"]["port"]
    assert ["one:1", "two:2"] == kafka["kafka"]["brokers"]


def containers(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the containers by their name."""
    pods = [each["spec"]["template"]["spec"] for each in manifests if "template" in each.get("spec", {})]
    return {each["name"]: each for pod in pods for each in pod["containers"]}


@pytest.mark.programs
@pytest.mark.parametrize("section", ["Kafka with SASL", "TLS between the Collector and spanscore"])
def test_values_of_the_readme(section: str, tmp_path: Path) -> None:
    """Both programs get what they name, and Kubernetes knows the fields."""
    text = (CHART / "README.md").read_text(encoding="utf-8").partition(f"## {section}\n")[2]
    (tmp_path / "values.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    form = FORMS["kafka"] if "Kafka" in section else ()
    made = rendered(CHART, *form, "--values", str(tmp_path / "values.yaml"))
    for manifest in made:
        check(manifest)
    both = containers(made)

    for name in ("spanscore", "collector"):
        mounted = {each["mountPath"] for each in both[name]["volumeMounts"]}
        variables = {each["name"] for each in both[name].get("env", ())}
        assert ("KAFKA_PASSWORD" in variables) == ("Kafka" in section)
        assert ("/etc/spanscore-tls" in mounted) == ("TLS" in section)
    if "TLS" in section:
        (service,) = (
            each for each in made if (each["kind"], each["metadata"]["name"]) == ("Service", "mine-spanscore")
        )
        assert ["otlp-grpc", "metrics"] == [each["name"] for each in service["spec"]["ports"]]
        assert not any("appProtocol" in each for each in service["spec"]["ports"])


@pytest.mark.programs
@pytest.mark.parametrize(("limit", "wanted"), [("512Mi", "400MiB"), ("2Gi", "1600MiB"), ("1.5e+09", "1117MiB")])
def test_the_collectors_memory_follows_its_limit(limit: str, wanted: str) -> None:
    """Each notation of a quantity."""
    variables = containers(rendered(CHART, "--set", f"collector.resources.limits.memory={limit}"))["collector"]["env"]
    assert {"name": "GOMEMLIMIT", "value": wanted} in variables


@pytest.mark.programs
def test_the_check_of_the_readme(tmp_path: Path) -> None:
    """Its command takes the configuration out of the ConfigMap."""
    text = (CHART / "README.md").read_text(encoding="utf-8")
    (block,) = (each.partition("```")[0] for each in text.split("```sh\n") if "spanscore check" in each)
    (tmp_path / "my-values.yaml").write_text("config: {evaluators: {refunds: {type: tool_polic}}}\n", encoding="utf-8")
    (tmp_path / "deploy").symlink_to(DEPLOY)
    helm("version")
    command = block.replace("spanscore check", f"{sys.executable} -m spanscore check")
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )

    assert 2 == done.returncode
    assert "evaluators.refunds.type: there is no evaluator 'tool_polic'; did you mean 'tool_policy'?" in done.stderr
