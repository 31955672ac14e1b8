"""The stack of deploy/compose, run without containers: from the sample agent to Jaeger, Prometheus and the boards."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from dashboards import (
    YOUNG,
    Panel,
    boards,
    exemplar_destinations,
    jaeger_tags,
    links,
    panels,
    resolved,
    text_boxes,
    variables,
)
from oddities import send_oddities
from processes import Running, get_json
from programs import COLLECTOR, JAEGER, PROMETHEUS, Programs
from results import Results
from scores import Prometheus
from shipped import DEPLOY
from stack import COMPOSE, RUNS, SERVICE, Stack
from traces import FAILING, NAME, VALUE, complete, root_events, shown

_ROUNDS: Final = 3
_EVALUATORS: Final = 4
_SETTLED_S: Final = 5.0
_ROUNDING: Final = 1e-9
_OF_ODDITIES: Final = "SpanscoreRefusesSpans"
_BUCKETS: Final = "gen_ai_evaluation_score_bucket"


def prove(results: Results, programs: Programs, directory: Path) -> None:
    """Run the stack and prove what it promises."""
    results.section(
        "deploy/compose: agent → Collector → spanscore → Jaeger, scraped by Prometheus, shown by Grafana's boards"
    )
    if results.lacks(programs, "the stack of deploy/compose: all of its claims", COLLECTOR, JAEGER, PROMETHEUS):
        return
    with Running(directory) as running:
        stack = Stack(running, programs, directory, COMPOSE)
        results.check("every program starts with its shipped configuration", partial(_start, stack))
        proof = _Proof(stack)
        results.check("all spans of the sample agent reach Jaeger, and all its runs are scored", proof.run_agent)
        results.check("root spans in Jaeger carry name, value, label and explanation of every score", proof.root_spans)
        results.check("each exemplar in Prometheus leads to the trace in Jaeger that has this score", proof.exemplars)
        results.check("every rule is loaded and evaluated without error", proof.rules)
        results.check("every variable of the boards has values", proof.variables)
        results.check("every query of the boards is answered, and every panel has data", proof.queries)
        results.check("every link of the boards resolves", proof.links)


class _Proof:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._prometheus: Final = Prometheus(stack.at["prometheus"])

    def run_agent(self) -> str:
        expected = _ROUNDS * RUNS
        for round_number in range(1, _ROUNDS + 1):
            self._stack.run_agent()
            scored = partial(self._scored, round_number * RUNS * _EVALUATORS)
            self._stack.running.wait_for("all runs are scored", scored)
        self._stack.running.wait_for("all traces are in Jaeger", lambda: len(self._stack.traces()) == expected)
        send_oddities(self._stack.at["spanscore"], self._stack.traces()[0]["traceID"])
        counted = partial(self._prometheus.number, "sum(spanscore_evaluations_total)")
        self._stack.running.wait_for("Prometheus has them", lambda: counted() == expected * _EVALUATORS)
        refused = partial(self._prometheus.number, "sum(spanscore_spans_refused_total)")
        self._stack.running.wait_for("Prometheus has the oddities", lambda: refused() > 0)
        time.sleep(_SETTLED_S)  # rules are evaluated once a second, on what has been scraped
        spans = sum(len(trace["spans"]) for trace in self._stack.traces())
        return f"{expected} traces with {spans} spans in Jaeger, {expected * _EVALUATORS} evaluations in Prometheus"

    def root_spans(self) -> str:
        traces = self._stack.traces()
        for trace in traces:
            names = sorted(str(event[NAME]) for event in root_events(trace) if complete(event))
            assert names == ["arguments", "health", "order", "policy"], f"{trace['traceID']}: {names}"
        failing = self._stack.traces(FAILING)
        assert 0 < len(failing) < len(traces), f"{len(failing)} of {len(traces)} are found as failing"
        return f"{len(failing)} of {len(traces)} are failing, such as {failing[0]['traceID']}: {shown(failing[0])}"

    def exemplars(self) -> str:
        found = self._prometheus.exemplars(_BUCKETS)
        assert found, f"{_BUCKETS} has no exemplar"
        for series, exemplar in found:
            trace = get_json(f"http://{self._stack.at['query']}/api/traces/{exemplar['labels']['trace_id']}")["data"][0]
            values = {str(event[NAME]): float(event[VALUE]) for event in root_events(trace)}
            value, name = float(exemplar["value"]), series["gen_ai_evaluation_name"]
            assert abs(values[name] - value) < _ROUNDING, f"{name}: {value} in Prometheus, {values[name]} in Jaeger"
        series, exemplar = found[0]
        return (
            f"{len(found)} exemplars of {_BUCKETS}, such as {series['gen_ai_evaluation_name']} "
            f"{float(exemplar['value']):.4g} with trace_id {exemplar['labels']['trace_id']}"
        )

    def rules(self) -> str:
        wanted = re.findall(
            r"- (?:alert|record): (\S+)", (DEPLOY / "prometheus/rules.yaml").read_text(encoding="utf-8")
        )
        loaded = self._prometheus.rules()
        assert sorted(wanted) == sorted(rule["name"] for rule in loaded), "not every rule is loaded"
        broken = [f"{rule['name']}: {rule['lastError']}" for rule in loaded if rule["health"] != "ok"]
        assert not broken, "; ".join(broken)
        pending = sorted(rule["name"] for rule in loaded if rule.get("state") in {"pending", "firing"})
        # One of the oddities is no OTLP: to be told of it is what the alert is for.
        told = [
            f"{each}, of the span that was sent to be refused" if each == _OF_ODDITIES else each for each in pending
        ]
        return f"{len(loaded)} rules; active after a minute: {'; '.join(told) or 'none'}"

    def variables(self) -> str:
        told = []
        for board in boards():
            for name, values in self._values(board["uid"]).items():
                assert values, f"{board['uid']}: {name} has no values"
                told.append(f"{name}: {', '.join(values)}")
        return "; ".join(sorted(set(told)))

    def queries(self) -> str:
        count, empty = 0, []
        for board in boards():
            for values in self._choices(board["uid"]):
                for panel in panels(board):
                    answers = [self._answer(panel, target, values) for target in panel.targets]
                    count += len(answers)
                    # The second worst of one agent is nobody.
                    if not any(answers) and not panel.may_be_empty:
                        empty.append(f"{board['uid']}: {panel.title}: {values}")
        assert not empty, "no data: " + "; ".join(empty)
        return f"{count} queries, with everything chosen and with each value by itself"

    def links(self) -> str:
        names = {board["uid"]: {each["name"] for each in board["templating"]["list"]} for board in boards()}
        _, exemplar = self._prometheus.exemplars(_BUCKETS)[0]
        trace_id = exemplar["labels"]["trace_id"]
        get_json(f"http://{self._stack.at['query']}/api/traces/{trace_id}")
        addresses = [(text_boxes(board), address) for board in boards() for address in links(board)]
        pages = [each["url"].replace("$${__value.raw}", trace_id) for each in exemplar_destinations()]
        for typed, address in addresses:
            if not address.startswith("/d/"):
                pages.append(resolved(address.replace("${__value.raw}", trace_id), typed))
                continue
            uid = address.removeprefix("/d/").partition("?")[0]
            assert uid in names, f"there is no board {uid!r}"
            unknown = set(re.findall(r"&var-(\w+)=", address)) - names[uid]
            assert not unknown, f"{uid} has no variables {unknown}"
        assert {f"http://localhost:16686/trace/{trace_id}"} == set(pages), pages
        return f"{len(addresses) + 1 - len(pages)} links between boards, {len(pages)} to a trace on Jaeger's own page"

    def _scored(self, count: int) -> bool:
        return self._stack.evaluations() == count

    def _values(self, uid: str) -> dict[str, list[str]]:
        (board,) = (each for each in boards() if each["uid"] == uid)
        everything = dict.fromkeys(("service", "agent", "evaluator"), ".*")
        asked = variables(board)
        return {name: self._prometheus.label_values(label, resolved(at, everything)) for name, at, label, _ in asked}

    def _choices(self, uid: str) -> list[dict[str, str]]:
        """Return what a user may choose: everything, where a variable has that, and each value by itself."""
        values = self._values(uid)
        (board,) = (each for each in boards() if each["uid"] == uid)
        asked = {name: ".*" if everything else values[name][0] for name, _, _, everything in variables(board)}
        wide = YOUNG | text_boxes(board) | asked
        single = [wide | {name: value} for name, chosen in values.items() for value in chosen]
        return [wide, *single]

    def _answer(self, panel: Panel, target: Mapping[str, Any], values: Mapping[str, str]) -> bool:
        if panel.in_jaeger:
            one = {**values, "service": SERVICE}  # the panel is repeated for each service
            service = resolved(target["service"], one)
            return bool(self._stack.traces(jaeger_tags(target["tags"], one), service))
        return bool(self._prometheus.series(resolved(target["expr"], values), instant=bool(target.get("instant"))))


def _start(stack: Stack) -> str:
    stack.start_jaeger()
    stack.start_scoring()
    stack.start_prometheus()
    return (
        "Collector, spanscore, Jaeger, Prometheus; in their files, only addresses, intervals and a path were replaced"
    )
