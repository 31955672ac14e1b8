"""What deviates is said in words, with and without content, and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.accounts import Account, scored
from spanscore.compare.alignment import LIMIT, Aligned, whole
from spanscore.compare.deviations import DETAILED, Deviation, Nth, among_equals, matching_words, of_alignment, unmet
from spanscore.compare.differences import ABSENT, Described, Difference
from spanscore.model import Score, ToolCall

SPAN_ID = bytes([7] * 8)
CALLS = (ToolCall(name="lookup"), ToolCall(name="issue_refund", span_id=SPAN_ID))
AMOUNT = Difference(("amount",), 40, 400)
NOTE = Difference(("note",), ABSENT, "secret")


def at(kind: Any, *differences: Difference, **rest: Any) -> Deviation:
    """Return a deviation of the second call."""
    return Deviation.at(kind, 1, CALLS, differences=differences, **rest)


@pytest.mark.parametrize(
    ("deviation", "words", "plain"),
    [
        (
            at("arguments", AMOUNT),
            "issue_refund.amount: expected 40, got 400",
            "issue_refund.amount: not the expected value",
        ),
        (
            at("arguments", AMOUNT, NOTE),
            'issue_refund.amount: expected 40, got 400 and issue_refund.note: not expected, got "secret"',
            "issue_refund.amount: not the expected value and issue_refund: unexpected key",
        ),
        (at("arguments"), "issue_refund: not the expected arguments", "issue_refund: not the expected arguments"),
        (
            at("arguments", *[AMOUNT] * 5),
            f"{' and '.join(['issue_refund.amount: expected 40, got 400'] * 3)} and 2 more paths",
            f"{' and '.join(['issue_refund.amount: not the expected value'] * 3)} and 2 more paths",
        ),
        (
            at("result", AMOUNT),
            "issue_refund result.amount: expected 40, got 400",
            "issue_refund result.amount: not the expected value",
        ),
        (
            at("schema", Difference(("who", "secret"), "type: 'string'", 5, ("who", "*"))),
            "issue_refund.who.secret: type: 'string', got 5",
            "issue_refund.who[\"*\"]: type: 'string', got a number (",
        ),
        (
            at("arguments", Difference(("amount",), 40, "secret")),
            'issue_refund.amount: expected 40, got "secret"',
            "issue_refund.amount: expected a number, got a string (",
        ),
        (
            at("arguments", Difference(("paid",), 1, actual=True)),
            "issue_refund.paid: expected 1, got true",
            "issue_refund.paid: expected a number, got a boolean (",
        ),
        (
            at("arguments", Difference(("at",), Described("a date"), ["secret"])),
            'issue_refund.at: expected a date, got ["secret"]',
            "issue_refund.at: not the expected value (",
        ),
        (
            at("schema", Difference((), "'amount' is a required property", ABSENT)),
            "issue_refund: 'amount' is a required property",
            "issue_refund: 'amount' is a required property",
        ),
        (
            at("error", Difference((), ABSENT, "Timeout: secret")),
            "issue_refund failed: Timeout: secret",
            "issue_refund f",
        ),
        (at("unexpected"), "issue_refund was called, but not expected", "issue_refund was called, but"),
        (at("order"), "issue_refund was called out of order", "issue_refund was called out of order"),
        (at("wrong_tool", expected="lookup"), "expected lookup, got issue_refund", "expected lookup, got issue_refund"),
        (at("rule", expected="max_calls: 1"), "issue_refund breaks 'max_calls: 1'", "issue_refund breaks"),
        (at("count", expected="3"), "issue_refund breaks '3'", "issue_refund breaks '3'"),
        (at("error"), "issue_refund failed", "issue_refund failed"),
        (at("rule", sentence="was made up"), "issue_refund was made up", "issue_refund was made up"),
        (
            at("provenance", Difference(("who", "secret"), "not seen before", 5, ("who", "*"))),
            "issue_refund.who.secret: not seen before, got 5",
            'issue_refund.who["*"]: not seen before',
        ),
        (at("schema"), "issue_refund: not the expected schema", "issue_refund: not the expected schema"),
    ],
)
def test_words(deviation: Deviation, words: str, plain: str) -> None:
    """Each kind has its sentence, with the number of the call, counted from 1, behind it."""
    assert f"{words} (call 2)" == deviation.words(content=True)
    told = deviation.words(content=False)
    assert (True, True, False) == (told.startswith(plain), told.endswith(" (call 2)"), "secret" in told)


def test_a_missing_call_has_no_number() -> None:
    """What was not called is nowhere in the run."""
    assert "lookup was not called" == Deviation(kind="missing", tool="lookup").words(content=True)


@pytest.mark.parametrize(
    "words",
    ["1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "14th", "21st", "103rd", "110th", "111th", "122nd"],
)
def test_of_several_equal_calls_the_place_is_told(words: str) -> None:
    """Counted from 1; a program gets the numbers."""
    nth = int(words[:-2])
    missing = Deviation(kind="missing", tool="lookup", nth=Nth(nth, 200))

    assert f"the {words} of 200 lookup calls was not made" == missing.words(content=True)
    assert (nth, 200) == (missing.as_json()["nth"], missing.as_json()["of"])


def test_among_equals() -> None:
    """Only where there are several of a name."""
    assert [Nth(1, 2), None, Nth(2, 2)] == among_equals(["a", "b", "a"])


def test_matching_words() -> None:
    """One call matches, several match."""
    assert "1 call matches (3 made, 2 expected)" == matching_words(1, 3, 2)
    assert "0 calls match (3 made, 2 expected)" == matching_words(0, 3, 2)


def test_unmet() -> None:
    """What found none is compared with the calls of its tool that are left, if there are any; else it is missing."""
    asked: list[tuple[int, int, list[int]]] = []

    def nearest(number: int, place: int, left: list[int]) -> Deviation:
        asked.append((number, place, left))
        return at("arguments")

    found = unmet(["a", "b", "a", "c", "b"], [0, None, None, None, 3], ["a", "a", "a", "b"], nearest)

    assert [("missing", "b", Nth(1, 2)), ("arguments", "issue_refund", None), ("missing", "c", None)] == [
        (each.kind, each.tool, each.nth) for each in found
    ]
    assert [(1, 2, [1, 2])] == asked


def told(account: Account, *, passed: bool = False) -> Score:
    """Return a score that this led to."""
    return scored(0.5, passed=passed, account=lambda: account)


def rows(deviations: list[Deviation]) -> dict[str, Any]:
    """Return the details of a score whose summary tells of these deviations already."""
    return dict(told(Account("1 of 2.", {}, told=deviations), passed=not deviations).details)


def test_rows() -> None:
    """A program gets the call, its span, the first path that differs, and the others behind it."""
    assert {
        "deviations": [
            {
                "kind": "arguments",
                "tool": "issue_refund",
                "call": 1,
                "span_id": SPAN_ID.hex(),
                "reason": "issue_refund.amount: other value",
                "path": "amount",
                "expected": 40,
                "actual": 400,
                "more": [{"path": "note", "actual": "secret"}],
            }
        ]
    } == rows([at("arguments", AMOUNT, NOTE)])
    assert {} == rows([])


@pytest.mark.parametrize(
    "numbers", [(0, 0, 0), (2, 1, 1), (1, 0, 1), (LIMIT, 1, 0), (LIMIT, 0, 1), (LIMIT, 0, 0), (9, 0, 0)]
)
def test_what_is_listed_and_what_only_belongs_to_it(numbers: tuple[int, int, int]) -> None:
    """Deviations, those told already, and further calls of these, which are left out where all are listed as well."""
    kinds: list[Any] = ["unexpected", "order", "rule"]
    deviations, before, marked = ([at(kind)] * count for kind, count in zip(kinds, numbers, strict=True))
    score = told(Account("1.", {"n": 1}, deviations, before, marked))
    listed = score.details.get("deviations", [])
    every = [kind for kind, count in zip(kinds, numbers, strict=True) for _ in range(count)]
    every = every or ["limit"]  # a score that misses its threshold says so

    assert 1 == score.details["n"]
    assert every[: min(LIMIT, max(1, numbers[0] + numbers[1]))] == [row["kind"] for row in listed]
    assert every == [row["kind"] for row in whole(listed)]
    assert (len(listed) == len(every)) == (type(listed) is list)


def test_what_is_listed_as_told_already_is_not_in_the_explanation() -> None:
    """It is in the summary; a formula is behind everything."""
    told_before = told(Account("1 of 2 (a).", {}, told=[at("order")], formula="1 / 2."))
    behind = told(Account("1 of 2:", {}, [at("order")], formula="1 / 2."))

    assert "1 of 2 (a)." == told_before.explanation
    assert "1 of 2: issue_refund was called out of order (call 2). 1 / 2." == behind.explanation


def test_tools_that_look_alike_are_told_apart() -> None:
    """An invisible character is written out."""
    found = [Deviation(kind="missing", tool=name) for name in ("pay", "p\u200bay")]

    assert "1. pay was not called; p\\u200bay was not called." == told(Account("1.", {}, found)).explanation


def test_a_row_says_in_whose_place() -> None:
    """Of a call of another tool, the one expected; of others nothing."""
    assert "lookup" == at("wrong_tool", expected="lookup").as_json()["expected"]
    assert "expected" not in at("unexpected").as_json()


def test_long_values_and_lists_are_bounded() -> None:
    """However long the values and the list, a row stays short, and there are so many rows."""
    found = rows([at("arguments", Difference((), "x" * 9_999, [1] * 9_999))] * (LIMIT + 1))["deviations"]

    assert LIMIT == len(found)
    assert all(len(found[0][side]) < 1_010 for side in ("expected", "actual"))


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ("x" * 999, "x" * 999),
        ("x" * 1_000, f'"{"x" * 999}…'),
        ([1, "x" * 993], [1, "x" * 993]),
        ([1, "x" * 994], f'[1, "{"x" * 994}"…'),
        (None, None),
    ],
    ids=["text", "long text", "list", "long list", "null"],
)
def test_what_is_bounded(value: Any, row: Any) -> None:
    """A value of up to 1,000 characters is there as it is, of a longer one the beginning of its text."""
    assert {"path": "", "actual": row} == {
        key: found
        for key, found in at("result", Difference((), ABSENT, value)).as_json().items()
        if key in {"path", "expected", "actual"}
    }


def test_a_row_of_what_cannot_be_written() -> None:
    """A value that no JSON can be made of stops no report."""
    endless: list[Any] = []
    endless.append(endless)

    assert "a value that cannot be shown" == at("result", Difference((), 1, endless)).as_json()["actual"]


def test_three_are_told_without_a_number_of_others() -> None:
    """Of deviations and of paths: there is nothing more to count."""
    score = told(Account("1.", {}, [at("unexpected")] * 3))

    assert f"1. {'; '.join(['issue_refund was called, but not expected (call 2)'] * 3)}." == score.explanation
    assert "more" not in at("arguments", *[AMOUNT] * 3).words(content=True)


def test_a_score_tells_the_first_three() -> None:
    """The explanation goes on behind the numbers; without content it is another one, where there is any."""
    missing = [Deviation(kind="missing", tool=name) for name in "abcde"]
    score = told(Account("2 of 7.", {"n": 1}, missing))

    assert "2 of 7. a was not called; b was not called; c was not called; 2 more." == score.explanation
    assert (None, 5) == (score.without_content, len(score.details["deviations"]))
    before = told(Account("2 of 7 (a).", {}, told=missing))
    assert ("2 of 7 (a).", None, 5) == (before.explanation, before.without_content, len(before.details["deviations"]))
    whole = scored(1.0, passed=True, account=lambda: Account("7 of 7.", {"n": 1}))
    assert Score(1.0, passed=True, explanation="7 of 7.", details={"n": 1}) == whole
    changed = told(Account("2 of 7.", {}, [at("arguments", AMOUNT)]))
    assert "2 of 7. issue_refund.amount: not the expected value (call 2)." == changed.without_content


def test_an_alignment_gives_one_deviation_a_call() -> None:
    """What is as expected or of no interest gives none; arguments are compared only for the first ones."""
    aligned = [
        Aligned(0, 0, "ok"),
        Aligned(None, 1, "ignored"),
        Aligned(1, None, "missing"),
        Aligned(0, 1, "arguments"),
        Aligned(0, 1, "wrong"),
        Aligned(0, 1, "order"),
        Aligned(None, 1, "extra"),
    ]
    found = of_alignment(aligned, ["a", "b"], CALLS, lambda place, call: [Difference((place, call), 1, 2)])

    assert ["missing", "arguments", "wrong_tool", "order", "unexpected"] == [each.kind for each in found]
    assert ((Difference((0, 1), 1, 2),), SPAN_ID) == (found[1].differences, found[1].span_id)

    many = of_alignment([Aligned(0, 1, "arguments")] * (DETAILED + 9), ["a"], CALLS, lambda *_: [AMOUNT])
    assert DETAILED == sum(bool(each.differences) for each in many)


def test_an_account_is_given_when_somebody_looks() -> None:
    """To explain a value takes longer than to find it; where that may be too much work, it is found out at once."""
    asked: list[None] = []

    def account() -> Account:
        asked.append(None)
        return Account("1 of 2.", {})

    score = scored(0.5, passed=True, account=account)
    assert ([], 0.5) == (asked, score.value)
    assert ("1 of 2.", {}, 1) == (score.explanation, score.details, len(asked))

    scored(0.5, passed=True, account=account, at_once=True)
    assert 2 == len(asked)


def test_no_failure_is_without_a_reason() -> None:
    """A score below the threshold to which no call led, such as by weights, has a deviation that says so."""
    assert "deviations" not in scored(0.5, passed=True, account=lambda: Account("", {})).details
    (row,) = scored(0.5, passed=False, account=lambda: Account("", {})).details["deviations"]
    assert ("limit", None, "scores below the threshold") == (row["kind"], row["tool"], row["reason"])


@pytest.mark.parametrize(
    ("deviation", "reason"),
    [
        (Deviation(kind="missing", tool="lookup"), "lookup was not called"),
        (Deviation(kind="missing", tool="lookup", nth=Nth(2, 3)), "lookup was called too rarely"),
        (at("unexpected"), "issue_refund was not expected"),
        (at("unexpected", sentence="was not expected at this place"), "issue_refund was not expected"),
        (at("order"), "issue_refund was called out of order"),
        (at("wrong_tool", expected="lookup"), "issue_refund was called in place of lookup"),
        (at("arguments", AMOUNT, NOTE), "issue_refund.amount: other value"),
        (at("arguments", NOTE), "issue_refund.*: not expected"),
        (at("arguments", Difference(("items", 3, "sku"), "a", ABSENT)), "issue_refund.items.*.sku: missing"),
        (at("arguments", Difference(("a b",), 1, 2)), 'issue_refund["a b"]: other value'),
        (at("arguments"), "issue_refund: other value"),
        (at("result", Difference((), 1, 2)), "issue_refund result: other value"),
        (at("schema", Difference(("x", 1), "type: 'string'", 5, ("*", 1))), "issue_refund.*.*: breaks the schema"),
        (at("schema", Difference((), "'x' is required", ABSENT, ("x",))), "issue_refund.x: missing"),
        (at("provenance", Difference(("x",), "not seen before", 5, ())), "issue_refund: not seen before"),
        (at("error", Difference((), ABSENT, "secret")), "issue_refund failed: error"),
        (at("rule", expected="forbidden: *"), "issue_refund breaks forbidden: *"),
        (Deviation(kind="rule", tool="pay", expected="required: pay"), "breaks required: pay"),
        (Deviation.of_limit("duration_s"), "exceeds duration_s"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reasons(deviation: Deviation, reason: str) -> None:
    """A reason names tools, rules and what the expectation names, and no value, error or other key."""
    assert reason == deviation.reason == deviation.as_json()["reason"]


@pytest.mark.parametrize(
    ("error_type", "told"),
    [
        ("HTTPError", "HTTPError"),
        ("a.b:C$<locals>-*", "a.b:C$<locals>-*"),
        ("no such order", "error"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "error"),
        ("HTTPError\n", "error"),
        ("", "error"),
        (None, "error"),
    ],
)
def test_the_reason_of_an_error_is_its_type(error_type: str | None, told: str) -> None:
    """A type that looks like a name is told; whatever else it is may quote data."""
    call = ToolCall(name="search", error="secret", error_type=error_type)
    assert f"search failed: {told}" == Deviation.at("error", 0, [call]).reason
