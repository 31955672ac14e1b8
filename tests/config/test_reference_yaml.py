from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spanscore.config import default, describe, json_schema, load, loads, reference
from spanscore.contracts import plugins
from spanscore.errors import ConfigError
from spanscore.scoring.conversations.settings import ConversationSettings

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLES = sorted(CONFIG.glob("*.yaml"))
OF_VERSIONS = re.compile(r"^    (?:new|stable|false_alarm): .*\n", re.MULTILINE)
SWITCHED_OFF = re.compile(r"^( *)#(?=[^ ])", re.MULTILINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_load(path: Path) -> None:
    """Every file in `config/` is a configuration as it stands."""
    assert load(path).evaluators


def test_reference_is_current() -> None:
    """`config/reference.yaml` is what `scripts/generate` writes."""
    assert reference() == (CONFIG / "reference.yaml").read_text()


def test_schema_is_current() -> None:
    """`config/spanscore.schema.json` is what `scripts/generate` writes."""
    assert json_schema() == json.loads((CONFIG / "spanscore.schema.json").read_text())


def test_reference_is_the_default() -> None:
    """The reference as it stands says the same as an empty file."""
    written, empty = load(CONFIG / "reference.yaml"), default()

    assert empty.traces == written.traces
    assert empty.storage == written.storage
    assert empty.telemetry == written.telemetry
    assert {"receivers", "exporters", "annotate", "traces.root"}.isdisjoint(written.given)
    assert [type(each) for each in empty.dialects] == [type(each) for each in written.dialects]
    assert ["health"] == [entry.name for entry in written.evaluators]


def test_reference_with_everything_on() -> None:
    """Every key that is off can be switched on by taking its # away.

    Conversations and Kafka exclude each other, and so do an objective and versions that are compared.
    """
    everything = OF_VERSIONS.sub("", SWITCHED_OFF.sub(r"\1", reference()))
    with pytest.raises(
        ConfigError, match=r"^reference.yaml:\d+:1 conversations: cannot be used with receivers.kafka.*$"
    ):
        loads(everything, "reference.yaml", Path())
    conversations = re.search(r"^conversations:\n(?: .*\n)+", everything, re.MULTILINE)
    assert conversations is not None
    assert loads(conversations[0], "conversations.yaml", Path()).conversations == ConversationSettings()
    config = loads(everything.replace(conversations[0], ""), "reference.yaml", Path())

    assert plugins.names("receivers") == tuple(sorted(config.receivers))
    assert plugins.names("emitters") == tuple(sorted(config.exporters))
    types = sorted(entry.type for entry in config.evaluators)
    assert list(plugins.names("evaluators")) == types


def test_reference_holds_every_parameter() -> None:
    """Every parameter of every evaluator is in the reference, with its documentation."""
    text = " ".join(re.sub(r"^ *# ", "", reference(), flags=re.MULTILINE).split())

    for name in plugins.names("evaluators"):
        for parameter in describe(name).parameters:
            assert f"{parameter.name}: " in text
            assert " ".join(parameter.doc.split()) in text
