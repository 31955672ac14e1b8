from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.page.shown_runs import batch_of, embedded_in, page_of, report_of
from spanscore.reports.page import embedded, encoded, policy
from spanscore.reports.page.page_data import LIVE_SCRIPTS, SCRIPTS, runs_page

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["</script>", "<!--", "\u2028", "]]>", "<script>"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_data_cannot_leave_its_element(value: object) -> None:
    """Whatever it holds, it is read as it was, and nothing in it can end or hide the end of a script."""
    text = encoded(embedded(value)).decode()

    assert value == json.loads(text)
    assert set() == {"<", "\u2028", "\u2029"} & set(text)


def test_half_a_surrogate_pair_is_an_escape() -> None:
    """What UTF-8 has no bytes for does not fail the page."""
    assert (b'"a\\ud800"', "a\ud800") == (encoded(embedded("a\ud800")), json.loads(encoded(embedded("a\ud800"))))


@pytest.mark.parametrize("live", [False, True])
def test_the_policy_allows_what_is_in_the_page_and_nothing_else(*, live: bool) -> None:
    """The hashes are those of the style and the script as a browser reads them out of the page."""
    html = page_of([report_of(1, "lookup_order")], data={"live": {}} if live else {})
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (told,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    rules = dict(rule.split(" ", 1) for rule in told.replace("&#39;", "'").split("; "))

    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{script_hash}'",
        "style-src": f"'sha256-{style_hash}'",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert told.replace("&#39;", "'") == policy(LIVE_SCRIPTS if live else SCRIPTS, live=live)


def test_text_is_escaped() -> None:
    """What a template is given is text, wherever it stands."""
    html = page_of([], sentence="<img src=x onerror=alert(1)>", reasons=["</li><script>alert(2)</script>"])

    assert ("<img" in html, "<script>alert" in html) == (False, False)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_a_name_that_a_template_lacks_is_an_error() -> None:
    """A page with a hole in it is not written."""
    with pytest.raises(Exception, match="'verdict' is undefined"):
        runs_page([], {}, title="Runs")


def test_the_same_runs_give_the_same_page() -> None:
    """To the byte: no time and no chance is in it."""
    pages = {page_of([report_of(1, "lookup_order"), report_of(2)]) for _ in range(2)}

    assert 1 == len(pages)


@pytest.mark.parametrize(
    "name", sorted(each.name for each in files("spanscore.reports.page").iterdir() if each.name.endswith(".js"))
)
def test_scripts_make_no_markup(name: str) -> None:
    """They make elements and text: nothing in them reads a text as HTML or as a program, or names another host.

    Only the live page asks, and only for itself.
    """
    script = files("spanscore.reports.page").joinpath(name).read_text(encoding="utf-8")
    drawing = '"http://www.w3.org/2000/svg"'  # the name of a language, which nobody is asked for

    assert [] == re.findall(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|Function\(|srcdoc|DOMParser|fetch\(|https?:|</",
        script.replace(drawing, "").replace("fetch(location.pathname,", "", 1 if name == "live.js" else 0),
    )


def test_the_data_of_a_page_is_what_it_was_given() -> None:
    """A page holds its runs as JSON."""
    reports = [report_of(1, "lookup_order"), report_of(2)]

    data = {"why": {"more": 2}, "live": 7}
    assert {"batches": [json.loads(batch_of(reports))], **data} == embedded_in(page_of(reports, data=data))
