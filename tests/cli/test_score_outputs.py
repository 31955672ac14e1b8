"""`spanscore score`: the same results for the same input, into several outputs, of all runs or of some."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from commands import SPANSCORE, spanscore, started
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span
from spanscore.cli import _report_writers, main

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDING = str(CORPUS / "strands.jsonl.gz")
SEVERAL = sorted(CORPUS.glob("a*.jsonl.gz"))
FIRST = "68e936d4b6ff4f24ac37737035216051"


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return the JSON that was printed."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Return a folder with recordings in protobuf and JSON; in one, many traces begin and end at the same time."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    one = request_of(*(simple_span(number) for number in range(40, 20, -1)))
    (folder / "b.pb").write_bytes(one.SerializeToString())
    (folder / "a.jsonl.gz").symlink_to(RECORDING)
    return folder


@pytest.mark.full_size
def test_the_same_input_gives_the_same_output(recordings: Path, tmp_path: Path) -> None:
    """Byte for byte, in every process and form: also where nothing but the place in the file tells traces apart."""
    junit, lines = tmp_path / "junit.xml", tmp_path / "scores.jsonl"
    outputs = set()
    for seed in ("0", "1", "2", "3"):
        done = spanscore("score", recordings, "--junit", junit, "--json", lines, PYTHONHASHSEED=seed)
        assert "" == done.stderr
        outputs.add((done.stdout, junit.read_bytes(), lines.read_bytes()))

    assert 1 == len(outputs)


def test_files_say_what_standard_output_would(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """--junit and --json write in the same run, byte for byte, what --format would print."""
    junit, lines = tmp_path / "junit.xml", tmp_path / "scores.jsonl"
    told = []
    for more in (["--junit", str(junit), "--json", str(lines)], [], ["--format", "junit"], ["--format", "json"]):
        main(["score", RECORDING, *more])
        told.append(capsysbinary.readouterr())

    table, again, as_junit, as_json = (out for out, _ in told)
    assert [b""] * 4 == [errors for _, errors in told]
    assert (table, junit.read_bytes(), lines.read_bytes()) == (again, as_junit, as_json)
    assert ["junit.xml", "scores.jsonl"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An older result gives way only to a complete one, keeps its permissions, and a link stays a link."""
    target, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    broken = tmp_path / "broken.yaml"
    broken.write_text("evaluators: {a: {type: nothing}}")

    assert 2 == main(["score", RECORDING, "--json", str(link), "--config", str(broken)])
    assert "old" == target.read_text()
    assert 1 == main(["score", RECORDING, "--json", str(link)])
    assert 6 == len(target.read_text().splitlines())
    assert (True, 0o640) == (link.is_symlink(), target.stat().st_mode & 0o777)
    assert ["broken.yaml", "link.jsonl", "real.jsonl"] == sorted(path.name for path in tmp_path.iterdir())


def test_what_cannot_be_read_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that ends with an error leaves what was there, and nothing half-written."""
    vanishing = tmp_path / "loop.jsonl"
    vanishing.symlink_to(vanishing)

    assert 2 == main(["score", str(vanishing), "--json", str(tmp_path / "out.jsonl")])
    assert ["loop.jsonl"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--junit", "no/such/folder.xml"], "--junit: cannot write 'no/such/folder.xml': No such file or directory"),
        (["--json", "."], "--json: cannot write '.': it is a directory"),
        (["--json", "x", "--junit", "./x"], "--json: 'x' is --junit, too"),
        (["--json", "-"], "--json: must be a file; standard output has that form with --format json"),
        (["--junit", "-"], "--junit: must be a file; standard output has that form with --format junit"),
        (["--json", "in.jsonl"], "--json: 'in.jsonl' is the input, too"),
        (
            ["more", "--html", "more/one.jsonl"],
            "--html: 'more/one.jsonl' would be read as a part of the input; name another directory",
        ),
        (["--config", "some.yaml", "--html", "./some.yaml"], "--html: 'some.yaml' is the configuration, too"),
        (["--config", "some.yaml", "--json", "rows.jsonl"], "--json: 'rows.jsonl' is a dataset, too"),
    ],
)
def test_a_file_that_cannot_be_written(
    options: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is told before anything is scored, with status 2."""
    monkeypatch.chdir(tmp_path)
    Path("more").mkdir()
    written = {
        "in.jsonl": "",
        "more/one.jsonl": "",
        "some.yaml": "evaluators: {a: {type: expected_trajectory, expected_from: {dataset: rows.jsonl, key: k}}}",
        "rows.jsonl": '{"k": "a", "steps": []}',
    }
    for name, text in written.items():
        Path(name).write_text(text, encoding="utf-8")

    assert 2 == main(["score", "in.jsonl", *options])
    assert ("", f"{expected}\n") == tuple(capsys.readouterr())
    assert written == {
        str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8")
        for path in tmp_path.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("command", ["score", "explain"])
def test_a_full_disk_is_told_in_a_line(command: str, tmp_path: Path) -> None:
    """What was to be shown did not arrive, and the exit status says so; it is more than what is written at once."""
    with started(command, *SEVERAL, output=Path("/dev/full"), errors=tmp_path / "errors") as ended:
        assert 1 == ended.wait()
    assert "spanscore: [Errno 28] No space left on device\n" == (tmp_path / "errors").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("option", ["--json", "--junit", "--html"])
def test_a_file_that_cannot_be_written_is_named(option: str, tmp_path: Path) -> None:
    """Each of several outputs may be on another disk."""
    ended = spanscore("score", SEVERAL[0], option, "/dev/full", "--markdown", tmp_path / "scores.md")

    assert (1, f"spanscore: {option}: cannot write '/dev/full': No space left on device\n") == (
        ended.returncode,
        ended.stderr,
    )


@pytest.mark.full_size
def test_files_are_whole_where_nobody_reads_on(tmp_path: Path) -> None:
    """`spanscore score ... --json FILE | head -1` writes the file all the same."""
    target = tmp_path / "scores.jsonl"
    command = [*SPANSCORE, "score", str(CORPUS), "--format", "json", "--json", str(target)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    assert 1 == process.wait(timeout=DEADLINE_S)
    assert spanscore("score", CORPUS, "--format", "json").stdout.encode() == target.read_bytes()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--trace", FIRST[:4]], ["travel_agent"]),
        (["--trace", FIRST.upper()], ["travel_agent"]),
        (["--trace", FIRST, "--trace", "2871a364"], ["travel_agent", "orchestrator"]),
        (["--agent", "t*_agent"], ["travel_agent"] * 4 + ["triage_agent"]),
        (["--agent", "orchestrator", "--agent", "triage_?gent"], ["orchestrator", "triage_agent"]),
        (["--case", "sess-42"], ["travel_agent"] * 3),
        (["--case", "sess-42", "--trace", FIRST], ["travel_agent"]),
        (["--key", "service.name", "--case", "strands-demo", "--agent", "orch*"], ["orchestrator"]),
    ],
    ids=" ".join,
)
def test_filters(options: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By trace, agent and case: what is left out is neither scored nor shown."""
    assert main(["score", RECORDING, "--format", "json", *options]) in {0, 1}
    told = lines_of(capsys)
    assert expected == [line["agent"] for line in told]


def test_a_filter_decides_what_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is that of the runs that are left: one that passed is green beside others that did not."""
    assert [0, 1] == [main(["score", RECORDING, "--agent", agent]) for agent in ("orchestrator", "triage_agent")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--agent", "travl"],
            [
                (
                    "--agent travl: matches no run; runs have orchestrator, travel_agent, triage_agent; "
                    "the nearest is travel_agent"
                )
            ],
        ),
        (["--case", "sess-4"], ["--case sess-4: matches no run; runs have sess-42"]),
        (["--key", "my.key", "--case", "x"], ["--case x: matches no run; none has my.key"]),
        (
            ["--agent", "orchestrator", "--agent", "nobody", "--case", "sess-42"],
            ["--agent nobody: matches no run; runs have orchestrator, travel_agent, triage_agent"],
        ),
        (["--key", "sesion.id"], ["--key sesion.id: no run has 'sesion.id'; did you mean 'session.id'?"]),
        (["--agent", "orchestrator", "--case", "sess-42"], ["no run fulfils --agent and --case at once"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") and ":" not in value[0] else "",
)
def test_a_filter_that_matches_nothing(
    options: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with what there was and the nearest, and the status is 1: nothing checked is not green."""
    assert 1 == main(["score", RECORDING, *options])
    assert expected == capsys.readouterr().err.splitlines()


def test_where_nothing_was_scored_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard error has said all there is to say."""
    assert 1 == main(["score", RECORDING, "--case", "refund-22"])
    assert "" == capsys.readouterr().out


def test_of_many_traces_the_nearest_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Five, and how many there are besides."""
    assert 1 == main(["score", RECORDING, "--trace", "68e936d5"])
    line = capsys.readouterr().err
    assert line.startswith("--trace 68e936d5: matches no run; runs have ")
    assert line.endswith(f" and 1 more; the nearest is {FIRST}\n")


@pytest.mark.parametrize("trace", ["68e", "xyz1", "0" * 33])
def test_what_is_no_trace_id(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Too short to tell traces apart, or no digits."""
    with pytest.raises(SystemExit):
        main(["score", RECORDING, "--trace", trace])
    assert f"--trace: must be 4 to 32 hexadecimal digits, not {trace!r}\n" in capsys.readouterr().err


def test_junit_reads_as_ci_servers_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, names that last from run to run, ids as properties before what was found, and every character allowed."""
    path = tmp_path / "recording.pb"
    case = KeyValue(key="test.case.name", value=AnyValue(string_value="late <refund> & \ufffe\x00"))
    request = request_of(simple_span(1, attributes=[case]), simple_span(2), simple_span(3))
    path.write_bytes(request.SerializeToString())
    target = tmp_path / "junit.xml"

    main(["score", str(path), RECORDING, "--junit", str(target)])
    (suite,) = junitparser.JUnitXml.fromfile(str(target))
    cases = list(suite)

    assert (9, 4, 0, 1) == (suite.tests, suite.failures, suite.errors, suite.skipped)
    assert ("health", 9) == (suite.name, len({each.name for each in cases}))
    assert ["late <refund> & \ufffd\ufffd", "unknown #1", "unknown #2", "sess-42 #1"] == [
        each.name for each in cases[:4]
    ]
    reason = {"spanscore.fail_reason": "health: book_hotel failed: ValueError"}
    assert [{"trace_id": FIRST, "root_span_id": "07d4c1cc081aa04f"} | reason] == [
        {each.name: each.value for each in cases[3].child(junitparser.Properties)}
    ]
    told = {each.name: each.value for each in cases[0].child(junitparser.Properties)}
    assert "late <refund> & \ufffd\ufffd" == told["test.case.name"]
    assert 4 == sum(isinstance(result, junitparser.Failure) for each in cases for result in each.result)
    root = ET.parse(target).getroot()
    assert {"name": "spanscore", "tests": "9", "failures": "4", "errors": "0"} == root.attrib
    allowed = [["properties"], ["properties", "failure"], ["properties", "skipped"], ["properties", "error"]]
    assert [] == [case for case in root.iter("testcase") if [each.tag for each in case] not in allowed]


def test_a_key_names_the_cases_of_junit(capsys: pytest.CaptureFixture[str]) -> None:
    """--key is for JUnit as for --case."""
    main(["score", RECORDING, "--format", "junit", "--key", "gen_ai.agent.name", "--agent", "*i*"])
    names = [case.attrib["name"] for case in ET.fromstring(capsys.readouterr().out).iter("testcase")]
    assert [] == [name for name in names if name.split(" #")[0] not in {"triage_agent", "orchestrator"}]


def test_no_content_leaves_out_what_tools_were_told_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments, results and the text of an error stay out of every form; what failed is named by its type."""
    recording, configured = tmp_path / "run.jsonl", tmp_path / "spanscore.yaml"
    configured.write_text(
        "evaluators: {args: {type: tool_call_args, tool_calls: [{name: pay, args: {amount: CANARY-wanted}}]}}"
    )
    recording.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [failed_call()]}]}]}))
    shown = {}
    for form, more in product(_report_writers.FORMATS, ([], ["--no-content"])):
        assert 1 == main(["score", str(recording), "--config", str(configured), "--format", form, *more])
        shown[form, bool(more)] = capsys.readouterr().out

    assert {form: [True, False] for form in _report_writers.FORMATS} == {
        form: ["CANARY" in shown[form, False], "CANARY" in shown[form, True]] for form in _report_writers.FORMATS
    }
    assert "called  pay ✗ PaymentError" in shown["table", True]


def failed_call() -> dict[str, object]:
    """Return a span, in OTLP/JSON, of a call that failed."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "pay",
        "gen_ai.tool.call.arguments": '{"amount": "CANARY-argument"}',
        "gen_ai.tool.call.result": "CANARY-result",
        "error.type": "PaymentError",
    }
    return {
        "traceId": "1" * 32,
        "spanId": "1" * 16,
        "name": "execute_tool pay",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        "status": {"code": 2, "message": "CANARY-error"},
    }
