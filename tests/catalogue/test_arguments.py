"""Arguments of tools that are too large, too deep or not JSON: what cannot be read is skipped, never failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalogue.bounds import costs_at_most
from catalogue.scoring import a_run, outcome_of, report_of, tool_span
from spanscore.model import NOT_RECORDED, Outcome, Recorded, Score, Skipped

NEEDS_ARGUMENTS = "{type: tool_call_args, tool_calls: [{name: search, args: {a: 1}}]}"
NOT_ASSESSED = Skipped("arguments of 1 call of 'search' were not recorded")


def read(arguments: Any) -> Recorded:
    """Return the arguments of a call that stand so in the attribute."""
    (call,) = report_of(a_run(tool_span(2, arguments=arguments))).trajectory.calls
    return call.arguments


def outcome_with(arguments: str) -> Outcome:
    """Score a call with such arguments, within 2 s and 128 MiB."""
    with costs_at_most(cpu_s=2, mib=128):
        return outcome_of(a_run(tool_span(2, arguments=arguments)), NEEDS_ARGUMENTS)


@pytest.mark.parametrize(
    "length", [pytest.param(50 * 2**20, id="50 MB"), pytest.param(256 * 2**10, id="just over 256 KiB")]
)
def test_arguments_that_are_too_long(length: int) -> None:
    """They count as not recorded: an evaluator that needs them is skipped."""
    assert NOT_ASSESSED == outcome_with('{"a": 1, "b": "' + "x" * length + '"}')


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('{"a":' * 100_000 + "1" + "}" * 100_000, id="100,000 deep"),
        pytest.param("[" * 100_000, id="100,000 deep and cut"),
        pytest.param('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", id="a list 100,000 deep"),
        pytest.param('{"a": NaN}', id="NaN"),
        pytest.param('{"a": Infinity}', id="Infinity"),
        pytest.param('{"a": -Infinity}', id="-Infinity"),
        pytest.param('{"a": 1e999}', id="1e999"),
        pytest.param('{"a": ' + "9" * 5_000 + "}", id="5,000 digits"),
        pytest.param("{'a': " + "9" * 5_000 + "}", id="5,000 digits in Python"),
        pytest.param("{'a': 0x" + "f" * 5_000 + "}", id="5,000 hexadecimal digits in Python"),
        pytest.param('{"a": 1, "b": "cu', id="cut"),
    ],
)
def test_arguments_that_cannot_be_read(arguments: str) -> None:
    """They count as not recorded, too."""
    assert NOT_ASSESSED == outcome_with(arguments)


def test_arguments_just_small_enough() -> None:
    """256 KiB of arguments are read like any others."""
    arguments = '{"a": 1, "b": "' + "x" * (256 * 2**10 - 100) + '"}'
    outcome = outcome_with(arguments)
    assert isinstance(outcome, Score)
    assert outcome.passed


def test_a_key_that_is_there_twice() -> None:
    """The last one counts, as it does for the tools that read such arguments."""
    assert {"a": 2} == read('{"a": 1, "a": 2}')


@pytest.mark.parametrize("number", [10**29 + 1, 2**63, -(2**64), 10**400])
def test_numbers_are_exact(number: int) -> None:
    """Integers of any length are compared digit by digit, not as floats."""
    spans = a_run(tool_span(2, arguments=f'{{"a": {number}}}'))
    for expected, value in ((number, 1.0), (number + 1, 0.0)):
        outcome = outcome_of(
            spans, f"{{type: tool_call_args, tool_calls: [{{name: search, args: {{a: {expected}}}}}]}}"
        )
        assert isinstance(outcome, Score)
        assert value == outcome.value


def test_half_of_a_surrogate_pair() -> None:
    """It becomes a question mark, everywhere alike: equal texts stay equal, and what is read can be written."""
    found = [read(r'{"a": "x\ud800y"}'), read({"a": "x\ud800y"})]
    assert [{"a": "x?y"}] * 2 == found
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        (json.dumps(json.dumps('{"a": 1}')), NOT_RECORDED),
        ({"a": '{"b": 1}'}, {"a": '{"b": 1}'}),
    ],
)
def test_arguments_that_are_wrapped(written: Any, expected: Any) -> None:
    """An object, JSON text, and JSON text within JSON text are read; deeper is not looked."""
    assert expected == read(written)


def test_a_huge_result() -> None:
    """JSON of more than 256 KiB is not read as a result either: what compares it is skipped, not failed."""
    result = json.dumps({"rows": ["x" * 1_000] * 300})
    spans = a_run(
        tool_span(2)._replace(
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.result": result,
            }
        )
    )
    outcome = outcome_of(spans, "{type: tool_call_output, tool_outputs: [{name: search, output: {rows: []}}]}")
    assert Skipped("results of 1 call of 'search' were not recorded") == outcome


@pytest.mark.parametrize("written", ["[1or 2]", "[0xfor x in y]", "(1if 1else 2)", "{'a': .5in b}", r"['\d']"])
def test_arguments_that_python_would_warn_of(written: str) -> None:
    """They are no literals, and nobody is warned of them on standard error."""
    assert NOT_RECORDED is read(written)


def test_words_behind_numbers_in_quotes() -> None:
    """Quoted, a number with a word behind it is a text like any other."""
    assert {"width": "3inch", "a": 'it\'s 4for "5"'} == read("""{'width': '3inch', 'a': 'it\\'s 4for "5"'}""")


@pytest.mark.parametrize(
    "piece",
    [
        "\\'",
        '\\"',
        "'",
        '"',
        "b'",
        "\\\\",
        "1",
        "1.",
        "_1",
        "{",
        "(",
        "[1,",
        "\\u",
        "'a",
        "1or",
        "{'a':",
        "#'",
        "\\ud8",
    ],
)
@pytest.mark.parametrize("beginning", ["", "{'a': b'"])
def test_the_same_again_and_again(beginning: str, piece: str) -> None:
    """Whatever is repeated to the limit of 256 KiB, reading takes time linear in its length: within 1 s."""
    with costs_at_most(cpu_s=1):
        read(beginning + piece * ((256 * 2**10 - len(beginning)) // len(piece)))


def test_calls_that_may_be_the_same_with_long_arguments() -> None:
    """Each call is compared with 64 others, as two instrumentations may have seen it: within 2 s for 1,000 calls."""
    arguments = json.dumps([*range(1_000)])
    spans = [
        tool_span(number, arguments=f'{{"a": {arguments}, "b": {number}}}', at_ms=2, scope=str(number))
        for number in range(2, 1_002)
    ]
    with costs_at_most(cpu_s=2):
        report = report_of(a_run(*spans))

    assert 1_000 == len(report.trajectory.calls)
