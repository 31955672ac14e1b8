from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spanscore import config
from spanscore.errors import ConfigError

FILES = Path(__file__).parents[1] / "tls"

WITH_FILES = """\
receivers:
  otlp:
    protocols:
      grpc:
        tls: {cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt}
    auth:
      bearer_token_file: tokens.txt
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a configuration that can be served, with all the files it names, which nobody else can read."""
    for name in ("server.crt", "server.key", "ca.crt"):
        shutil.copy(FILES / name, tmp_path / name)
    (tmp_path / "tokens.txt").write_text("secret\n")
    (tmp_path / "spanscore.yaml").write_text(WITH_FILES)
    for file in tmp_path.iterdir():
        file.chmod(0o640)
    return tmp_path / "spanscore.yaml"


def refused(path: Path) -> list[str]:
    """Return the errors that serving a configuration would meet, one a line."""
    loaded = config.load(path)
    with pytest.raises(ConfigError) as raised:
        loaded.for_serve()
    return str(raised.value).splitlines()


def test_files_that_can_be_used_are_no_error(written: Path) -> None:
    """Certificate, key, authority and tokens are read when serving is prepared."""
    assert config.load(written).for_serve().receivers == config.load(written).receivers


def test_missing_files_are_told_all_at_once_with_their_places(written: Path) -> None:
    """Every key that names a file that is not there is in the message, with file, line and column."""
    for name in ("server.key", "ca.crt", "tokens.txt"):
        (written.parent / name).unlink()
    gone = "cannot be read: No such file or directory"
    tls = "receivers.otlp.protocols.grpc.tls"

    assert [
        f"{written}:5:48 {tls}.key_file: {written.parent}/server.key: {gone}",
        f"{written}:5:76 {tls}.client_ca_file: {written.parent}/ca.crt: {gone}",
        f"{written}:7:26 receivers.otlp.auth.bearer_token_file: {written.parent}/tokens.txt: {gone}",
    ] == refused(written)


def test_files_that_do_not_fit_are_told(written: Path) -> None:
    """A key of another certificate, and a file of tokens without one."""
    shutil.copy(FILES / "client.key", written.parent / "server.key")
    (written.parent / "tokens.txt").write_text("# none\n")

    tls, tokens = refused(written)
    assert tls.startswith(f"{written}:5:14 receivers.otlp.protocols.grpc.tls: TLS: ")
    assert tls.endswith("cannot be used: key values mismatch")
    assert tokens.endswith("bearer_token_file: " + f"{written.parent}/tokens.txt: has no token; write one a line")


def test_a_file_in_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """What an exporter writes to must have its directory; the file itself need not be there."""
    (tmp_path / "spanscore.yaml").write_text("exporters: {jsonl: {path: gone/scores.jsonl}}\n")

    path = tmp_path / "gone" / "scores.jsonl"
    assert [
        f"{tmp_path / 'spanscore.yaml'}:1:27 exporters.jsonl.path: {path}: there is no such directory",
    ] == refused(tmp_path / "spanscore.yaml")
    path.parent.mkdir()
    assert config.load(tmp_path / "spanscore.yaml").for_serve().exporters["jsonl"].path == path


def test_the_tokens_of_the_page_are_looked_at_as_those_of_receivers(tmp_path: Path) -> None:
    """Beside the configuration, there when serving is prepared, with a token in it, and not for every user to read."""
    path, tokens = tmp_path / "spanscore.yaml", tmp_path / "readers.txt"
    path.write_text("page: {bearer_token_file: readers.txt}\n")
    at = f"{path}:1:27 page.bearer_token_file: {tokens}"
    assert [f"{at}: cannot be read: No such file or directory"] == refused(path)
    tokens.touch()
    assert [f"{at}: has no token; write one a line"] == refused(path)
    tokens.write_text("secret")
    tokens.chmod(0o640)
    loaded = config.load(path)
    assert (tokens, []) == (loaded.for_serve().page.bearer_token_file, list(loaded.doubts()))
    tokens.chmod(0o644)
    take_away = "can be read by every user of this machine; take that from them with chmod o-r"
    assert [f"{tokens} (page.bearer_token_file) {take_away}"] == list(loaded.doubts())


def test_elsewhere_the_files_need_not_be_there(written: Path) -> None:
    """One configuration may serve in one place and score in an agent's process, or recordings, in another."""
    (written.parent / "tokens.txt").unlink()
    loaded = config.load(written)

    assert ({}, {}) == (loaded.for_process().receivers, loaded.for_files().receivers)


def test_secrets_that_everybody_can_read_are_told(written: Path) -> None:
    """There is a warning for the private key, the tokens, and a configuration with a secret in it."""
    assert [] == list(config.load(written).doubts())

    written.write_text(WITH_FILES + "exporters: {otlp: {headers: {x-api-key: abc, x-tenant: '${env:HOME}'}}}\n")
    for file in written.parent.iterdir():
        file.chmod(0o644)
    take_away = "can be read by every user of this machine; take that from them with chmod o-r"
    assert [
        f"{written} holds exporters.otlp.headers.x-api-key, and {take_away}",
        f"{written.parent}/server.key (receivers.otlp.protocols.grpc.tls.key_file) {take_away}",
        f"{written.parent}/tokens.txt (receivers.otlp.auth.bearer_token_file) {take_away}",
    ] == list(config.load(written).doubts())


@pytest.mark.parametrize("headers", ["canary", "[canary]", "{x-api-key: {a: canary}}", "{x-api-key: [canary]}"])
def test_what_stands_under_headers_is_never_shown(headers: str) -> None:
    """Written the wrong way, a secret is a secret still."""
    with pytest.raises(ConfigError) as raised:
        config.loads(f"exporters: {{otlp: {{headers: {headers}}}}}", "c.yaml", Path())
    assert "exporters.otlp.headers" in str(raised.value)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("sections", "warned"),
    [
        ("storage: {max_size: 64MiB}", [("grpc.max_recv_msg_size_mib", 64), ("http.max_request_body_size", 64)]),
        ("storage: {max_size: 86MiB}", []),
        ("storage: {max_size: 64MiB, durability: none}", []),
        ("storage: {max_size: 64MiB}\nreceivers: {otlp: {protocols: {http: {max_request_body_size: 48MiB}}}}", []),
        (
            "storage: {max_size: 64MiB}\nreceivers: {otlp: {protocols: {http: {max_request_body_size: 49MiB}}}}",
            [("http.max_request_body_size", 49)],
        ),
        ("storage: {max_size: 1MiB}\nreceivers: {kafka: {brokers: [a:9092], topic: t}}", []),
    ],
)
def test_requests_that_could_never_be_kept_are_told(sections: str, warned: list[tuple[str, int]]) -> None:
    """Of the storage a request may take three quarters; where larger ones are let in, that is hardly meant."""
    told = list(config.loads(sections, "c.yaml", Path()).doubts())

    assert len(warned) == len(told)
    for (key, size_mib), line in zip(warned, told, strict=True):
        assert line.startswith("c.yaml: storage.max_size has room for requests of at most 50331648 bytes")
        assert f"receivers.otlp.protocols.{key} lets in {size_mib * 2**20}" in line


@pytest.mark.parametrize(
    ("exporters", "runs", "is_told"),
    [("console: {}", 5, True), ("console: {}", 0, False), ("prometheus: {}", 5, False)],
)
def test_a_page_without_a_port_is_told(exporters: str, runs: int, *, is_told: bool) -> None:
    """It is on the port for Prometheus, which has to be listed where exporters are."""
    loaded = config.loads(f"exporters: {{{exporters}}}\npage: {{runs: {runs}}}", "c.yaml", Path())
    why = "c.yaml: page has no effect: exporters.prometheus is not listed, and the page is on its port"

    assert ([why] if is_told else []) == list(loaded.doubts())


@pytest.mark.parametrize(("when", "is_told"), [("", True), (", when: {verdict: fail}", False)])
def test_a_default_that_no_trace_reaches_is_told(when: str, *, is_told: bool) -> None:
    """Whoever forgets `when` keeps everything, and believes that a share is kept."""
    exporters = "exporters: {otlp: {endpoint: 'http://collector:4318'}}"
    loaded = config.loads(
        f"{exporters}\nkeep: {{rules: [{{name: failing{when}, keep: all}}], default: 5%}}", "c.yaml", Path()
    )
    why = "c.yaml: keep.default has no effect: rule 'failing' has no 'when'"

    assert ([why] if is_told else []) == list(loaded.doubts())


@pytest.mark.parametrize("host", ["https://spans.example.com", "spans.example.com:443", "[::1]:443", "a/b"])
def test_a_host_of_the_page_that_no_browser_sends_is_refused(host: str) -> None:
    """Every reader would be refused with 421."""
    with pytest.raises(ConfigError, match="hosts must have no scheme, port or path"):
        config.loads(f"page: {{hosts: ['{host}']}}", "c.yaml", Path())


@pytest.mark.parametrize("host", ["spans.example.com", "::1", "fe80::1:2", "[::1]"])
def test_names_and_addresses_are_hosts_of_the_page(host: str) -> None:
    """Also those of IPv6."""
    assert (host,) == config.loads(f"page: {{hosts: ['{host}']}}", "c.yaml", Path()).page.hosts
