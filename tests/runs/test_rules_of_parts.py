"""Seven rules for each part of each recorded run that pauses: no part fails a rule that the whole run keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from corpora import CORPUS, NAMES, recorded
from spanscore.config import loads
from spanscore.config import parts as wiring
from spanscore.model import CloseReason, Score, Trace

APPROVALS: Final = [name for name in NAMES if any(word in name for word in ("approval", "confirmation", "interrupt"))]
RULES: Final = """
evaluators:
  order: {type: tool_policy, must_precede: [[lookup_order, issue_refund]]}
  looked: {type: tool_policy, required: [lookup_order]}
  once: {type: tool_policy, max_calls_per_tool: {issue_refund: 1}}
  count: {type: tool_call_count, tool_calls_count: {issue_refund: 1}}
  known: {type: argument_provenance, tools: [issue_refund], arguments: [amount]}
  no_mail: {type: tool_policy, forbidden: [send_mail]}
  followed: {type: tool_policy, must_follow: [[lookup_order, issue_refund]]}
"""
"""In the order of the columns below."""
PAUSES: Final = "- - - - - - -"
WHOLE: Final = "+ + + + + + +"
REFUSED: Final = "+ + + - - + -"
UNCERTAIN: Final = "- - + + + + +"
"""Whether the lookup was made before the pause cannot be told."""
BY_ANOTHER: Final = "+ - + - - + -"
"""The call was made outside, or refused in other words: only its result is known."""
UNSEEN: Final = "- - + + - + +"
"""The calls before the pause are unknown, and the arguments were not in the messages."""
SKIPPED: Final = "+ - + - - + +"
"""Nothing says that the call was refused, or what was called before."""
HIDDEN: Final = "+ + + + - + +"
"""The whole run, without content."""
TWICE: Final = "+ + x x x + +"
"""The run refunds twice, the second time an amount that it has not seen."""
MAILED: Final = "- - - - - x -"
"""A mail is sent beside the call that waits."""
NOT_MADE: Final = "+ + + x - + x"
"""The whole run is here, without a refund."""
MAYBE_MAILED: Final = "+ + + + + - +"
"""Whether the mail was sent before the pause cannot be told."""
EDITED: Final = "+ + + + x + +"
"""The person has changed the amount: no message has it."""
OTHERS: Final = {
    # The parallel lookup is executed after the refund.
    "agent-framework-approval": {"parallel-resumed": "+ + + + + + x"},
    # An agent that was called as a tool cannot wait: its caller goes on.
    "agent-framework-approval-again": {"two-again-resumed": TWICE, "agent-tool": NOT_MADE},
    "agent-framework-approval-nocontent": {
        **dict.fromkeys(("approved-resumed", "parallel-resumed", "two-again-resumed", "flow-resumed"), UNSEEN),
        **dict.fromkeys(("twice-resumed", "twice-again-resumed"), UNSEEN),
        **dict.fromkeys(("rejected-resumed", "flow-rejected-resumed"), SKIPPED),
    },
    "google-adk-confirmation-again": {"two-again-resumed": TWICE, "agent-tool": NOT_MADE},
    "google-adk-confirmation-nocontent": dict.fromkeys(
        (f"{each}-resumed" for each in ("confirmed", "two-again", "twice", "twice-again", "transfer", "single")), UNSEEN
    ),
    "google-adk-confirmation-oi-again": {
        **dict.fromkeys(("twice-resumed", "twice-again-resumed", "transfer-resumed"), UNCERTAIN),
        "two-again-resumed": "- - - - x + +",
        "agent-tool": NOT_MADE,
    },
    # The span of the request is the agent's, and lasts longer than the tool.
    "google-adk-confirmation-oi": dict.fromkeys(("confirmed-resumed", "parallel-resumed", "no-ids-resumed"), UNCERTAIN),
    # Without content no span says that the call was refused.
    "pydantic-ai-approval-nocontent": {
        **dict.fromkeys(("approved-resumed", "raised-resumed", "parallel-resumed"), "+ + + + - + +"),
        **dict.fromkeys(("denied-resumed", "raised-denied-resumed"), BY_ANOTHER),
    },
    # In JavaScript the messages leave the answer to the other call out.
    "google-adk-js-confirmation": {"parallel-asks": MAILED, "parallel-resumed": MAYBE_MAILED},
    "langgraph-approval-again": {"two-resumed": TWICE},
    "langgraph-approval-twice": {"mw-two-again-resumed": TWICE},
    "langgraph-approval-twice-nocontent": {
        **dict.fromkeys(
            (f"{style}-{each}-resumed" for style in ("mw", "interrupt") for each in ("two-again", "twice", "sub")),
            UNSEEN,
        ),
        **dict.fromkeys((f"{style}-twice-again-resumed" for style in ("mw", "interrupt")), UNSEEN),
        **dict.fromkeys((f"interrupt-{each}-resumed" for each in ("declined", "parallel")), UNSEEN),
        "mw-sub-refused-resumed": SKIPPED,
    },
    # A greeting is a turn without a call.
    "pydantic-ai-approval-again": {"two-resumed": TWICE, "turns-greeting": "+ x + x - + +"},
    "openai-agents-approval-client": {
        "two-again-resumed": TWICE,
        "both-one-refused-resumed": WHOLE,
        # The history is at the provider.
        "conv-resumed": UNSEEN,
        "conv-rejected-resumed": SKIPPED,
        # The application refuses in its own words.
        "reason-resumed": BY_ANOTHER,
    },
    "openai-agents-approval-nocontent": {
        **dict.fromkeys(("approved-resumed", "parallel-resumed", "sub-resumed"), UNSEEN),
        # Whether a call was refused before the only request to a model cannot be told.
        "rejected-resumed": SKIPPED,
    },
    "openai-agents-approval-tl": {"hidden-approved-resumed": UNSEEN},
    # The messages leave the calls out.
    "openai-agents-approval-v2": dict.fromkeys(("approved-resumed", "parallel-resumed"), "- - + + + + +"),
    "openai-agents-approval-openlit": {
        **dict.fromkeys(("approved-resumed", "parallel-resumed"), UNSEEN),
        "rejected-resumed": SKIPPED,
    },
    "pydantic-ai-approval-sub-nocontent": {"sub-resumed": HIDDEN},
    # Nor is a call in the spans of the part that continues.
    "pydantic-ai-approval-openlit": dict.fromkeys(
        ("approved-resumed", "rejected-resumed", "parallel-resumed"), SKIPPED
    ),
    # The messages leave the answer to the other call out.
    "openai-agents-approval-mlflow": {"parallel-resumed": UNSEEN},
    "openai-agents-approval-genai": dict.fromkeys(("conv-resumed", "hidden-approved-resumed"), UNSEEN),
    "logfire-openai-agents-approval": {
        "reason-resumed": BY_ANOTHER,
        "two-again-resumed": TWICE,
        "mailed-asks": MAILED,
        "mailed-resumed": MAYBE_MAILED,
        "both-one-refused-resumed": WHOLE,
    },
    "openai-agents-js-approval": {
        "two-again-resumed": TWICE,
        "both-one-refused-resumed": WHOLE,
        "hidden-approved-resumed": UNSEEN,
    },
    # The span of the trace is in another trace than all others.
    "openai-agents-js-approval-sub": {"chat-sub-root": SKIPPED},
    "agno-approval": {
        "two-again-resumed": TWICE,
        "both-one-refused-resumed": WHOLE,
        "reason-resumed": BY_ANOTHER,
        "edited-resumed": EDITED,
        "hidden-approved-resumed": UNSEEN,
        "hidden-rejected-resumed": SKIPPED,
    },
    # No span has messages.
    "agno-approval-tl": dict.fromkeys(("approved-resumed", "team-resumed"), UNSEEN),
    # Without the spans of a client no span has messages.
    "agno-approval-genai": {
        "alone-approved-resumed": UNSEEN,
        "alone-rejected-resumed": SKIPPED,
        "parallel-asks": MAILED,
        "parallel-resumed": MAYBE_MAILED,
    },
    "llama-index-approval-genai": {
        "alone-approved-resumed": UNSEEN,
        "parallel-asks": MAILED,
        "parallel-resumed": MAYBE_MAILED,
    },
    # Another call was made than the model asked for, or a person answered in place of the tool.
    "langgraph-approval-edited": {
        "edited-resumed-asks": "- - - - x - -",
        "edited-again-resumed": TWICE,
        "renamed-refused-resumed-asks": MAILED,
        "renamed-again-resumed": "+ + + + x x +",
        "answered-again-resumed": EDITED,
    },
    # The person changes the state, and refuses in words of their own.
    "langgraph-approval-before": {"refused-resumed-update": SKIPPED, "refused-resumed": "- - + - - + +"},
    # Another tool than the refund waits.
    "langgraph-approval-ids": {"edited-once": "+ + + x - + x"},
    "pydantic-ai-approval-ids": {"second-resumed": HIDDEN},
    # Of two calls, one was executed while the other waited: it may be each of them.
    "langgraph-approval-langsmith": {"both-again-resumed": "+ + - - x + +", "answered-again-resumed": EDITED},
    # The messages leave the calls out.
    "langgraph-approval-openlit": {
        "approved-resumed": UNSEEN,
        "rejected-resumed": SKIPPED,
        "parallel-resumed": "- - + + - x +",
    },
    # The hook refuses in its own words, in an agent that is called.
    "strands-interrupt-again": {"two-again-resumed": TWICE},
    "strands-interrupt-inner": {"sub-refused-resumed": BY_ANOTHER},
    "traceai-langgraph-approval": {
        **dict.fromkeys(("mw-approved-resumed", "interrupt-approved-resumed", "interrupt-declined-resumed"), UNSEEN),
        "mw-rejected-resumed": SKIPPED,
    },
    # The calls before the pause are another agent's.
    "llama-index-approval-steps": {"approved-resumed": UNSEEN, "refused-resumed": SKIPPED},
    "llama-index-approval-nocontent": {"approved-resumed": UNSEEN, "live-yes": HIDDEN},
    # No span of a model has messages.
    "llama-index-approval-tl": dict.fromkeys(("approved-resumed", "declined-resumed", "parallel-resumed"), UNSEEN),
    "langgraph-approval-nocontent": {
        **dict.fromkeys(("approved-resumed", "parallel-resumed", "interrupt-approved-resumed"), UNSEEN),
        "rejected-resumed": SKIPPED,
    },
    "langgraph-approval-tl": {
        "edited-resumed": EDITED,
        "hidden-approved-resumed": UNSEEN,
        "hidden-rejected-resumed": SKIPPED,
    },
    # The mark of a refusal is also that of a failure.
    "genkit-approval": {"two-again-resumed": TWICE, "both-one-denied-resumed": "+ + - - - + +"},
    "vercel-ai-7-approval": {"two-again-resumed": TWICE, "both-one-refused-resumed": "+ + - - - + +"},
    # One trace holds the whole run, unless the application has named another one for the second part.
    # A reason in the person's own words looks like a result.
    "langgraph-js-approval": {
        "two-again-resumed": TWICE,
        "mw-reason-resumed": BY_ANOTHER,
        "mw-both-one-rejected-resumed": "+ + + - - + -",
    },
    **{f"langgraph-js-approval-{of}": {"two-again-resumed": TWICE} for of in ("tl", "langfuse")},
    # A run that has reached its limit ends like one that waits. Another amount may be in the user's words.
    "voltagent-approval": {
        "two-again-resumed": "+ + x x - + +",
        "both-one-refused-resumed": WHOLE,
        "long-resumed": UNSEEN,
        "limit": PAUSES,
        "turn-after": "+ x + x - + +",
    },
    # The messages leave the calls out.
    "tanstack-ai-approval": {
        **dict.fromkeys(("approved-resumed", "parallel-resumed", "both-one-refused-resumed"), UNSEEN),
        "two-again-resumed": UNSEEN,
        "denied-resumed": SKIPPED,
        "limit": "+ + + x - + x",
        "turn-after": "+ x + x - + +",
    },
    "mastra-approval": {
        "two": TWICE,
        "context-resumed": "- - + + + + +",
    },
    # Two processes were sent the same approval at once.
    "mastra-approval-twice": {"twice": "+ + x x + + +"},
    "mastra-approval-twice-nocontent": {
        **dict.fromkeys(("two", "twice"), "+ + x x - + +"),
        "parallel": HIDDEN,
        "denied": NOT_MADE,
    },
    "mastra-approval-nocontent": {
        **dict.fromkeys(("approved", "suspended"), HIDDEN),
        "context-resumed": "- - + + + + +",
    },
}
"""What differs, by recording and scenario."""


def expected(name: str, scenario: str) -> str:
    """Return the outcome of each rule: + passed, x failed, - skipped."""
    if scenario in OTHERS.get(name, {}):
        return OTHERS[name][scenario]
    if scenario.endswith("asks"):
        return PAUSES
    if any(word in scenario for word in ("deferred", "client")):
        return BY_ANOTHER
    return REFUSED if any(word in scenario for word in ("denied", "reject", "refused", "reason")) else WHOLE


@pytest.mark.parametrize("name", APPROVALS)
def test_the_rules_of_each_part(name: str) -> None:
    """Approved, refused, answered by somebody else, twice in a row, in an agent that is called, and so on."""
    pipeline = wiring.pipeline(loads(RULES, "c.yaml", Path()))
    found: dict[str, str] = {}
    for part in json.loads((CORPUS / f"{name}.truth.json").read_text(encoding="utf-8"))["traces"]:
        spans = tuple(recorded(name)[part["trace_id"]])
        (report,) = pipeline.run(Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED))
        outcomes = [evaluation.outcome for evaluation in report.evaluations]
        found[part["scenario"]] = " ".join(
            ("+" if each.passed else "x") if isinstance(each, Score) else "-" for each in outcomes
        )

    assert {scenario: expected(name, scenario) for scenario in found} == found
