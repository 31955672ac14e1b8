from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.config import Config, Endpoint, Secret, default, loads
from spanscore.model import Trajectory
from spanscore.storage.settings import StorageSettings

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

CONTRACT = """\
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "localhost:4317", max_recv_msg_size_mib: 64, tls: {cert_file: , key_file: , client_ca_file: }}
      http: {endpoint: "localhost:4318", max_request_body_size: 64MiB, traces_url_path: /v1/traces,
             cors: {allowed_origins: []}}
    auth: {bearer_token_file: tokens.txt}
  kafka: {brokers: ["localhost:9092"], topic: otlp_spans, encoding: otlp_proto, group_id: spanscore}
traces: {root: parentless, unit: trace, decision_delay: 2s, trace_timeout: 30s}
storage: {durability: crash, directory: /var/lib/spanscore, max_size: 1GiB}
evaluators:
  health: {type: tool_call_trajectory}
  refund_order:
    type: tool_call_order
    match: {service.name: "shop-*", gen_ai.agent.name: refund-agent}
    tool_calls_order: [lookup_order, check_policy, issue_refund]
    threshold: 1.0
    sample_ratio: 1.0
  golden:
    type: trajectory_match
    expected_from: {dataset: golden.jsonl, key: test.case.id}
    mode: in_order
exporters:
  otlp: {endpoint: "http://localhost:4318", protocol: http/protobuf, headers: {}, signals: [metrics, logs, traces]}
  prometheus: {endpoint: "localhost:9464"}
  jsonl: {path: scores.jsonl}
  console: {}
annotate: root_event
telemetry: {log_level: info}
"""


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is configured as plain data."""
    return {name: dataclasses.asdict(each) for name, each in settings.items()}


def test_every_section(read: Read, tmp_path: Path) -> None:
    """Each key is read as what it means: durations as seconds, sizes as bytes, paths beside the file."""
    (tmp_path / "golden.jsonl").write_text('{"key": "a", "expected": [{"name": "search"}]}')

    config = read(CONTRACT)

    assert {
        "otlp": {
            "protocols": {
                "grpc": {
                    "endpoint": Endpoint("localhost", 4317),
                    "max_recv_msg_size_mib": 64,
                    "tls": {"cert_file": None, "key_file": None, "client_ca_file": None},
                },
                "http": {
                    "endpoint": Endpoint("localhost", 4318),
                    "max_request_body_size": 64 * 2**20,
                    "traces_url_path": "/v1/traces",
                    "cors": {"allowed_origins": ()},
                    "tls": None,
                },
            },
            "auth": {"bearer_token_file": tmp_path / "tokens.txt"},
        },
        "kafka": {
            "brokers": ("localhost:9092",),
            "topic": "otlp_spans",
            "encoding": "otlp_proto",
            "group_id": "spanscore",
            "dead_letter_topic": None,
            "settings": {},
        },
    } == plain(config.receivers)
    traces = dataclasses.asdict(config.traces)
    assert {
        "root": "parentless",
        "unit": "trace",
        "decision_delay_s": 2.0,
        "trace_timeout_s": 30.0,
        "max_trace_age_s": 900.0,
        "num_traces": 50_000,
        "span_limit": 10_000,
        "max_trace_bytes": 16 * 2**20,
        "max_bytes": 256 * 2**20,
        "late_spans": "rescore",
        "remember_traces": 1_000_000,
    }.items() <= traces.items()
    stored = StorageSettings(durability="crash", directory=Path("/var/lib/spanscore"), max_size=2**30)
    assert stored == config.storage
    assert {
        "otlp": {
            "protocol": "http/protobuf",
            "endpoint": "http://localhost:4318",
            "headers": {},
            "signals": ("metrics", "logs", "traces"),
        },
        "prometheus": {"endpoint": Endpoint("localhost", 9464)},
        "jsonl": {"path": tmp_path / "scores.jsonl"},
        "console": {},
    } == plain(config.exporters)
    assert ("root_event", "info") == (config.annotate, config.telemetry.log_level)
    assert ["health", "refund_order", "golden"] == [entry.name for entry in config.evaluators]


def test_a_listed_key_without_a_value_is_on_with_its_defaults(read: Read) -> None:
    """As in the Collector, `http:` alone serves HTTP; what is not listed is not served."""
    config = read("receivers: {otlp: {protocols: {http: }}}\nexporters:\n  prometheus:\n  otlp: {protocol: grpc}")

    assert config.receivers["otlp"].protocols.grpc is None
    assert config.receivers["otlp"].protocols.http is not None
    assert Endpoint("localhost", 4318) == config.receivers["otlp"].protocols.http.endpoint
    assert Endpoint("localhost", 9464) == config.exporters["prometheus"].endpoint
    assert "console" not in config.exporters
    assert "http://localhost:4317" == config.exporters["otlp"].url


def test_several_endpoints(read: Read) -> None:
    """A server may listen on several addresses, IPv6 and a port of the system's choice among them."""
    config = read('receivers: {otlp: {protocols: {grpc: {endpoint: ["[::1]:4317", "127.0.0.1:0"]}}}}')

    assert config.receivers["otlp"].protocols.grpc is not None
    endpoints = config.receivers["otlp"].protocols.grpc.endpoint
    assert (Endpoint("::1", 4317), Endpoint("127.0.0.1", 0)) == endpoints
    assert "[::1]:4317" == str(endpoints[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", 0.0),
        ("500ms", 0.5),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("1.5s", 1.5),
        ("20us", 0.00002),
    ],
)
def test_durations(read: Read, text: str, expected: float) -> None:
    """A duration is a run of numbers with units, kept as seconds."""
    assert expected == pytest.approx(read(f"traces: {{decision_delay: {text}}}").traces.decision_delay_s)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1B", 1), ("10MB", 10_000_000), ("64MiB", 67_108_864), ("1.5GiB", 1_610_612_736), ("2 KiB", 2048)],
)
def test_sizes(read: Read, text: str, expected: int) -> None:
    """A size is a number and a unit, decimal or binary, kept as bytes."""
    assert expected == read(f"storage: {{max_size: {text}}}").storage.max_size


OTLP = "receivers: {otlp: {protocols: "
DURATION = "must be a duration such as '500ms', '1m30s' or '30d', not "
SIZE = "must be a size such as '64MiB', '1GiB' or '10MB', not "
ENDPOINT = "must be host:port, such as 'localhost:4317' or '[::1]:4317'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "recievers: {}",
            (
                "c.yaml:1:1 recievers: unknown key; did you mean 'receivers'? (allowed: annotate, content, "
                "conversations, dialects, evaluators, exporters, keep, metrics, monitors, page, receivers, storage, "
                "telemetry, tool_content, trace_url, traces)"
            ),
        ),
        (
            "content: {mask: [email, name]}",
            (
                "c.yaml:1:25 content.mask[1]: mask 'name' would also replace what names and surrounds calls "
                "(agent.name): put the key above it in your data before it, such as 'customer.name'"
            ),
        ),
        (
            "telemetry: {level: info}",
            "c.yaml:1:13 telemetry.level: unknown key; did you mean 'log_level'? (allowed: log_level)",
        ),
        (
            "exporters: {jsonl: {pth: x.jsonl}}",
            "c.yaml:1:21 exporters.jsonl.pth: unknown key; did you mean 'path'? (allowed: path)",
        ),
        ("exporters: {console: {x: 1}}", "c.yaml:1:23 exporters.console.x: unknown key (allowed: none)"),
        ("traces: [30s]", "c.yaml:1:9 traces: must be a mapping, not a list"),
        ("traces: {num_traces: 0}", "c.yaml:1:22 traces.num_traces: must be at least 1, not 0"),
        ("traces: {num_traces: 1.5}", "c.yaml:1:22 traces.num_traces: must be an integer, not 1.5"),
        ("traces: {num_traces: true}", "c.yaml:1:22 traces.num_traces: must be an integer, not true"),
        (
            'traces: {num_traces: "1"}',
            (
                "c.yaml:1:22 traces.num_traces: must be an integer, not '1'; "
                "numbers are written in decimal, without quotes or a leading zero"
            ),
        ),
        ("traces: {trace_timeout: 0s}", "c.yaml:1:25 traces.trace_timeout: must be more than 0, not '0s'"),
        ("traces: {trace_timeout: 3 days}", f"c.yaml:1:25 traces.trace_timeout: {DURATION}'3 days'"),
        ("traces: {trace_timeout: '30'}", f"c.yaml:1:25 traces.trace_timeout: {DURATION}'30'; write '30s' for seconds"),
        ("traces: {trace_timeout: }", f"c.yaml:1:24 traces.trace_timeout: {DURATION}null"),
        ("storage: {max_size: 64Mi}", f"c.yaml:1:21 storage.max_size: {SIZE}'64Mi'"),
        (
            "storage: {durability: disk}",
            "c.yaml:1:23 storage.durability: must be 'none', 'crash' or 'power', not 'disk'",
        ),
        (
            "annotate: child-span",
            (
                "c.yaml:1:11 annotate: must be 'child_span', 'root_event' or 'none', not 'child-span'; "
                "did you mean 'child_span'?"
            ),
        ),
        (
            OTLP + "{grcp: }}}",
            "c.yaml:1:32 receivers.otlp.protocols.grcp: unknown key; did you mean 'grpc'? (allowed: grpc, http)",
        ),
        (
            OTLP + "}}",
            "c.yaml:1:30 receivers.otlp.protocols: must list 'grpc', 'http' or both; leave 'protocols' out for both",
        ),
        (
            OTLP + "{grpc: {endpoint: localhost}}}}",
            f"c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: {ENDPOINT}, not 'localhost'",
        ),
        (
            OTLP + "{grpc: {endpoint: 4317}}}}",
            f"c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: {ENDPOINT} or a list, not 4317",
        ),
        (
            OTLP + '{grpc: {endpoint: ":4317"}}}}',
            (
                f"c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: {ENDPOINT}, not ':4317'; "
                "write '0.0.0.0:4317' for every address of this machine"
            ),
        ),
        (
            OTLP + '{grpc: {endpoint: "::1:4317"}}}}',
            (
                f"c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: {ENDPOINT}, not '::1:4317'; "
                "put an IPv6 address in brackets"
            ),
        ),
        (
            OTLP + '{grpc: {endpoint: "http://localhost:4317"}}}}',
            (
                f"c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: {ENDPOINT}, not 'http://localhost:4317'; "
                "leave the scheme out"
            ),
        ),
        (
            OTLP + '{grpc: {endpoint: ["a:1", "a:99999"]}}}}',
            f"c.yaml:1:57 receivers.otlp.protocols.grpc.endpoint[1]: {ENDPOINT}, not 'a:99999'",
        ),
        (
            OTLP + "{grpc: {endpoint: []}}}}",
            "c.yaml:1:49 receivers.otlp.protocols.grpc.endpoint: must not be empty",
        ),
        (
            OTLP + "{grpc: {max_recv_msg_size_mib: 4096}}}}",
            "c.yaml:1:62 receivers.otlp.protocols.grpc.max_recv_msg_size_mib: must be at most 2047, not 4096",
        ),
        (
            OTLP + "{http: {traces_url_path: v1/traces}}}}",
            "c.yaml:1:56 receivers.otlp.protocols.http.traces_url_path: must start with '/', not 'v1/traces'",
        ),
        (
            OTLP + "{http: {cors: {allowed_origins: [https://a.example, '*']}}}}}",
            (
                "c.yaml:1:83 receivers.otlp.protocols.http.cors.allowed_origins[1]: must be an origin such as "
                "'https://app.example.com', not '*'; name each web page that may send"
            ),
        ),
        (
            OTLP + "{http: {cors: {allowed_origins: [https://a.example/]}}}}}",
            (
                "c.yaml:1:64 receivers.otlp.protocols.http.cors.allowed_origins[0]: must be an origin such as "
                "'https://app.example.com', not 'https://a.example/'"
            ),
        ),
        (
            OTLP + "{grpc: {tls: {cert_file: a.pem}}}}}",
            "c.yaml:1:44 receivers.otlp.protocols.grpc.tls: 'cert_file' and 'key_file' need each other",
        ),
        (
            OTLP + "{grpc: {tls: {client_ca_file: a.pem}}}}}",
            "c.yaml:1:44 receivers.otlp.protocols.grpc.tls: 'client_ca_file' needs 'cert_file' and 'key_file'",
        ),
        ("receivers: {otlp: {auth: }}", "c.yaml:1:20 receivers.otlp.auth.bearer_token_file: the key is required"),
        ("receivers: {kafka: {brokers: []}}", "c.yaml:1:30 receivers.kafka.brokers: must not be empty"),
        ("exporters: {jsonl: }", "c.yaml:1:13 exporters.jsonl.path: the key is required"),
        ("exporters: {jsonl: {path: ''}}", "c.yaml:1:27 exporters.jsonl.path: must name a file"),
        (
            "exporters: {otlp: {endpoint: localhost:4318}}",
            (
                "c.yaml:1:30 exporters.otlp.endpoint: must be a URL such as 'http://localhost:4318', "
                "not 'localhost:4318'"
            ),
        ),
        (
            "exporters: {otlp: {endpoint: 'http://me:hunter2@localhost'}}",
            "c.yaml:1:30 exporters.otlp.endpoint: must not hold a user name or a password; send them in a header",
        ),
        (
            "metrics: {disabled: [gen_ai.execute_tool.durations]}",
            (
                "c.yaml:1:22 metrics.disabled[0]: must be 'gen_ai.invoke_agent.tool_calls' or "
                "'gen_ai.execute_tool.duration', not 'gen_ai.execute_tool.durations'; "
                "did you mean 'gen_ai.execute_tool.duration'?"
            ),
        ),
        (
            "exporters: {otlp: {signals: [metrics, trace]}}",
            (
                "c.yaml:1:39 exporters.otlp.signals[1]: must be 'metrics', 'logs' or 'traces', not 'trace'; "
                "did you mean 'traces'?"
            ),
        ),
        (
            "exporters: {otlp: {headers: {authorization: 123456}}}",
            (
                "c.yaml:1:45 exporters.otlp.headers.authorization: must be text; "
                "put it in quotes if it looks like a number or a boolean"
            ),
        ),
        ("exporters: {otlp: {headers: {'': x}}}", "c.yaml:1:30 exporters.otlp.headers['']: a key must not be empty"),
    ],
)
def test_mistakes(problems: Problems, text: str, expected: str) -> None:
    """A mistake is told with its place, its key, what was found and what is allowed."""
    assert [expected] == problems(text)


def test_secrets_do_not_show(read: Read) -> None:
    """A header's value is in no text that a configuration makes of itself; it has to be asked for."""
    config = read("exporters: {otlp: {headers: {authorization: hunter2}}}")

    assert "hunter2" not in repr(config)
    assert {"authorization": Secret("hunter2")} == config.exporters["otlp"].headers
    assert "***" == str(config.exporters["otlp"].headers["authorization"])
    assert "hunter2" == config.exporters["otlp"].headers["authorization"].reveal()


def test_no_file_is_read_like_an_empty_one() -> None:
    """The default configuration, which is built without a file, has the defaults of the file's sections."""
    built, read = default(), loads("", "default configuration", Path())

    plain = [
        field.name
        for field in dataclasses.fields(Config)
        if field.compare and field.name not in {"evaluators", "dialects"}
    ]
    assert {name: getattr(read, name) for name in plain} == {name: getattr(built, name) for name in plain}
    assert [type(each) for each in read.dialects] == [type(each) for each in built.dialects]
    run = Trajectory(calls=())
    assert [(entry.resolve(run), dataclasses.replace(entry, resolve=len)) for entry in read.evaluators] == [
        (entry.resolve(run), dataclasses.replace(entry, resolve=len)) for entry in built.evaluators
    ]
    assert (read.root.data(), read.digest) == (built.root.data(), built.digest)


def test_defaults_of_the_standalone_receiver() -> None:
    """Without a file, OTLP is served on localhost, and scores go to Prometheus and the console."""
    config = default().for_serve()

    assert config.receivers["otlp"].protocols.grpc is not None
    assert config.receivers["otlp"].protocols.http is not None
    assert Endpoint("localhost", 4317) == config.receivers["otlp"].protocols.grpc.endpoint
    assert Endpoint("localhost", 4318) == config.receivers["otlp"].protocols.http.endpoint
    assert {"prometheus", "console"} == config.exporters.keys()
    assert ("parentless", 2.0) == (config.traces.root, config.traces.decision_delay_s)
    assert ("crash", "none") == (config.storage.durability, config.annotate)


def test_defaults_inside_a_process() -> None:
    """Inside a process nothing listens and nothing is kept; the local root's end closes a trace at once."""
    config = default().for_process()

    assert {} == config.receivers
    assert ("remote_parent", 0.0) == (config.traces.root, config.traces.decision_delay_s)
    assert ("none", "child_span") == (config.storage.durability, config.annotate)


def test_defaults_for_files(read: Read) -> None:
    """Recorded spans are scored with the configuration of a receiver, without what it would serve, keep or send."""
    config = read("receivers: {otlp: }\nexporters: {console: }\nstorage: {durability: power}").for_files()

    assert {} == config.receivers
    assert {} == config.exporters
    assert ("parentless", "none", "none") == (config.traces.root, config.storage.durability, config.annotate)


def test_what_is_given_goes_before_the_defaults(read: Read) -> None:
    """Where spanscore runs only fills in what the file leaves out."""
    config = read("""\
        receivers: {kafka: }
        traces: {root: agent, decision_delay: 0s}
        storage: {durability: power}
        exporters: {otlp: {signals: [traces]}}
        """).for_serve()

    assert {"kafka"} == config.receivers.keys()
    assert "console" not in config.exporters
    assert ("agent", 0.0) == (config.traces.root, config.traces.decision_delay_s)
    assert ("power", "root_event") == (config.storage.durability, config.annotate)
    assert "none" == read("exporters: {otlp: {signals: [metrics]}}").for_serve().annotate
    assert {} == read("receivers: {}").for_serve().receivers


@given(st.integers(0, 10**9), st.sampled_from(["ns", "us", "ms", "s", "m", "h"]))
def test_a_duration_reads_as_written(number: int, unit: str) -> None:
    """The unit scales the number, whatever it is."""
    seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit] * number

    config = loads(f"traces: {{decision_delay: {number}{unit}}}", "c.yaml", Path())

    assert seconds == pytest.approx(config.traces.decision_delay_s)


def test_the_address_of_a_trace(read: Read) -> None:
    """`trace_url` is kept as it is written; the pages put the ids in."""
    url = "https://jaeger.example/trace/{trace_id}?uiFind={span_id}"

    assert (url, None) == (read(f'trace_url: "{url}"').trace_url, read("").trace_url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://j.example/x", "must have {trace_id}, and may have {span_id}, behind the host, and no other braces"),
        ("https://{trace_id}/", "must have {trace_id}, and may have {span_id}, behind the host, and no other braces"),
        ("https://j/{trace_id}/{x}", "must have {trace_id}, and may have {span_id}, behind the host, and no other"),
        ("javascript:{trace_id}", "must be a URL such as 'http://localhost:4318', not 'javascript:{trace_id}'"),
        ("https://u:p@j/{trace_id}", "must not hold a user name or a password; send them in a header"),
    ],
)
def test_an_address_that_is_none_of_a_trace(problems: Problems, url: str, why: str) -> None:
    """It could lead anywhere, or be a script: it is refused with its place."""
    (told,) = problems(f"trace_url: '{url}'")

    assert told.startswith(f"c.yaml:1:12 trace_url: {why}")
