"""The page for a team of deploy/kubernetes/page, run without Kubernetes: oauth2-proxy in front of two replicas."""

from __future__ import annotations

import http.client
import http.server
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import yaml

from processes import HOST, Running, free_ports, get
from programs import OAUTH2_PROXY, Programs
from results import Results
from shipped import DEPLOY, placed

_CLAIM: Final = (
    "each replica's page is shown by oauth2-proxy after a login, and by spanscore to nobody without the token"
)
_TOKEN: Final = "a-token-of-the-proof"  # noqa: S105 - it opens nothing
_PASSWORD: Final = "a password of the proof"  # noqa: S105 - as above
_USER: Final = "reader:{SHA}NxcMJKeFK3UyGohpIP8X7ZJxeUI="  # that password, as htpasswd -s writes it
_HOST: Final = "spans.example.com"


def prove(results: Results, programs: Programs, directory: Path) -> None:
    """Run oauth2-proxy's and spanscore's configurations of the manifests."""
    results.section("deploy/kubernetes: the page for a team")
    if results.lacks(programs, _CLAIM, OAUTH2_PROXY):
        return
    with Running(directory) as running, _issuer() as issuer:
        results.check(_CLAIM, partial(_prove, running, programs.path(OAUTH2_PROXY), directory, issuer))


def _prove(running: Running, program: Path, directory: Path, issuer: str) -> str:
    for name, text in {"token": _TOKEN, "cookie-secret": "c" * 32, "client-secret": "s", "htpasswd": _USER}.items():
        (directory / name).write_text(text, encoding="utf-8")
        (directory / name).chmod(0o600)
    replicas = [_start_replica(running, directory, number) for number in (0, 1)]
    proxy = _start_proxy(running, program, directory, issuer, replicas)
    pages = ("/0", "/0/", "/0/runs.json", "/1/", "/1/runs.json")

    assert [_asked(each, "/")[0] for each in replicas] == [401, 401], "shown without the token"
    before = {page: _asked(proxy, page) for page in pages}
    shown = [page for page, (status, _, text) in before.items() if status < 400 or "spanscore" in text]  # noqa: PLR2004
    assert not shown, f"shown without a login: {shown}"
    form = urlencode({"username": "reader", "password": _PASSWORD})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, cookie, _ = _asked(proxy, "/oauth2/sign_in", headers, form)
    assert cookie, f"no login: {status}"
    mine = {"Cookie": cookie.partition(";")[0]}
    for more in ({}, {"Authorization": "Bearer of the browser"}):
        found = {page: _asked(proxy, page, mine | more) for page in pages}
        assert {200} == {status for status, _, _ in found.values()}, {page: each[0] for page, each in found.items()}
        assert all('id="data"' in found[page][2] for page in pages if "json" not in page)
        assert all("held" in json.loads(found[page][2]) for page in pages if "json" in page)
    assert _asked(proxy, "/0/metrics", mine)[0] == 404, "the metrics are passed on"  # noqa: PLR2004 - not found
    return f"{', '.join(pages)} with a login by password, as no provider is here; without, the form and 401"


def _start_replica(running: Running, directory: Path, number: int) -> str:
    """Start spanscore with what the manifests give it, and return where its pages are."""
    grpc, metrics = (f"{HOST}:{port}" for port in free_ports(2))
    place = directory / f"replica-{number}"
    place.mkdir()
    moved = {"0.0.0.0:4317": grpc, "0.0.0.0:9464": metrics, "/var/lib/spanscore": str(place)}
    path = placed("kubernetes/base/spanscore.yaml", place, moved)
    (container,) = _template("shown.yaml")["containers"]
    given = {each["name"]: each["value"].replace("/etc/spanscore-page", str(directory)) for each in container["env"]}
    command = [sys.executable, "-m", "spanscore", "serve", "--config", path, "--insecure"]
    running.start(f"replica-{number}", command, given | {"SPANSCORE_TOKEN_FILE": str(directory / "token")})
    running.wait_for("spanscore is ready", lambda: get(f"http://{metrics}/readyz"))
    return metrics


def _start_proxy(running: Running, program: Path, directory: Path, issuer: str, replicas: list[str]) -> str:
    (port,) = free_ports(1)
    moved = {f"spanscore-{number}.spanscore:9464": at for number, at in enumerate(replicas)}
    moved |= {"0.0.0.0:4180": f"{HOST}:{port}", "https://login.example.com": issuer}
    path = placed("kubernetes/page/oauth2-proxy.yaml", directory, moved | {"/etc/oauth2-proxy-secret": str(directory)})
    (container,) = _template("proxy.yaml")["containers"]
    places = {"/etc/oauth2-proxy/oauth2-proxy.yaml": str(path), "/etc/oauth2-proxy-secret": str(directory)}
    arguments = [_with(places, each) for each in container["args"]]
    environment = {"SPANSCORE_PAGE_TOKEN": _TOKEN}
    for each in container["env"]:
        if "value" in each:  # as Kubernetes puts variables into others
            environment[each["name"]] = each["value"].replace("$(SPANSCORE_PAGE_TOKEN)", _TOKEN)
    running.start("oauth2-proxy", [program, *arguments, f"--htpasswd-file={directory / 'htpasswd'}"], environment)
    running.wait_for("oauth2-proxy is ready", lambda: get(f"http://{HOST}:{port}/ready"))
    return f"{HOST}:{port}"


def _template(shipped: str) -> Any:
    manifests = yaml.safe_load_all((DEPLOY / "kubernetes/page" / shipped).read_text(encoding="utf-8"))
    (pod,) = (each["spec"]["template"]["spec"] for each in manifests if "template" in each["spec"])
    return pod


def _with(places: Mapping[str, str], text: str) -> str:
    for old, new in places.items():
        text = text.replace(old, new)
    return text


def _asked(
    at: str, path: str, headers: Mapping[str, str] | None = None, form: str | None = None
) -> tuple[int, str | None, str]:
    """Return the status, the cookie and the text of an answer."""
    with closing(http.client.HTTPConnection(at, timeout=20)) as connection:
        connection.request("GET" if form is None else "POST", path, form, {"Host": _HOST} | dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.getheader("Set-Cookie"), answer.read().decode()


@contextmanager
def _issuer() -> Iterator[str]:
    """Serve what a provider says about itself, which the proxy asks for when it starts."""

    class Issuer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            at = f"http://{HOST}:{server.server_port}"
            places = {"authorization_endpoint": "/login", "token_endpoint": "/token", "jwks_uri": "/keys"}
            told = {"issuer": at, **{name: f"{at}{path}" for name, path in places.items()}}
            body = json.dumps(told | {"id_token_signing_alg_values_supported": ["RS256"]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer((HOST, 0), Issuer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()
