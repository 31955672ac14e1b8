"""What the command line says to somebody who does not know it, or mistypes."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from commands import python, spanscore, spanscore_after
from spanscore.cli import COMMANDS, main

HEAVY = {"asyncio", "difflib", "email", "google", "grpc", "importlib.metadata", "inspect", "opentelemetry", "pydantic"}
CHOICES = "(choose from evaluators, dialects, receivers, emitters)"


def test_the_bare_command_says_what_there_is() -> None:
    """Without arguments it ends well, with where to begin and every command on a line of its own, as --help does."""
    bare, asked = spanscore(), spanscore("--help")

    assert (0, "") == (bare.returncode, bare.stderr)
    assert (0, "", bare.stdout) == (asked.returncode, asked.stderr, asked.stdout)
    lines = [" ".join(line.split()) for line in bare.stdout.splitlines()]
    for first in ("spanscore demo ", "spanscore score FILE ", "spanscore serve "):
        assert any(line.startswith(first) for line in lines)
    assert any("spanscore COMMAND --help" in line for line in lines)


@pytest.mark.parametrize("columns", [30, 60, 80])
def test_the_overview_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wider than the terminal, and nothing is lost by it."""
    main([])
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(columns))
    main([])
    told = capsys.readouterr().out

    assert columns >= max(map(len, told.splitlines()))
    assert sorted(whole.split()) == sorted(told.split())


def loaded(*arguments: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after the command."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from spanscore.cli import main; main()"
    return set(python("-c", code, *arguments).stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",)])
def test_the_overview_loads_no_command(arguments: tuple[str, ...]) -> None:
    """And nothing that takes long."""
    modules = loaded(*arguments)

    assert "spanscore.cli" in modules
    assert HEAVY.isdisjoint(modules)
    assert [] == [module for module in COMMANDS.values() if f"spanscore.cli.{module}" in modules]


@pytest.mark.parametrize("command", ["diff", "score"])
def test_a_command_loads_no_other(command: str) -> None:
    """Nor, as it reads files, anything of a server."""
    modules = loaded(command, "--help")

    assert {"asyncio", "grpc", "aiohttp", "opentelemetry.sdk", "prometheus_client"}.isdisjoint(modules)
    assert [command] == [module for module in COMMANDS.values() if f"spanscore.cli.{module}" in modules]


def test_nothing_is_collected_at_exit() -> None:
    """Python would look at every object of every module first."""
    frozen = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count())); import spanscore.cli as cli; "

    assert 1_000 < int(python("-c", f"{frozen} cli.main()").stdout.splitlines()[-1])


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is written once."""
    with pytest.raises(SystemExit):
        main(["--version"])
    assert f"spanscore {version('spanscore')}\n" == capsys.readouterr().out


def test_every_command_is_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    """What the overview lists can be run, and what can be run is listed."""
    main([])
    told = capsys.readouterr().out
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ") and "  spanscore " not in line]
    with pytest.raises(SystemExit):
        main(["no-command-is-near-this"])
    known = capsys.readouterr().err.splitlines()[0].partition("(commands: ")[2].removesuffix(")").split(", ")

    assert sorted(known) == sorted(listed)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["scoer"], "spanscore: no command 'scoer'; did you mean 'score'?"),
        (["--versoin"], "spanscore: no option '--versoin'; did you mean '--version'?"),
        (["score", "x", "--formt", "json"], "spanscore score: no option '--formt'; did you mean '--format'?"),
        (["score", "x", "--formt=json"], "spanscore score: no option '--formt'; did you mean '--format'?"),
        (["score", "x", "--form", "json"], "spanscore score: no option '--form'; did you mean '--format'?"),
        (["send", "x", "--endpont", "y"], "spanscore send: no option '--endpont'; did you mean '--endpoint'?"),
        (
            ["score", "x", "--format", "jsn"],
            "spanscore score: --format: no 'jsn'; did you mean 'json'? (choose from table, json, junit, markdown)",
        ),
        (
            ["schema", "--referenc"],
            "spanscore schema: no option '--referenc'; did you mean '--reference'?",
        ),
        (["list", "evaluator"], f"spanscore list: KIND: no 'evaluator'; did you mean 'evaluators'? {CHOICES}"),
        (["check", "a", "b"], "spanscore check: unexpected argument 'b'"),
        (["score"], "spanscore score: the following arguments are required: FILE"),
        (
            ["score", "x", "--fail-under", "much"],
            "spanscore score: --fail-under: must be a number from 0 to 1, not 'much'",
        ),
        (["score", "x", "--fail-under", "2"], "spanscore score: --fail-under: must be a number from 0 to 1, not '2'"),
    ],
    ids=" ".join,
)
def test_a_mistake_is_one_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It names what was probably meant; the next line leads to the help; both on standard error, with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = capsys.readouterr()

    program = expected.partition(":")[0]
    assert (2, "", f"{expected}\ntry '{program} --help'\n") == (ended.value.code, told.out, told.err)


def test_what_stands_behind_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A file whose name begins with a dash can be scored."""
    assert 2 == main(["score", "--", "--formt"])
    assert "--formt: cannot be read: No such file or directory\n" == capsys.readouterr().err


@pytest.mark.parametrize(("words", "option"), [(["help"], ["--help"]), (["help", "score"], ["score", "--help"])])
def test_help_is_a_command_too(words: list[str], option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As in many other programs: it shows what --help shows."""
    told = []
    for arguments in (words, option):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told.append((ended.value.code, capsys.readouterr().out))
    assert told[0] == told[1]
    assert 0 == told[0][0]


def test_interrupted_while_a_command_is_loaded() -> None:
    """Ctrl-C is no error of ours: no traceback, and the status that shells give."""
    preparation = """
from spanscore.cli import score
def interrupted(_):
    raise KeyboardInterrupt
score.define = interrupted
"""
    ended = spanscore_after(preparation, "score", "--help")

    assert (130, "", "") == (ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("option", ["--agent", "--case", "--key"])
def test_empty_values(option: str) -> None:
    """As of a variable that is not set: the option is named, and nothing is read."""
    ended = spanscore("score", "no.jsonl", option, "")

    assert (2, True) == (ended.returncode, f"{option}: must not be empty" in ended.stderr)
