"""The image as the manifests run it: by its user, with no right, and nothing to write to but its volume."""

from __future__ import annotations

import hashlib
import shutil
import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

import dockerfile
from container import Container, Form, Volume, build
from dockerfile import Image
from processes import Running
from programs import ROOT, Programs
from results import Results
from shipped import DEPLOY

_SOURCES: Final = DEPLOY.parent
RECORDING: Final = _SOURCES / "tests" / "corpus" / "google-adk-oi.jsonl.gz"
_TOKEN: Final = "a token of the proof"  # noqa: S105 - it opens nothing
_NO_CAPABILITY: Final = "0" * 16
_NOT_WRITTEN: Final = ("/a", "/tmp/a", "/usr/a", "/opt/spanscore/a", "/etc/spanscore/a", "/var/lib/a")  # noqa: S108
_ASK: Final = (
    "import http.client, sys; asked = http.client.HTTPConnection('localhost', int(sys.argv[1]), timeout=10);"
    "asked.request('GET', sys.argv[2]); print(asked.getresponse().status)"
)


def prove(results: Results, programs: Programs, directory: Path, kept: Path | None) -> None:
    """Build what the image holds, and run it in each form."""
    results.section("deploy/docker: the image, without an engine")
    claims: Mapping[str, Any] = {
        "the steps that install into the image run as they stand": _build,
        "compose: it runs as the image's user without rights, scores, and its health check knows how it is": _compose,
        "Kubernetes, gateway: it runs so with a volume of the group, and the probes know how it is": _gateway,
        "Kubernetes, sidecar: the same": _sidecar,
    }
    image = dockerfile.read()
    place_of_image = kept or directory
    for number, (claim, proof) in enumerate(claims.items()):
        if results.lacks(programs, claim, ROOT):
            continue
        place = directory / str(number)
        place.mkdir()
        with Running(place) as running:
            results.check(claim, partial(proof, running, place, image, place_of_image))


def built(kept: Path) -> Path:
    """Return what stands for the image's /opt/spanscore, kept in a directory until anything of it is another."""
    image = dockerfile.read()
    made = kept.resolve() / f"image-{_key(image)}" / "spanscore"
    done = made.parent / "done"
    if not done.exists():
        for old in kept.glob("image-*"):
            shutil.rmtree(old)
        build(image, _SOURCES, made)
        done.touch()
    return made


def _build(_running: Running, _place: Path, _image: Image, kept: Path) -> str:
    count = len(list(built(kept).rglob("*.dist-info")))
    return f"{count} distributions; the last stage, which is Debian's, was not run"


def _compose(running: Running, place: Path, image: Image, kept: Path) -> str:
    service = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))["services"]["spanscore"]
    assert service["read_only"], "its root can be written"
    mounts = dict(each.split(":")[:2] for each in service["volumes"])
    files = {inside: (DEPLOY / "compose" / path).resolve() for path, inside in mounts.items() if path.startswith(".")}
    # A new volume has the owner and the mode that the directory has in the image.
    form = Form([*image.entry_point, *service["command"]], files, Volume(image.volume, image.user, "0750"))
    container = _started(running, place, image, kept, form)
    health = partial(container.run, *image.health)
    running.wait_for("the health check is content", lambda: health().returncode == 0)
    _check_rights(container, image)
    scores = _scores(running, container)
    proxied = container.run(*image.health, environment={"http_proxy": "http://localhost:9"})
    assert proxied.returncode == 0, f"a proxy in the environment is asked: {proxied.stderr}"
    container.signal(signal.SIGSTOP)
    stopped = health()
    container.signal(signal.SIGCONT)
    assert stopped.returncode == 1, f"of a stopped process the health check says {stopped.returncode}"
    running.wait_for("the health check is content again", lambda: health().returncode == 0)
    (place / "silent").mkdir()
    silent = _started(running, place / "silent", image, kept, Form(["sleep", "600"], files, form.volume))
    alone = silent.run(*image.health)
    assert alone.returncode == 1, f"nobody listens, and the health check ends with {alone.returncode}: {alone.stderr}"
    return f"{scores}; the health check ends with 0, stopped with {stopped.returncode}, and with 1 where nobody listens"


def _gateway(running: Running, place: Path, image: Image, kept: Path) -> str:
    pod, container = _pod("base/statefulset.yaml", "containers")
    token = place / "token"
    token.write_text(_TOKEN, encoding="utf-8")
    token.chmod(0o440)
    shutil.chown(token, "root", int(image.user.partition(":")[2]))
    files = {
        "/etc/spanscore/spanscore.yaml": DEPLOY / "kubernetes" / "base" / "spanscore.yaml",
        "/etc/spanscore-token/token": token,
    }
    send = ("--endpoint", "http://localhost:4317", "--protocol", "grpc", "--header", f"authorization=Bearer {_TOKEN}")
    return _kubernetes(
        running, _started(running, place, image, kept, _form(pod, container, image, files)), container, send
    )


def _sidecar(running: Running, place: Path, image: Image, kept: Path) -> str:
    pod, container = _pod("sidecar/agent.yaml", "initContainers")
    files = {"/etc/spanscore/spanscore.yaml": DEPLOY / "kubernetes" / "sidecar" / "spanscore.yaml"}
    return _kubernetes(running, _started(running, place, image, kept, _form(pod, container, image, files)), container)


def _kubernetes(running: Running, started: Container, manifest: Mapping[str, Any], send: tuple[str, ...] = ()) -> str:
    ask = {
        name: partial(_asked, started, manifest, name) for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    running.wait_for("the probes are content", lambda: [each() for each in ask.values()] == ["200"] * 3)
    _check_rights(started, dockerfile.read())
    scores = _scores(running, started, *send)
    lost = "cd /var/lib/spanscore && chmod 0555 . && mv requests elsewhere"
    started.as_root(lost)
    running.wait_for("it says that it is not ready", lambda: ask["readinessProbe"]() == "503")
    assert ask["livenessProbe"]() == "200", "it would be killed for a volume that was taken away"
    started.as_root("chmod 2775 /var/lib/spanscore")
    running.wait_for("it is ready again", lambda: ask["readinessProbe"]() == "200")
    return f"{scores}; with what it keeps taken away it is alive and not ready, and then ready again"


def _pod(path: str, containers: str) -> tuple[dict[str, Any], dict[str, Any]]:
    pod = yaml.safe_load((DEPLOY / "kubernetes" / path).read_text(encoding="utf-8"))["spec"]["template"]["spec"]
    return pod, next(each for each in pod[containers] if each["name"] == "spanscore")


def _form(pod: Mapping[str, Any], container: Mapping[str, Any], image: Image, files: Mapping[str, Path]) -> Form:
    context = pod["securityContext"]
    user, group = context["runAsUser"], context["runAsGroup"]
    assert image.user == f"{user}:{group}", "the manifest runs it as somebody else"
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert mounted == {str(Path(each).parent) for each in files} | {image.volume}, f"it mounts {mounted}"
    # Kubernetes leaves a volume to root, and gives it to the pod's fsGroup.
    volume = Volume(image.volume, f"0:{context['fsGroup']}", "2775")
    return Form([*image.entry_point, *container["args"]], files, volume)


def _started(running: Running, place: Path, image: Image, kept: Path, form: Form) -> Container:
    container = Container(running, place, image, built(kept))
    files = {**form.files, "/srv/recording.jsonl.gz": RECORDING}
    container.start(place.name, Form(form.command, files, form.volume))
    running.wait_for(
        "its files are there", lambda: container.run("test", "-s", "/srv/recording.jsonl.gz").returncode == 0
    )
    return container


def _asked(container: Container, manifest: Mapping[str, Any], probe: str) -> str:
    ports = {each["name"]: each["containerPort"] for each in manifest["ports"]}
    get = manifest[probe]["httpGet"]
    return container.run("python", "-c", _ASK, str(ports[get["port"]]), get["path"]).stdout.strip()


def _check_rights(container: Container, image: Image) -> None:
    status = container.status()
    user, _, group = image.user.partition(":")
    assert (status["Uid"].split(), status["Gid"].split()) == ([user] * 4, [group] * 4), status["Uid"]
    assert (status["NoNewPrivs"], status["Groups"]) == ("1", ""), "it can gain rights"
    sets = [status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
    assert sets == [_NO_CAPABILITY] * 5, f"it has capabilities: {sets}"
    written = [path for path in _NOT_WRITTEN if container.run("touch", path).returncode == 0]
    assert not written, f"it can write {written}"
    assert container.run("touch", f"{image.volume}/a").returncode == 0, "it cannot write its volume"


def _scores(running: Running, container: Container, *to: str) -> str:
    send = to or ("--endpoint", "http://localhost:4317", "--protocol", "grpc")
    sent = container.run("spanscore", "send", *send, "/srv/recording.jsonl.gz")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    running.wait_for("the traces are scored", lambda: any(_counted(container)))
    return f"{sum(_counted(container)):.0f} evaluations"


def _counted(container: Container) -> Iterator[float]:
    page = container.run("python", "-c", _ASK.replace(".status", ".read().decode()"), "9464", "/metrics").stdout
    for line in page.splitlines():
        if line.startswith("spanscore_evaluations_total"):
            yield float(line.rpartition(" ")[2])


def _key(image: Image) -> str:
    """Return a name for what goes into the image: another one when anything of that is another."""
    digest = hashlib.sha256(dockerfile.PATH.read_bytes())
    for name in image.copied:
        path = _SOURCES / name
        for each in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
            if each.is_file() and "__pycache__" not in each.parts:
                digest.update(str(each.relative_to(_SOURCES)).encode() + each.read_bytes())
    return digest.hexdigest()[:12]
