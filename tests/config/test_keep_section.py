"""The section `keep`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spanscore.config import Config
from spanscore.errors import ConfigError

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

ONWARD = "exporters: {otlp: {}}\n"


def test_what_is_read(read: Read) -> None:
    """Shares as percent, as a number or as `all`."""
    found = read(
        """
        exporters: {otlp: {}}
        keep:
          mode: observe
          rules:
            - {name: failing, when: {verdict: fail}, keep: all}
            - {name: slow, when: {longer_than: 30s}, keep: 0.25}
            - {name: good, when: {match: {service.name: "shop-*"}}, keep: 5%}
          default: 1
          max_bytes: 1GiB
        """
    ).for_serve()
    keep = found.keep

    assert keep is not None
    assert [("failing", 1.0), ("slow", 0.25), ("good", 0.05)] == [(rule.name, rule.keep) for rule in keep.rules]
    assert (1.0, 2**30) == (keep.default, keep.max_bytes)
    assert {"service.name"} == keep.reads


def test_defaults(read: Read) -> None:
    """Off without the section; with an empty one, all is kept."""
    assert read("").keep is None
    found = read("keep: {}").keep
    assert found is not None
    assert ("observe", (), 1.0, 512 * 2**20) == (found.mode, found.rules, found.default, found.max_bytes)


@pytest.mark.parametrize("exporters", ["", "exporters: {otlp: {signals: [metrics]}}\n", "exporters: {console: {}}\n"])
def test_serve_needs_somewhere_to_send_spans(read: Read, exporters: str) -> None:
    """Other commands check the section, and do not use it."""
    config = read(f"{exporters}keep: {{mode: observe}}")
    with pytest.raises(
        ConfigError,
        match=r"c\.yaml:\d+:1 keep: `spanscore serve` needs exporters.otlp with 'traces' among its signals: kept spans",
    ):
        config.for_serve()
    assert config.for_process().keep is not None
    assert config.for_files().keep is not None


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{mode: off}", "keep.mode"),
        ("{default: none}", "'all', or a share such as '5%' or 0.05, not 'none'"),
        ("{default: 0}", "keep.default: must be at least 0.0001%: a rule cannot drop everything"),
        ("{default: -0.5}", "keep.default: must be at least 0.0001%"),
        ("{rules: [{name: a}], default: 0.00001%}", "keep.default: must be at least 0.0001%"),
        ("{rules: [{name: a, keep: 0%}]}", "keep.rules[0].keep: must be at least 0.0001%: a rule cannot drop"),
        ("{default: 101%}", "keep.default: must be at most 100%, not 101%"),
        ("{default: 1.5}", "keep.default: must be at most 100%, not 150%"),
        ("{rules: [{name: a, keep: 10}]}", "keep.rules[0].keep: must be at most 100%, not 1000%; did you mean 10%?"),
        ("{default: true}", "'all', or a share"),
        ("{rules: [{keep: all}]}", "name"),
        ("{rules: [{name: default}]}", "names of their own, and not 'default'"),
        ("{rules: [{name: a}, {name: a}]}", "'a' twice"),
        ("{rules: [{name: a, when: {score: health}}]}", "'score' and 'below' together"),
        ("{rules: [{name: a, when: {verdict: bad}}]}", "'pass'"),
        ("{rules: [{name: a, when: {score: helth, below: 0.5}}]}", "must be an evaluator of runs: health; not 'helth'"),
        (
            f"{{rules: [{', '.join(f'{{name: r{n}, when: {{longer_than: {n}s}}, keep: 1%}}' for n in range(9))}]}}",
            "at most 8 rules",
        ),
        ("{rules: [{name: a}, {name: b}]}", "keep.rules[1]: is never reached, as rule 'a' matches every trace"),
        (
            "{rules: [{name: a, when: {match: {}}, keep: 5%}, {name: b, when: {verdict: fail}}]}",
            "keep.rules[1]: is never reached, as rule 'a' matches every trace",
        ),
    ],
)
def test_mistakes(problems: Problems, section: str, told: str) -> None:
    """Each is named with what is allowed."""
    (line,) = problems(f"{ONWARD}keep: {section}")
    assert line.startswith("c.yaml:2:")
    assert told in line


def test_a_score_over_conversations_is_none_of_runs(problems: Problems) -> None:
    """It comes long after the decision."""
    once = "evaluators: {once: {type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}}"
    (line,) = problems(
        f"conversations: {{}}\n{once}\nkeep: {{rules: [{{name: a, when: {{score: once, below: 0.5}}}}]}}"
    )
    assert "must be an evaluator of runs" in line
