"""`spanscore list` and `describe`: what there is, and what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import spanscore
from spanscore import config
from spanscore.cli import main
from spanscore.contracts.plugins import KINDS, Kind, names

EVERYTHING = [(kind, name) for kind in KINDS for name in names(kind)]


def test_list_says_what_each_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Below each kind stands a line for each name, with its first sentence; all sentences begin in one column."""
    assert 0 == main(["list"])
    lines = capsys.readouterr().out.splitlines()

    assert [f"{kind}:" for kind in KINDS] == [line for line in lines if not line.startswith(" ")]
    expected = [f"{name} {config.describe(name, kind).summary}" for kind, name in EVERYTHING]
    entries = [line for line in lines if line.startswith(" ")]
    assert expected == [" ".join(line.split()) for line in entries]
    assert 1 == len({line.index(line.split(maxsplit=1)[1], len(line.split()[0]) + 2) for line in entries})


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_is_listed_alone(kind: Kind, capsys: pytest.CaptureFixture[str]) -> None:
    """Its names stand at the beginning of the lines, for grep and awk."""
    assert 0 == main(["list", kind])
    assert list(names(kind)) == [line.split()[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("columns", ["60", "40"])
def test_list_keeps_to_the_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However narrow: no line is longer than COLUMNS, and no word is cut."""
    main(["list"])
    words = capsys.readouterr().out.split()
    monkeypatch.setenv("COLUMNS", columns)
    main(["list"])
    told = capsys.readouterr().out

    assert words == told.split()
    assert int(columns) >= max(map(len, told.splitlines()))


@pytest.mark.parametrize("columns", ["0", "wide", "", "²"])
def test_a_width_that_is_none_is_ignored(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no number of columns limits nothing."""
    monkeypatch.setenv("COLUMNS", columns)
    assert 0 == main(["list", "evaluators"])
    assert len(names("evaluators")) == len(capsys.readouterr().out.splitlines())


def test_a_plug_in_that_is_broken_hides_no_other(tmp_path: Path) -> None:
    """What is installed is named with where it is from; where it cannot be loaded, its line says why."""
    fine = """
from dataclasses import dataclass

@dataclass
class FineSettings:
    pass

class Fine:
    '''Says yes.'''
    Settings = FineSettings

    @classmethod
    def configured(cls, settings, host):
        return cls()
"""
    for name, source in {"works": fine, "breaks": "raise OSError('no disk')"}.items():
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[spanscore.emitters]\n{name} = {name}_module:Fine\n")
        (tmp_path / f"{name}_module.py").write_text(source)
    done = spanscore("list", "emitters", PYTHONPATH=str(tmp_path))

    assert 0 == done.returncode, done.stderr
    told = {line.split()[0]: " ".join(line.split()[1:]) for line in done.stdout.splitlines()}
    assert "Says yes. (works 1.0)" == told["works"]
    assert told["breaks"].endswith("cannot be loaded: OSError: no disk")
    assert {*names("emitters"), "works", "breaks"} == set(told)


@pytest.mark.parametrize(("kind", "name"), EVERYTHING)
def test_describe_explains_all_that_is_listed(capsys: pytest.CaptureFixture[str], kind: Kind, name: str) -> None:
    """Whatever `list` names can be explained."""
    assert 0 == main(["describe", name])

    assert f"{name}: {kind[:-1]}\n\n" in capsys.readouterr().out


def test_describe_explains_an_evaluator(capsys: pytest.CaptureFixture[str]) -> None:
    """Its meaning, and each parameter with what is allowed and its default."""
    assert 0 == main(["describe", "tool_call_order"])
    told = capsys.readouterr().out

    assert "tool_calls_order: list" in told
    assert "strict: true or false (default false)" in told


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("promtheus", "did you mean 'prometheus'?"),
        ("opneinference", "did you mean 'openinference'?"),
        ("xyz", "spanscore list shows what there is"),
    ],
)
def test_what_there_is_not(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest name of any kind is told."""
    assert 2 == main(["describe", name])
    assert f"nothing is named {name!r}; {hint}\n" == capsys.readouterr().err


@pytest.mark.parametrize("program", ["envoy", "Envoy AI Gateway", "agentgateway"])
def test_a_dialect_is_found_by_the_program_whose_spans_it_reads(
    capsys: pytest.CaptureFixture[str], program: str
) -> None:
    """Its description names the program."""
    assert 0 == main(["describe", program])
    out = capsys.readouterr().out
    assert out.startswith("mcp: dialect")
    assert program.lower() in out.lower()


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (
            "traceloop",
            "nothing is named 'traceloop'; it is in the descriptions of langchain_openllmetry, openllmetry, ",
        ),
        ("the", "nothing is named 'the'; spanscore list shows what there is"),
        ("[x(", "nothing is named '[x('; spanscore list shows what there is"),
        (" ", "nothing is named ' '; spanscore list shows what there is"),
    ],
)
def test_a_word_of_several_descriptions(capsys: pytest.CaptureFixture[str], word: str, told: str) -> None:
    """They are named, unless they are too many to help."""
    assert 2 == main(["describe", word])
    assert told in capsys.readouterr().err
