from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import pytest

import spanscore
from spanscore.config import Config
from spanscore.evaluators.tool_call_args import ToolCallArgs
from spanscore.evaluators.tool_call_order import ToolCallOrder
from spanscore.evaluators.tool_correctness import ToolCorrectness
from spanscore.model import Attributes, Trajectory

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

ORDER = "evaluators: {order: {type: tool_call_order, tool_calls_order: [search, book], "


def trajectory(attributes: Attributes | None = None) -> Trajectory:
    """A trajectory without calls, of a root span with these attributes."""
    return Trajectory(calls=(), attributes=attributes or {})


def test_an_entry(read: Read) -> None:
    """An entry has the user's name, the type, and always the same evaluator."""
    entry = read(ORDER + "threshold: 0.5, sample_ratio: 0.25}}").evaluators[0]

    assert ("order", "tool_call_order", 0.25) == (entry.name, entry.type, entry.sample_ratio)
    assert ToolCallOrder(tool_calls_order=("search", "book"), threshold=0.5) == entry.resolve(trajectory())
    assert entry.resolve(trajectory()) is entry.resolve(trajectory({"a": "b"}))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"service.name": "shop-eu", "http.status": 200}, True),
        ({"service.name": "shop-eu", "http.status": "200"}, True),
        ({"service.name": ["cart", "shop-eu"], "http.status": 200}, True),
        ({"service.name": "shop-eu", "http.status": 500}, False),
        ({"service.name": "shop-eu", "http.status": True}, False),
        ({"service.name": "shop-eu"}, False),
        ({"service.name": b"shop-eu", "http.status": 200}, False),
        ({"service.name": [["shop-eu"]], "http.status": 200}, False),
        ({}, False),
    ],
)
def test_match(read: Read, attributes: Attributes, expected: bool) -> None:  # noqa: FBT001 - a parametrized value
    """Every attribute must be there and match its glob; numbers match as they are written."""
    entry = read(ORDER + "match: {service.name: 'shop-*', http.status: '20?'}}}").evaluators[0]

    assert expected == entry.matches(attributes)


def test_no_match_matches_everything(read: Read) -> None:
    """Without `match` every trajectory is evaluated, and without `ignore_tools` every call."""
    entry = read(ORDER + "}}").evaluators[0]

    assert entry.applies_to(Trajectory(calls=()))
    assert entry.ignores is None


def test_ignore_tools(read: Read) -> None:
    """Tools that match one of the globs are ignored."""
    entry = read(ORDER + "ignore_tools: [final_answer, 'transfer_to_*']}}").evaluators[0]

    names = ("final_answer", "transfer_to_billing", "search", "my_final_answer")
    assert [True, True, False, False] == [entry.ignores(name) for name in names]


def test_no_evaluators_are_a_mistake(problems: Problems) -> None:
    """What checks nothing must not look as if all were well; the key may be left out, or say nothing."""
    told = "must have at least one evaluator; leave the key out for 'health' (tool_call_trajectory)"

    assert [f"c.yaml:1:13 evaluators: {told}"] == problems("evaluators: {}")


@pytest.mark.parametrize("text", ["", "evaluators:", "evaluators: null", "# nothing\n"])
def test_without_the_key_health_is_checked(read: Read, text: str) -> None:
    """So it is where the key says nothing."""
    assert [("health", "tool_call_trajectory")] == [(each.name, each.type) for each in read(text).evaluators]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{}", "c.yaml:1:14 evaluators.a.type: the key is required"),
        ("order", "c.yaml:1:17 evaluators.a: must be a mapping, not 'order'"),
        ("{type: 1}", "c.yaml:1:24 evaluators.a.type: must be text, not 1"),
        (
            "{type: tool_call_ordre}",
            "c.yaml:1:24 evaluators.a.type: there is no evaluator 'tool_call_ordre'; did you mean 'tool_call_order'?",
        ),
        (
            "{type: tool_call_order}",
            "c.yaml:1:14 evaluators.a.tool_calls_order: the key is required, or else 'expected_from'",
        ),
        (
            "{type: tool_correctness}",
            "c.yaml:1:14 evaluators.a.expected_tools: the key is required, or else 'expected_from'",
        ),
        (
            "{type: tool_correctness, expected_tools: }",
            "c.yaml:1:14 evaluators.a.expected_tools: the key is required, or else 'expected_from'",
        ),
        (
            "{type: tool_call_order, tool_calls_order: search}",
            "c.yaml:1:59 evaluators.a.tool_calls_order: must be a list, not 'search'; write [search]",
        ),
        (
            "{type: tool_call_order, tool_calls_order: refund_*}",
            "c.yaml:1:59 evaluators.a.tool_calls_order: must be a list, not 'refund_*'; write [refund_*]",
        ),
        (
            "{type: tool_call_order, tool_calls_order: 'null'}",
            "c.yaml:1:59 evaluators.a.tool_calls_order: must be a list, not 'null'",
        ),
        (
            "{type: tool_call_order, tool_calls_order: []}",
            "c.yaml:1:59 evaluators.a.tool_calls_order: must not be empty",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a, [b]]}",
            "c.yaml:1:63 evaluators.a.tool_calls_order[1]: must be text, not a list",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], tresholt: 1}",
            "c.yaml:1:64 evaluators.a.tresholt: unknown key; did you mean 'threshold'?",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], threshold: 1.5}",
            "c.yaml:1:75 evaluators.a.threshold: must be at most 1, not 1.5",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], threshold: '1'}",
            (
                "c.yaml:1:75 evaluators.a.threshold: must be a number, not '1'; numbers are written in decimal, "
                "without quotes or a leading zero"
            ),
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], threshold: true}",
            "c.yaml:1:75 evaluators.a.threshold: must be a number, not true",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], tool_names: Exact}",
            (
                "c.yaml:1:76 evaluators.a.tool_names: must be 'exact', 'sanitized' or 'canonical', not 'Exact'; "
                "did you mean 'exact'?"
            ),
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], match: {http.status: 200}}",
            "c.yaml:1:85 evaluators.a.match['http.status']: must be text, not 200; put it in quotes",
        ),
        (
            "{type: tool_call_order, tool_calls_order: [a], sample_ratio: -1}",
            "c.yaml:1:78 evaluators.a.sample_ratio: must be at least 0, not -1",
        ),
        (
            "{type: tool_call_args, tool_calls: [{nam: search, args: {}}]}",
            "c.yaml:1:54 evaluators.a.tool_calls[0].nam: unknown key; did you mean 'name'?",
        ),
        (
            "{type: tool_call_args, tool_calls: [{args: {}}]}",
            "c.yaml:1:53 evaluators.a.tool_calls[0].name: the key is required",
        ),
        (
            "{type: tool_call_args, tool_calls: [{name: search, args: [1]}]}",
            "c.yaml:1:74 evaluators.a.tool_calls[0].args: must be a mapping, not a list",
        ),
        (
            "{type: tool_call_count, tool_calls_count: {search: [1, '>']}}",
            (
                "c.yaml:1:69 evaluators.a.tool_calls_count.search[0]: must be '=', '==', '!=', '>', '<', '>=' or '<=', "
                "not 1"
            ),
        ),
        (
            "{type: tool_call_count, tool_calls_count: {shop.search: '~ 1'}}",
            (
                "c.yaml:1:73 evaluators.a.tool_calls_count['shop.search']: unknown operator '~'; "
                "allowed: = == != > < >= <="
            ),
        ),
        (
            "{type: tool_call_accuracy, expected: [], weights: {exat: 1}}",
            "c.yaml:1:68 evaluators.a.weights.exat: unknown key; did you mean 'exact'?",
        ),
        (
            "{type: tool_policy}",
            (
                "c.yaml:1:17 evaluators.a: at least one rule is needed, here or under gates: required, allowed, "
                "forbidden, forbidden_sequences, must_precede, must_follow, never_after, max_calls, "
                "max_calls_per_tool, max_retries_per_tool, declared_tools_only, forbidden_calls or when"
            ),
        ),
        (
            "{type: tool_call_order, expected_from: {attribute: x}, tool_calls_order: [a]}",
            "c.yaml:1:72 evaluators.a.tool_calls_order: cannot be given together with 'expected_from'",
        ),
        (
            "{type: tool_policy, max_calls: 1, expected_from: {attribute: x}}",
            "c.yaml:1:51 evaluators.a.expected_from: 'tool_policy' expects nothing of a single trace",
        ),
        (
            "{type: tool_call_order, expected_from: {dataset: x.jsonl}}",
            "c.yaml:1:56 evaluators.a.expected_from: must have either 'dataset' and 'key', or 'attribute'",
        ),
        (
            "{type: tool_call_order, expected_from: {attribute: x}, strict: 1}",
            "c.yaml:1:80 evaluators.a.strict: must be true or false, not 1",
        ),
    ],
)
def test_mistakes(problems: Problems, entry: str, expected: str) -> None:
    """A mistake in an entry is told with its place, what was found and what is allowed."""
    lines = problems(f"evaluators: {{a: {entry}}}")

    assert expected == lines[0].partition(" (")[0].partition(": one of ")[0]


class TestExpectedFromAttribute:
    TEXT = "evaluators: {a: {type: tool_call_order, expected_from: {attribute: expected}, strict: true}}"

    def test_reads_json_text(self, read: Read) -> None:
        """The attribute's JSON text is the expectation; the other parameters are the entry's."""
        resolve = read(self.TEXT).evaluators[0].resolve

        assert ToolCallOrder(tool_calls_order=("search",), strict=True) == resolve(
            trajectory({"expected": '["search"]'})
        )

    def test_reads_structured_attributes(self, read: Read) -> None:
        """An attribute that is a list already is taken as it is."""
        resolve = read(self.TEXT).evaluators[0].resolve

        assert ToolCallOrder(tool_calls_order=("search",), strict=True) == resolve(trajectory({"expected": ["search"]}))

    def test_builds_once(self, read: Read) -> None:
        """The same text gives the same evaluator."""
        resolve = read(self.TEXT).evaluators[0].resolve

        assert resolve(trajectory({"expected": '["a"]'})) is resolve(trajectory({"expected": '["a"]'}))

    def test_absent(self, read: Read) -> None:
        """A trace without the attribute is skipped."""
        resolve = read(self.TEXT).evaluators[0].resolve

        assert spanscore.Skipped("no attribute 'expected' on the root span") == resolve(trajectory())

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("[", "not valid JSON: Expecting value at column 2"),
            ('["a"] x', "not valid JSON: more text behind the value, at character 6"),
            ("[NaN]", "not valid JSON: NaN is not a finite number"),
            ("[" * 100_000, "not valid JSON: nested too deep"),
            ("[" * 70 + "]" * 70, f"tool_calls_order{'[0]' * 63}: must not be nested more than 64 levels deep"),
            ('["\\ud800"]', "tool_calls_order[0]: must not hold half of a surrogate pair"),
            (
                "[1, true]",
                (
                    "tool_calls_order[0]: must be text, not 1; put it in quotes; tool_calls_order[1]: must be "
                    "text, not true; put it in quotes"
                ),
            ),
            ("{}", "tool_calls_order: must be a list, not a mapping"),
            (f'["{"a" * 300_000}"]', "must not be longer than 256 KiB"),
            (b"[]", "must be JSON, not bytes"),
            (7, "tool_calls_order: must be a list, not 7"),
        ],
    )
    def test_bad_content(self, read: Read, value: Any, expected: str) -> None:
        """What cannot be read is a failure of the evaluation, with the reason, and not an exception."""
        resolve = read(self.TEXT).evaluators[0].resolve

        outcome = resolve(trajectory({"expected": value}))

        assert spanscore.Failed("ConfigError", f"attribute 'expected': {expected}") == outcome

    def test_an_optional_expectation(self, read: Read) -> None:
        """An evaluator that could do without its expectation takes it from the attribute all the same."""
        text = "evaluators: {a: {type: tool_correctness, expected_from: {attribute: tools}}}"

        evaluator = read(text).evaluators[0].resolve(trajectory({"tools": '["search"]'}))

        assert ToolCorrectness(expected_tools=("search",)) == evaluator


class TestPython:
    def test_builds(self) -> None:
        """An evaluator is built of plain Python values; tuples and lists are the same."""
        for calls in ([{"name": "a", "args": {"x": (1, 2)}}], ({"name": "a", "args": {"x": [1, 2]}},)):
            evaluator = spanscore.evaluator("tool_call_args", {"tool_calls": calls, "threshold": 1})

            assert isinstance(evaluator, ToolCallArgs)
            assert "a" == evaluator.tool_calls[0].name
            assert {"x": [1, 2]} == evaluator.tool_calls[0].args
            assert 1.0 == evaluator.threshold

    @pytest.mark.parametrize(
        ("parameters", "expected"),
        [
            ({}, "tool_call_order.tool_calls_order: the key is required"),
            (
                {"tool_calls_order": ["a", 1], "threshold": 2, "strict": "no"},
                (
                    "tool_call_order.threshold: must be at most 1, not 2\n"
                    "tool_call_order.tool_calls_order[1]: must be text, not 1; put it in quotes\n"
                    "tool_call_order.strict: must be true or false, not 'no'; yes, no, on and off are text"
                ),
            ),
            (
                {"tool_call_order": ["a"]},
                (
                    "tool_call_order.tool_call_order: unknown key; did you mean 'tool_calls_order'? "
                    "(allowed: aliases, namespaces, strict, threshold, tool_calls_order, tool_names)"
                ),
            ),
            (
                {"tool_calls_order": ["a"], "match": {"service.name": "*"}},
                (
                    "tool_call_order.match: unknown key "
                    "(allowed: aliases, namespaces, strict, threshold, tool_calls_order, tool_names)"
                ),
            ),
            ({"tool_calls_order": [object()]}, "tool_call_order.tool_calls_order[0]: must be JSON, not object"),
            ({"threshold": float("nan")}, "tool_call_order.threshold: must be a finite number"),
            ({"aliases": {1: "a"}}, "tool_call_order.aliases: must have keys that are text"),
            (
                {"tool_calls_order": ["\ud800"]},
                "tool_call_order.tool_calls_order[0]: must not hold half of a surrogate pair",
            ),
        ],
    )
    def test_mistakes(self, parameters: Mapping[str, Any], expected: str) -> None:
        """All mistakes are told at once, with the path of each."""
        with pytest.raises(spanscore.ConfigError) as caught:
            spanscore.evaluator("tool_call_order", parameters)

        assert expected == str(caught.value)

    def test_unknown_type(self) -> None:
        """An unknown type is an error with the nearest one."""
        with pytest.raises(spanscore.ConfigError, match=r"^there is no evaluator 'tool_cals'; did you mean '"):
            spanscore.evaluator("tool_cals")

    def test_endless_values(self) -> None:
        """A value that holds itself is refused."""
        loop: list[Any] = []
        loop.append(loop)

        with pytest.raises(spanscore.ConfigError, match="must not be nested more than 64 levels deep"):
            spanscore.evaluator("tool_call_order", {"tool_calls_order": loop})


@pytest.mark.parametrize(
    ("written", "seconds"), [("", None), (", time_limit: 500ms", 0.5), (", time_limit: none", None)]
)
def test_a_built_in_evaluator_has_no_time_limit_unless_asked_for(
    read: Read, written: str, seconds: float | None
) -> None:
    """It is bounded by construction; under a limit it runs elsewhere like any other."""
    entry = read(f"evaluators: {{health: {{type: tool_call_trajectory{written}}}}}").evaluators[0]

    assert seconds == entry.time_limit_s


def test_time_limits_that_are_none(problems: Problems) -> None:
    """A limit is a duration of more than nothing, or the word `none`."""
    text = "evaluators:\n" + "".join(
        f"  e{number}: {{type: tool_call_trajectory, time_limit: {limit}}}\n"
        for number, limit in enumerate(["0s", "5", "never"])
    )

    duration = "must be a duration such as '500ms', '1m30s' or '30d'"
    assert [
        "c.yaml:2:48 evaluators.e0.time_limit: must be more than 0, not '0s'; write 'none' for no limit",
        f"c.yaml:3:48 evaluators.e1.time_limit: {duration}, not 5; write '5s' for seconds",
        f"c.yaml:4:48 evaluators.e2.time_limit: {duration}, not 'never'",
    ] == problems(text)


def test_an_entry_knows_the_version_of_its_evaluator(read: Read) -> None:
    """It is that of the distribution the evaluator comes from; for those of spanscore itself, spanscore's."""
    assert version("spanscore") == read(ORDER + "}}").evaluators[0].version
