from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.recorded_runs import recorded
from commands import spanscore

CONFIG = """
evaluators:
  refund_rules: {type: tool_policy, must_precede: [[check, refund]]}
"""
GOOD, BAD = ("lookup", "check", "refund"), ("lookup", "refund")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One rule."""
    path = tmp_path / "rules.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def version(path: Path, good: int, bad: int, prefix: str = "c") -> str:
    """Record runs of so many cases that keep the rule, and so many that break it."""
    cases = [*[GOOD] * good, *[BAD] * bad]
    return recorded(path, *((f"{prefix}{number}", *tools) for number, tools in enumerate(cases)))


def test_the_exit_status_is_the_verdict(tmp_path: Path, config: Path) -> None:
    """0 the same or better, 1 worse, 3 inconclusive and 1 with --strict."""
    base, worse = version(tmp_path / "base.jsonl", 20, 0), version(tmp_path / "worse.jsonl", 10, 10)
    few = version(tmp_path / "few.jsonl", 19, 1)

    statuses = [
        spanscore("diff", *sides, "--config", config, *more).returncode
        for sides, more in [
            ((base, base), ()),
            ((worse, base), ()),
            ((base, worse), ()),
            ((base, few), ()),
            ((base, few), ("--strict",)),
        ]
    ]

    assert [0, 0, 1, 3, 1] == statuses


def test_a_person_sees_the_verdict_first_and_then_why(tmp_path: Path, config: Path) -> None:
    """Rates with their difference, by case, and what is done otherwise."""
    base, worse = version(tmp_path / "base.jsonl", 20, 0), version(tmp_path / "worse.jsonl", 10, 10)

    told = spanscore("diff", base, worse, "--config", config).stdout

    assert told.startswith(
        "worse: refund_rules (pass rate)\n20 runs of the base, 20 of the new version, compared by 20 "
    )
    assert re.search(r"↓ +refund_rules +pass rate +100 % \(20/20\) +50 % \(10/20\) +-50 \(-67 to -29\) points", told)
    assert re.search(r"check +called: 20 of 20 runs → 10 of 20 runs +such as trace 0{30}0b\n", told)
    assert "lookup → refund  new: one right after the other: 0 of 20 runs → 10 of 20 runs" in told


def test_a_version_that_could_hardly_be_scored_is_not_as_good(tmp_path: Path) -> None:
    """Nor with --strict; the skipped runs of each version are in every output."""
    config = tmp_path / "arguments.yaml"
    base = version(tmp_path / "base.jsonl", 20, 0)
    new = Path(base).with_name("new.jsonl")
    first, *others = Path(base).read_text(encoding="utf-8").splitlines()
    withheld = [line.replace("gen_ai.tool.call.arguments", "other") for line in others]
    new.write_text("\n".join([first, *withheld]), encoding="utf-8")
    config.write_text(
        "evaluators: {args: {type: tool_policy, when: [{call: lookup, args: {a: b}, then: {forbidden: [refund]}}]}}\n"
    )

    table = spanscore("diff", base, new, "--config", config)
    strict = spanscore("diff", base, new, "--config", config, "--strict", "--format", "markdown")
    found = json.loads(spanscore("diff", base, new, "--config", config, "--format", "json").stdout)

    told = "args skipped, or had an error in, 0 of 20 runs of the base and 19 of 20 runs of the new version"
    assert (3, "inconclusive: args (pass rate) scored too few of the runs", told) == (
        table.returncode,
        *table.stdout.splitlines()[:2],
    )
    assert (1, True) == (strict.returncode, f"\n- {told}\n" in strict.stdout)
    assert ("inconclusive", 0, 19) == (
        found["verdict"],
        *(found["evaluators"][0][side]["unscored"] for side in ("base", "new")),
    )


def test_cases_that_were_not_run_again(tmp_path: Path, config: Path) -> None:
    """The version may be worse in them: it is not as good, and Markdown says so before it is unfolded."""
    base, new = version(tmp_path / "base.jsonl", 20, 0), version(tmp_path / "new.jsonl", 18, 0)

    ended = spanscore("diff", base, new, "--config", config, "--format", "markdown")
    more = spanscore("diff", new, base, "--config", config)

    assert 3 == ended.returncode
    assert "inconclusive: 2 cases of the base have no run in the new version" in ended.stdout.splitlines()[1]
    assert "- 2 cases only in the base: c18, c19" in ended.stdout.partition("| evaluator")[0]
    assert 0 == more.returncode


def test_cases_that_were_not_run_again_where_runs_are_too_few(tmp_path: Path, config: Path) -> None:
    """The headline has both. No number of runs of other cases would decide; only compared runs have changes."""
    cases = [(f"c{number}", *GOOD) for number in range(18)]
    base = recorded(tmp_path / "base.jsonl", *cases, *[(f"d{number}", *GOOD, "survey") for number in range(5)])
    new = recorded(tmp_path / "new.jsonl", *cases[:-1], ("c17", *BAD))

    told = spanscore("diff", base, new, "--config", config).stdout

    why = "too few runs to say for refund_rules (pass rate); 5 cases of the base have no run in the new version"
    assert f"inconclusive: {why}" == told.splitlines()[0]
    assert "would decide" not in told
    assert "survey" not in told


def test_json_and_markdown_stand_beside_what_is_shown(tmp_path: Path, config: Path) -> None:
    """The same comparison is the same text; JSON has all of it."""
    base, worse = version(tmp_path / "base.jsonl", 20, 0), version(tmp_path / "worse.jsonl", 10, 10)
    files = ["--json", tmp_path / "diff.json", "--markdown", tmp_path / "diff.md"]

    first = spanscore("diff", base, worse, "--config", config, "--format", "markdown", *files)
    again = spanscore("diff", base, worse, "--config", config, "--format", "json")

    markdown = (tmp_path / "diff.md").read_text(encoding="utf-8")
    assert first.stdout == markdown
    assert markdown.startswith("<!-- spanscore diff -->\n### \N{LARGE RED CIRCLE} spanscore: worse: refund\\_rules")
    assert "\n| `refund_rules` | pass rate | 100 % (20/20) | 50 % (10/20) | -50 (-67 to -29) points | " in markdown
    written: dict[str, Any] = json.loads((tmp_path / "diff.json").read_text(encoding="utf-8"))
    assert json.loads(again.stdout) == written
    assert ("worse", {"base": 20, "new": 20}) == (written["verdict"], written["runs"])
    (measure,) = written["evaluators"]
    assert ("refund_rules", "worse", -0.5) == (measure["name"], measure["verdict"], measure["difference"])
    assert measure["p_worse"] < 0.01
    assert {"test.case.id": 20} == {written["cases"]["key"]: written["cases"]["common"]}


def test_hostile_names_of_tools_are_text(tmp_path: Path) -> None:
    """In a comment for a pull request they make no markup, no column and call nobody."""
    name = "x`|<img src=x onerror=alert(1)>@someone\n# y"
    base = recorded(tmp_path / "base.jsonl", *[(f"c{number}", "a") for number in range(10)])
    new = recorded(tmp_path / "new.jsonl", *[(f"c{number}", name) for number in range(10)])

    told = spanscore("diff", base, new, "--format", "markdown").stdout

    (line,) = [line for line in told.splitlines() if "onerror" in line]
    assert line.startswith("- `` x`\\|<img src=x onerror=alert(1)>@someone\N{REPLACEMENT CHARACTER}# y `` new: called")


def test_versions_without_common_cases_are_compared_all_together(tmp_path: Path, config: Path) -> None:
    """And the first lines say so, with what --key could name."""
    base, other = version(tmp_path / "base.jsonl", 20, 0), version(tmp_path / "new.jsonl", 10, 10, prefix="d")

    ended = spanscore("diff", base, other, "--config", config)

    assert 1 == ended.returncode
    assert "compared all together: no case is of both" in ended.stdout


def test_what_cannot_be_compared_is_told(tmp_path: Path, config: Path) -> None:
    """What is broken or empty fails, whatever the rest says; wrong options are named with what they may be."""
    base, empty = version(tmp_path / "base.jsonl", 3, 0), tmp_path / "empty.jsonl"
    empty.touch()

    ended = spanscore("diff", base, empty, "--config", config)

    assert 1 == ended.returncode
    assert f"{empty}: holds no span" in ended.stderr
    assert "inconclusive: scored 3 runs of the base and 0 of the new version" in (" ".join(ended.stdout.split()))
    ended = spanscore("diff", base, base, "--key", "my.case")
    assert (1, 2) == (ended.returncode, ended.stderr.count("has this attribute"))
    assert "--key my.case: no run of the base has this attribute" in ended.stderr
    ended = spanscore("diff", base, base, "--margin", "5")
    assert 2 == ended.returncode
    assert "must be a share from 0 to 1, such as 0.05, not '5'" in ended.stderr
    ended = spanscore("diff", base, tmp_path / "none.jsonl")
    assert 0 != ended.returncode
    assert "none.jsonl" in ended.stderr


@pytest.mark.parametrize("side", ["base", "new"])
def test_no_output_takes_the_place_of_a_recording(tmp_path: Path, side: str) -> None:
    """Nor that of another output, nor half of a file that was there before."""
    base, new = version(tmp_path / "base.jsonl", 3, 0), version(tmp_path / "new.jsonl", 3, 0)
    recording = tmp_path / f"{side}.jsonl"
    before = recording.read_bytes()
    page = tmp_path / "page"

    for option in ("--html", "--markdown", "--json"):
        ended = spanscore("diff", base, new, option, recording)

        what = "the base" if side == "base" else "the new version"
        assert (2, f"{option}: '{recording}' is {what}, too") == (ended.returncode, ended.stderr.strip())
        assert before == recording.read_bytes()
    assert 2 == spanscore("diff", base, new, "--html", page, "--json", page).returncode
    assert 2 == spanscore("diff", tmp_path, new, "--html", recording).returncode
    page.write_text("kept", encoding="utf-8")
    assert 2 == spanscore("diff", base, new, "--html", page, "--json", tmp_path / "no" / "such.json").returncode
    assert ["base.jsonl", "new.jsonl", "page"] == sorted(path.name for path in tmp_path.iterdir())
    assert "kept" == page.read_text(encoding="utf-8")


def test_what_was_not_compared_is_told(tmp_path: Path, config: Path) -> None:
    """Runs of no common case, evaluators that scored nothing, and a recording that is compared with itself."""
    base = recorded(tmp_path / "base.jsonl", *((f"c{number}", *GOOD) for number in range(4)))
    new = recorded(tmp_path / "new.jsonl", *((f"c{number}", *(GOOD if number < 4 else BAD)) for number in range(7)))

    ended = spanscore("diff", base, new, "--config", config)

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "not worse: nothing that was scored fell by more than the margin; 3 of 7 runs not compared" in ended.stdout
    assert "3 cases only in the new version: c4, c5, c6" in ended.stdout
    assert (
        "left out, because their case is not in both versions: 0 runs of the base, 3 of the new version" in ended.stdout
    )
    told = json.loads(spanscore("diff", base, new, "--config", config, "--format", "json").stdout)
    assert {"base": 0, "new": 3} == told["left_out"]
    config.write_text(CONFIG.replace("tool_policy,", "tool_policy, match: {gen_ai.agent.name: refnd},"))
    ended = spanscore("diff", base, base, "--config", config)
    assert 1 == ended.returncode
    assert f"{base}: refund_rules checked nothing: matched no run: match gen_ai.agent.name: refnd; seen: 'refund'" in (
        ended.stderr
    )
    markdown = spanscore("diff", base, base, "--config", config, "--format", "markdown").stdout
    assert "\N{LARGE RED CIRCLE} spanscore: inconclusive" in markdown
    assert "checked nothing: matched no run" in markdown
    assert "2 problems" in markdown
    assert "both recordings have the same runs: a version is compared with itself" in ended.stderr
    assert "inconclusive: nothing to compare for refund_rules (pass rate)" in ended.stdout
    assert 3 == spanscore("diff", base, base, "--config", config, "--allow-unscored").returncode
    config.write_text(f"conversations: {{}}\n{CONFIG}".replace("tool_policy,", "tool_policy, over: conversation,"))
    told = spanscore("diff", base, base, "--config", config).stdout
    assert "inconclusive: nothing to compare, as no evaluator looks at single runs\n" in told
    ended = spanscore("diff", "-", "-")
    assert (2, "- is read once: give the recordings of both versions as files") == (
        ended.returncode,
        ended.stderr.strip(),
    )


@pytest.mark.processes
def test_without_scipy_the_extra_is_named(tmp_path: Path) -> None:
    """Only the comparison needs scipy, and a mistake in the usage is reported before its import."""
    base = version(tmp_path / "base.jsonl", 1, 0)
    program = "import sys; sys.modules['scipy'] = None; from spanscore.cli import main; sys.exit(main(sys.argv[1:]))"

    for options, told in (
        ([], "comparing versions needs scipy: pip install scipy, or in a checkout: pip install '.[analysis]'"),
        (["--evaluator", "foo"], "--evaluator foo: not in default configuration; evaluators there: health"),
    ):
        command = [sys.executable, "-c", program, "diff", base, base, *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        assert (2, f"{told}\n") == (ended.returncode, ended.stderr)
