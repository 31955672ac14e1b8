from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import spanscore
from cli.recorded_runs import recorded
from serving import Reports, eventually, serving
from spanscore.cli import main
from spanscore.config import describe, json_schema, loads, reference
from spanscore.config import parts as wiring
from spanscore.contracts import Host, plugins
from spanscore.evaluators.tool_call_f1 import ToolCallF1
from spanscore.testing import SampleIntake, check_dialect, check_emitter, check_evaluator, check_receiver

EXAMPLE = Path(__file__).parent / "example_plugin"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution: the metadata that an installer would write, and Python modules."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def install(name: str, entry_points: dict[str, dict[str, str]], **modules: str) -> None:
        metadata = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for group, entries in entry_points.items():
            lines += [f"[{group}]", *(f"{entry} = {value}" for entry, value in entries.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        for module, source in modules.items():
            (tmp_path / f"{module}.py").write_text(source)
        # The list of what is installed is kept for as long as the import path is the same.
        monkeypatch.syspath_prepend(str(tmp_path / name))

    yield install
    for module in set(sys.modules) - before:
        del sys.modules[module]


@pytest.fixture
def example(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example, by what its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    install(project["name"], project["entry-points"])


def test_built_ins_are_the_files() -> None:
    """Every file or package of a folder is a plug-in, unless it starts with an underscore or the folder shares it."""
    for kind in plugins.KINDS:
        package = importlib.import_module(f"spanscore.{kind}")
        files = {path.stem for path in Path(package.__path__[0]).iterdir() if not path.name.startswith("_")}

        assert sorted(files - getattr(package, "SHARED", frozenset())) == list(plugins.names(kind))
    assert ("kafka", "otlp") == plugins.names("receivers")
    assert ("console", "jsonl", "otlp", "prometheus") == plugins.names("emitters")


def test_built_in_class() -> None:
    """The class is the file's name in camel case."""
    assert plugins.find("evaluators", "tool_call_f1") is ToolCallF1
    assert "built-in" == plugins.origin("evaluators", "tool_call_f1")


@pytest.mark.parametrize("kind", ["evaluators", "dialects"])
def test_every_built_in_loads_and_says_what_it_is(kind: plugins.Kind) -> None:
    """Every built-in has a class of the right name with a docstring."""
    for name in plugins.names(kind):
        assert describe(name, kind).summary


def test_unknown_name() -> None:
    """An unknown name is an error with the nearest name and all that exist."""
    with pytest.raises(spanscore.ConfigError) as caught:
        plugins.find("evaluators", "tool_call_oder")

    existing = ", ".join(plugins.names("evaluators"))
    assert f"there is no evaluator 'tool_call_oder'; did you mean 'tool_call_order'? (evaluators: {existing})" == str(
        caught.value
    )


@pytest.mark.usefixtures("example")
def test_example() -> None:
    """What a distribution's entry points name is used like what is built in."""
    config = loads("evaluators: {fast: {type: tool_call_latency, budget_ms: 5}}", "c.yaml", Path())

    evaluator = config.evaluators[0].resolve(spanscore.Trajectory.from_calls([]))
    assert isinstance(evaluator, plugins.find("evaluators", "tool_call_latency"))
    calls = [{"name": "a", "duration_ms": 5}, {"name": "b", "duration_ms": 6}]
    outcome = evaluator.evaluate(spanscore.Trajectory.from_calls(calls))
    assert spanscore.Score(value=0.5, passed=False, explanation="1 of 2 calls kept to their budget.") == outcome
    assert plugins.find("dialects", "acme") in [type(dialect) for dialect in config.dialects]
    assert "spanscore-example 1.0" == plugins.origin("evaluators", "tool_call_latency")


@pytest.mark.usefixtures("example")
def test_mistakes_in_the_parameters_of_the_example() -> None:
    """The annotations and the check of another distribution's evaluator make the same messages."""
    text = """\
evaluators:
  a: {type: tool_call_latency, budget_ms: 0}
  b: {type: tool_call_latency, budget_ms: 5, budgets_ms: {search: 5}}
"""
    with pytest.raises(spanscore.ConfigError) as caught:
        loads(text, "c.yaml", Path())

    assert [
        "c.yaml:2:43 evaluators.a.budget_ms: must be more than 0, not 0",
        "c.yaml:3:67 evaluators.b.budgets_ms.search: says no more than budget_ms, 5.0; leave it out",
    ] == str(caught.value).splitlines()


def test_names_import_nothing(install: Install) -> None:
    """A plug-in is imported only when it is asked for."""
    install("lazy", {"spanscore.evaluators": {"lazy": "lazy_module:Lazy"}}, lazy_module="raise RuntimeError('no')")

    assert "lazy" in plugins.names("evaluators")
    assert "lazy_module" not in sys.modules


@pytest.mark.parametrize(
    ("value", "source", "expected"),
    [
        ("broken_module:Broken", "raise RuntimeError('no')", "cannot be loaded: RuntimeError: no"),
        (
            "broken_module:Broken",
            "",
            "cannot be loaded: AttributeError: module 'broken_module' has no attribute 'Broken'",
        ),
        ("absent_module:Broken", "", "cannot be loaded: ModuleNotFoundError: No module named 'absent_module'"),
        ("broken_module:Broken", "def Broken(): ...", "must be a class, not function"),
    ],
)
def test_what_cannot_be_loaded(install: Install, value: str, source: str, expected: str) -> None:
    """A plug-in that cannot be loaded is an error that names its distribution and its entry point."""
    install("broken", {"spanscore.evaluators": {"broken": value}}, broken_module=source)

    with pytest.raises(spanscore.PluginError) as caught:
        plugins.find("evaluators", "broken")

    assert f"evaluator 'broken' of broken 1.0 (entry point broken = {value}) {expected}" == str(caught.value)


@pytest.mark.parametrize("held", [5, "text", [5], (5,), [{"call": "x", "path": 1, "kind": "arguments"}, {}]])
@pytest.mark.parametrize("form", ["table", "json", "junit"])
def test_details_may_hold_anything(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, held: object
) -> None:
    """What the details of a plug-in's score are is its own affair, also where keys are named as those of ours."""
    source = (
        "from dataclasses import dataclass\nfrom typing import ClassVar\nfrom spanscore import Score\n"
        "@dataclass(frozen=True)\nclass Odd:\n  expectation: ClassVar = None\n"
        "  def evaluate(self, trajectory):\n"
        f"    return Score(0.5, False, 'odd', {{'deviations': {held!r}, 'alignment': 5}})\n"
    )
    install("odd", {"spanscore.evaluators": {"odd": "odd_module:Odd"}}, odd_module=source)
    path = tmp_path / "spanscore.yaml"
    path.write_text("evaluators: {odd: {type: odd}}")
    recording = str(Path(__file__).parent / "corpus" / "strands.jsonl.gz")

    for more in ([], ["--no-content"]):
        assert 1 == main(["score", recording, "--config", str(path), "--format", form, *more])
        told = capsys.readouterr()
        assert "odd" in told.out
        assert not told.err


def test_two_claims(install: Install) -> None:
    """A name that two distributions claim belongs to neither."""
    install("one", {"spanscore.evaluators": {"mine": "one:One"}})
    install("two", {"spanscore.evaluators": {"mine": "two:Two"}})

    with pytest.raises(spanscore.PluginError) as caught:
        plugins.find("evaluators", "mine")

    assert (
        "evaluator 'mine' is claimed by one 1.0 (entry point mine = one:One) and by two 1.0 "
        "(entry point mine = two:Two); uninstall all but one" == str(caught.value)
    )
    assert "one 1.0, two 1.0" == plugins.origin("evaluators", "mine")


def test_claim_of_a_built_in(install: Install) -> None:
    """Nobody replaces a built-in unnoticed: using the name is an error, in a configuration as well."""
    install("rogue", {"spanscore.evaluators": {"tool_policy": "rogue:Rogue"}})
    message = (
        "evaluator 'tool_policy' is built in, but is also claimed by rogue 1.0 "
        "(entry point tool_policy = rogue:Rogue); uninstall that"
    )

    with pytest.raises(spanscore.PluginError) as caught:
        spanscore.evaluator("tool_policy", {"max_calls": 1})
    assert message == str(caught.value)
    with pytest.raises(spanscore.ConfigError) as caught_in_file:
        loads("evaluators: {a: {type: tool_policy, max_calls: 1}}", "c.yaml", Path())
    assert f"c.yaml:1:24 evaluators.a.type: {message}" == str(caught_in_file.value)


def test_dialect_that_cannot_be_loaded(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """A warning names it, unless it is disabled, and the others are in use."""
    install("broken", {"spanscore.dialects": {"broken": "absent_module:Broken"}})
    found = loads("", "c.yaml", Path()).dialects

    assert "Mcp" in {type(each).__name__ for each in found}
    (told,) = caplog.messages
    assert told == (
        "dialect 'broken' of broken 1.0 (entry point broken = absent_module:Broken) cannot be loaded: "
        "ModuleNotFoundError: No module named 'absent_module'; no span is read by it"
    )
    caplog.clear()
    assert len(found) == len(loads("dialects: {disabled: [broken]}", "c.yaml", Path()).dialects)
    assert [] == caplog.messages


def test_plug_ins_that_cannot_be_loaded_cost_only_themselves(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that do not name them work; the schema and the reference have all others."""
    kinds = ("dialects", "evaluators", "receivers", "emitters")
    install("broken", {f"spanscore.{kind}": {f"broken_{kind}": "absent_module:Broken"} for kind in kinds})
    file = recorded(tmp_path / "runs.jsonl", ("a", "x"))

    for command in (["list"], ["schema"], ["schema", "--reference"], ["score", file], ["explain", file]):
        assert 0 == main(command)
    told = capsys.readouterr()
    assert all(f"broken_{kind} " in told.out for kind in kinds)
    assert "tool_call_order" in told.out
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class Bad: ...", "must be a dataclass whose fields are its parameters"),
        ("@dataclass\nclass Bad: ...", "must have a method 'evaluate'"),
        (
            "@dataclass\nclass Bad:\n  def evaluate(self, trajectory): ...",
            "must have a class variable 'expectation': the name of one of its parameters, or None",
        ),
        (
            "@dataclass\nclass Bad:\n  expectation: ClassVar = 'other'\n  def evaluate(self, trajectory): ...",
            "must have a class variable 'expectation': the name of one of its parameters, or None",
        ),
        (
            "@dataclass\nclass Bad:\n  match: str\n  expectation: ClassVar = None\n  def evaluate(self, calls): ...",
            "must not have a parameter 'match': every entry of the configuration has a key of that name",
        ),
    ],
)
def test_broken_contracts(install: Install, source: str, expected: str) -> None:
    """A class that is no evaluator is an error that says what it lacks."""
    head = "from dataclasses import dataclass\nfrom typing import ClassVar\n"
    install("bad", {"spanscore.evaluators": {"bad": "bad_module:Bad"}}, bad_module=head + source)

    with pytest.raises(spanscore.PluginError) as caught:
        spanscore.evaluator("bad")

    assert f"evaluator 'bad' (bad_module.Bad) {expected}" == str(caught.value)


def test_annotations_that_cannot_be_checked(install: Install) -> None:
    """Parameters whose annotations are not there at run time are an error, not a crash."""
    source = """\
from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
if TYPE_CHECKING:
    from collections.abc import Mapping
@dataclass
class Bad:
    names: Mapping[str, str]
    expectation: ClassVar[str | None] = None
    def evaluate(self, trajectory): ...
"""
    install("bad", {"spanscore.evaluators": {"bad": "bad_module:Bad"}}, bad_module=source)

    with pytest.raises(spanscore.PluginError) as caught:
        spanscore.evaluator("bad", {"names": {}})

    assert "the parameters of evaluator 'bad' cannot be checked: name 'Mapping' is not defined" == str(caught.value)


def test_a_check_that_breaks(install: Install) -> None:
    """An evaluator whose own check raises anything but ValueError is broken, and the error says so."""
    source = """\
from dataclasses import dataclass
from typing import ClassVar
@dataclass
class Bad:
    expectation: ClassVar = None
    def __post_init__(self): raise KeyError('x')
    def evaluate(self, trajectory): ...
"""
    install("bad", {"spanscore.evaluators": {"bad": "bad_module:Bad"}}, bad_module=source)

    with pytest.raises(spanscore.PluginError, match=r"^Bad cannot be built: KeyError: 'x'$"):
        spanscore.evaluator("bad")
    with pytest.raises(spanscore.ConfigError, match=r"^c.yaml:1:17 evaluators.a: Bad cannot be built: KeyError: 'x'$"):
        loads("evaluators: {a: {type: bad}}", "c.yaml", Path())


@pytest.mark.usefixtures("example")
def test_an_evaluator_of_a_plug_in_has_a_time_limit() -> None:
    """A second, and a process to keep it, unless the configuration says otherwise; its version is the plug-in's."""
    text = """\
evaluators:
  a: {type: tool_call_latency}
  b: {type: tool_call_latency, time_limit: 3s}
  c: {type: tool_call_latency, time_limit: none}
"""
    entries = loads(text, "c.yaml", Path()).evaluators

    assert [(1.0, "1.0"), (3.0, "1.0"), (None, "1.0")] == [(entry.time_limit_s, entry.version) for entry in entries]


LOCAL = """\
from dataclasses import dataclass
from typing import ClassVar

def make():
    @dataclass(frozen=True)
    class Local:
        expectation: ClassVar[str | None] = None

        def evaluate(self, trajectory):
            return None

    return Local

Local = make()
"""


def test_an_evaluator_that_cannot_be_sent_to_another_process_is_refused(install: Install) -> None:
    """It could not be held to its time limit; the message says how to run it without."""
    install("local", {"spanscore.evaluators": {"local": "local_module:Local"}}, local_module=LOCAL)
    with pytest.raises(spanscore.ConfigError) as caught:
        loads("evaluators:\n  a: {type: local}", "c.yaml", Path())

    begin = "c.yaml:2:3 evaluators.a: 'local' cannot be run under a time limit, in another process: "
    assert str(caught.value).startswith(begin)
    assert str(caught.value).endswith("; with 'time_limit: none' it runs in this one")
    assert loads("evaluators: {a: {type: local, time_limit: none}}", "c.yaml", Path())


@pytest.mark.usefixtures("example")
def test_the_example_is_scored_elsewhere() -> None:
    """A plug-in that is found on the import path of this process is found by the other one, too."""
    config = loads("evaluators: {fast: {type: tool_call_latency, budget_ms: 5, time_limit: 30s}}", "c.yaml", Path())
    (entry,) = wiring.pipeline(config).entries
    calls = [{"name": "a", "duration_ms": 5}, {"name": "b", "duration_ms": 6}]
    trajectory = spanscore.Trajectory.from_calls(calls)
    assert entry.elsewhere is not None
    evaluator = entry.resolve(trajectory)

    outcome = spanscore.Score(value=0.5, passed=False, explanation="1 of 2 calls kept to their budget.")
    assert outcome == entry.elsewhere(evaluator, trajectory).result(30)


REQUEST = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "11" * 16,
                            "spanId": "22" * 8,
                            "name": "acme",
                            "startTimeUnixNano": "1000000000",
                            "endTimeUnixNano": "1007000000",
                            "attributes": [{"key": "acme.tool", "value": {"stringValue": "search"}}],
                        }
                    ]
                }
            ]
        }
    ]
}
EVERYTHING = """\
receivers: {{spool: {{directory: {0}, every: 10ms}}}}
traces: {{decision_delay: 0s}}
evaluators: {{fast: {{type: tool_call_latency, budget_ms: 5, time_limit: none}}}}
exporters: {{scores_csv: {{path: {0}/scores.csv, digits: 3}}}}
"""


def put(file: Path, content: bytes) -> None:
    """Put a whole file there at once."""
    file.with_suffix(".part").write_bytes(content)
    file.with_suffix(".part").rename(file)


@pytest.mark.usefixtures("example")
def test_one_of_each_kind_serves(tmp_path: Path) -> None:
    """A receiver of a plug-in brings spans, its dialect reads them, its evaluator scores, its emitter writes that."""
    reports = Reports()
    with serving(EVERYTHING.format(tmp_path), reports):
        put(tmp_path / "broken.pb", b"not OTLP")
        put(tmp_path / "request.json", json.dumps(REQUEST).encode())
        reports.wait_for(1)
        eventually(lambda: not (tmp_path / "request.json").exists())

    assert "11" * 16 + ",fast,0.000\n" == (tmp_path / "scores.csv").read_text()
    assert (tmp_path / "broken.refused").exists()


@pytest.mark.usefixtures("example")
def test_a_plug_in_scores_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Offline, the same configuration gives the same score; nothing is received, and nothing sent."""
    (tmp_path / "config.yaml").write_text(EVERYTHING.format(tmp_path))
    (tmp_path / "recording.json").write_text(json.dumps(REQUEST))

    assert 1 == main(
        ["score", str(tmp_path / "recording.json"), "--config", str(tmp_path / "config.yaml"), "--format", "json"]
    )
    told = json.loads(capsys.readouterr().out)
    assert ("search", 0.0) == (told["tool_calls"][0]["name"], told["outcomes"]["fast"]["value"])
    assert not (tmp_path / "scores.csv").exists()


@pytest.mark.usefixtures("example")
def test_settings_of_the_example_are_explained() -> None:
    """Its emitter and its receiver are described, and in the schema and the reference, like those that are built in."""
    assert ["path", "digits"] == [each.name for each in describe("scores_csv", "emitters").parameters]
    every = describe("spool", "receivers").parameters[1]
    assert ("every", "text such as 2s", "1s", "How often to look.") == (
        every.name,
        every.type,
        every.default,
        every.doc,
    )
    definitions = json_schema()["$defs"]
    assert {"directory", "every"} == definitions["SpoolSettings"]["properties"].keys()
    assert "  #spool:\n    # Where the files are put. (text)\n    #directory: spool\n" in reference()


@pytest.mark.usefixtures("example")
def test_mistakes_in_the_settings_of_the_example() -> None:
    """They are told as of built-in exporters and receivers."""
    text = """\
receivers: {spool: {directory: x, every: 5}}
exporters: {scores_csv: {path: x, digit: 1}, scores_cvs: {}}
"""
    with pytest.raises(spanscore.ConfigError) as caught:
        loads(text, "c.yaml", Path())

    assert [
        (
            "c.yaml:1:42 receivers.spool.every: must be a duration such as '500ms', '1m30s' or '30d', not 5; "
            "write '5s' for seconds"
        ),
        "c.yaml:2:35 exporters.scores_csv.digit: unknown key; did you mean 'digits'? (allowed: digits, path)",
        (
            "c.yaml:2:46 exporters.scores_cvs: unknown key; did you mean 'scores_csv'? "
            f"(allowed: {', '.join(plugins.names('emitters'))})"
        ),
    ] == str(caught.value).splitlines()


@pytest.mark.usefixtures("example")
def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    """An emitter or a receiver of a plug-in that raises stops the start, and the message names its key."""
    with (
        pytest.raises(spanscore.SpanscoreError, match=r"^exporters.scores_csv: IsADirectoryError: "),
        serving(EVERYTHING.format(tmp_path).replace("/scores.csv", "")),
    ):
        pass
    with (
        pytest.raises(spanscore.SpanscoreError, match=r"^receivers.spool: cannot be started: NotADirectoryError: "),
        serving(EVERYTHING.format(tmp_path).replace("every: 10ms", "every: 20ms").replace(f"{tmp_path},", "/absent,")),
    ):
        pass


@pytest.mark.parametrize("section", ["exporters", "receivers"])
def test_broken_contracts_of_emitters_and_receivers(install: Install, section: str) -> None:
    """A class that cannot be configured is an error where it is named, and none where it is not."""
    kind = {"exporters": "emitters", "receivers": "receivers"}[section]
    source = "from dataclasses import dataclass\nclass Bare: ...\n@dataclass\nclass Half:\n  Settings: object = None\n"
    modules = {"bad_module": f"{source}Half.Settings = Half\n"}
    install("bad", {f"spanscore.{kind}": {"bare": "bad_module:Bare", "half": "bad_module:Half"}}, **modules)
    loads("", "c.yaml", Path())
    with pytest.raises(spanscore.ConfigError) as caught:
        loads(f"{section}: {{bare: , half: }}", "c.yaml", Path())

    title = f"{kind[:-1]} {{!r}} (bad_module.{{}})"
    assert [
        (
            f"c.yaml:1:13 {section}.bare: {title.format('bare', 'Bare')} must have a class variable 'Settings': "
            "a dataclass whose fields can be configured"
        ),
        (
            f"c.yaml:1:21 {section}.half: {title.format('half', 'Half')} must have a class method 'configured' "
            "that builds it of its settings"
        ),
    ] == str(caught.value).splitlines()


@pytest.mark.usefixtures("example")
def test_the_example_keeps_its_contracts(tmp_path: Path) -> None:
    """As its author would check it."""
    settings = {"path": tmp_path / "scores.csv"}
    plugin: Any = plugins.find("emitters", "scores_csv")
    check_emitter(plugin.configured(plugin.Settings(**settings), Host()))
    check_dialect(plugins.find("dialects", "acme")())
    check_evaluator(spanscore.evaluator("tool_call_latency"))
    spool: Any = plugins.find("receivers", "spool")

    async def receive() -> None:
        intake, names = SampleIntake(), count()
        receiver = spool.configured(spool.Settings(directory=tmp_path, every_s=0.01), intake)

        async def send(request: bytes) -> None:
            put(tmp_path / f"{next(names)}.pb", request)

        await check_receiver(receiver, intake, send)

    asyncio.run(receive())
