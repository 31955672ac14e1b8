"""The list of rules is complete: each has a test, and `docs/conformance.md` has them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
SPELLED = {"grpc": "gRPC", "http": "HTTP", "utf8": "UTF-8", "base64": "Base64"}


def numbered() -> Iterator[tuple[int, str]]:
    """Yield the number of each test, and what it claims: its name, and what is written below."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (found := re.match(r"test_(\d{3})_(.+)", node.name)):
                words = [SPELLED.get(word, word) for word in found[2].split("_")]
                title = " ".join(words)
                yield int(found[1]), " ".join(f"{title[0].upper()}{title[1:]}. {ast.get_docstring(node)}".split())


def listed() -> list[tuple[int, str]]:
    """Return the rules of the page."""
    found = re.findall(r"^(\d+)\. (.*(?:\n   .*)*)$", PAGE.read_text(), re.MULTILINE)
    return [(int(number), " ".join(text.split())) for number, text in found]


def test_every_rule_has_a_test() -> None:
    """The numbers from 1 to 100 are all there; a rule may have two tests."""
    assert list(range(1, 101)) == sorted({number for number, _ in numbered()})


def test_the_page_lists_what_is_tested() -> None:
    """Each rule stands on the page as its test claims it, the first one where there are two."""
    claims: dict[int, str] = {}
    for number, claim in numbered():
        claims.setdefault(number, claim)
    assert sorted(claims.items()) == listed()


def test_deviations_are_about_rules() -> None:
    """Each deviation names a rule, and says why."""
    deviations = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert deviations
    assert {int(number) for number, *_ in deviations} <= set(range(1, 101))
