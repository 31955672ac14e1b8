"""Agents that act by chance, as good ones do: what `spanscore learn` is tried on.

Each gives the calls of one run: `{"name", "arguments"}` with `result`, or with `error` where the call failed.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping
from typing import Any

Call = dict[str, Any]
Agent = Callable[[random.Random], list[Call]]


def call(name: str, /, **arguments: Any) -> Call:
    """A call that succeeds."""
    return {"name": name, "arguments": arguments, "result": {"ok": True}}


def failed(made: Call, error: str = "TimeoutError") -> Call:
    """The same call, failing."""
    return {"name": made["name"], "arguments": made["arguments"], "error": error}


def text(chance: random.Random, words: int = 4) -> str:
    """Words that stand for what users and models write."""
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 9))) for _ in range(words))


def day(chance: random.Random) -> str:
    """A date."""
    return f"2026-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}"


def refund(chance: random.Random) -> list[Call]:
    """Two checks in either order, then one of two ways; the first call fails now and then, and is made again."""
    order = f"ORD-{chance.randint(1000, 9999)}"
    lookup = call("lookup_order", order=order)
    checks = [
        call("check_policy", order=order, region=chance.choice(["EU", "US", "APAC"])),
        call("check_stock", sku=f"{chance.choice('ABC')}-{chance.randint(10, 99)}"),
    ]
    chance.shuffle(checks)
    calls = [*([failed(lookup)] if chance.random() < 0.15 else []), lookup, *checks]
    if chance.random() < 0.7:
        reason = chance.choice(["damaged", "late", "wrong_item"])
        amount = round(chance.uniform(5, 300), 2)
        calls.append(call("issue_refund", order=order, amount=amount, currency="EUR", reason=reason))
    else:
        calls.append(call("issue_voucher", order=order, value=chance.choice([10, 20, 50])))
        calls.append(call("notify_manager", text=f"voucher for {order}"))
    if chance.random() < 0.4:
        calls.append(call("send_survey", email=f"u{chance.randint(1, 999)}@example.com"))
    return calls


def retrieval(chance: random.Random) -> list[Call]:
    """One to three searches, each for something else."""
    calls = [call("rewrite_query", text=text(chance))]
    calls += [
        call("search", query=text(chance), top_k=chance.choice([5, 10]), filters={"lang": chance.choice(["en", "de"])})
        for _ in range(chance.randint(1, 3))
    ]
    calls.append(call("rerank", ids=[chance.randint(1, 500) for _ in range(chance.randint(3, 8))]))
    calls.append(call("answer", style=chance.choice(["short", "long"]), citations=chance.random() < 0.5))
    return calls


def coding(chance: random.Random) -> list[Call]:
    """Edits and tests, until these pass."""
    calls = [call("read_file", path="src/a.py")]
    for number in range(chance.randint(1, 4)):
        calls.append(call("edit_file", path=chance.choice(["src/a.py", "src/b.py"]), patch=text(chance)))
        calls.append(call("run_tests", target="all") | {"result": {"failed": chance.randint(0, 9), "round": number}})
    return [*calls, call("commit", message=text(chance))]


def travel(chance: random.Random) -> list[Call]:
    """Three quotes in any order, a discount now and then, one of two ways to pay, amounts with a long tail."""
    user = call("get_user", id=chance.randint(1000, 99999))
    quotes = [
        call("quote_flight", date=day(chance), cabin=chance.choice(["economy", "business"])),
        call("quote_hotel", nights=chance.randint(1, 14), stars=chance.randint(2, 5)),
        call("quote_car", days=chance.randint(1, 14)),
    ]
    chance.shuffle(quotes)
    calls = [*([failed(user, "ConnectionError")] if chance.random() < 0.2 else []), user, *quotes]
    if chance.random() < 0.5:
        calls.append(call("apply_discount", percent=chance.choice([5, 10, 15])))
    pay = chance.choice(["pay_card", "pay_invoice"])
    return [*calls, call(pay, amount=round(chance.lognormvariate(6, 0.6), 2)), call("confirm")]


def triage(chance: random.Random) -> list[Call]:
    """What follows depends on an argument."""
    category = chance.choices(["billing", "technical", "account"], [0.5, 0.3, 0.2])[0]
    calls = [
        call("classify", text=text(chance)),
        call("route", category=category, priority=chance.randint(1, 3)),
    ]
    if category == "billing":
        calls.append(call("get_invoice", id=chance.randint(1, 10000)))
        calls.append(call("adjust_invoice", delta=round(chance.uniform(-50, 50), 2)))
    elif category == "technical":
        calls.append(call("search_kb", query=text(chance)))
        calls.append(call("create_ticket", severity=chance.choice(["low", "high"])))
    else:
        calls.append(call("verify_identity", method=chance.choice(["sms", "email"])))
        calls.append(call("reset_password", user=f"user{chance.randint(1, 999)}"))
    return [*calls, call("reply", text=text(chance))]


def pipeline(chance: random.Random) -> list[Call]:
    """Some twenty steps, of which two pairs change places and three may be left out."""
    calls = [call(f"step_{number:02d}", level=chance.randint(0, 100)) for number in range(22)]
    for place in (5, 10):
        if chance.random() < 0.5:
            calls[place], calls[place + 1] = calls[place + 1], calls[place]
    for place in (18, 15, 3):
        if chance.random() < 0.3:
            del calls[place]
    return calls


def job(chance: random.Random) -> list[Call]:
    """The same question again and again, until the job is done."""
    name = f"job-{chance.getrandbits(32):08x}"
    tags = [chance.choice(["a", "b", "c"]) for _ in range(chance.randint(0, 3))]
    spec = {"cpu": chance.randint(1, 16), "gpu": chance.random() < 0.5, "tags": tags}
    polls = [call("poll_status", job=name) for _ in range(chance.randint(2, 5))]
    calls = [call("submit", spec=spec), *polls, call("download", job=name, format=chance.choice(["csv", "json"]))]
    return [*calls, *([call("cleanup", job=name)] if chance.random() < 0.3 else [])]


def analyst(chance: random.Random) -> list[Call]:
    """Statements that fail are written anew."""
    calls = [call("list_tables", schema="public")]
    tables = ["orders", "users", "items", "payments"]
    calls += [call("describe_table", table=chance.choice(tables)) for _ in range(chance.randint(1, 3))]
    tries = [call("run_sql", sql=f"select {text(chance)}", limit=100) for _ in range(chance.randint(0, 2))]
    calls += [failed(each, "SyntaxError") for each in tries]
    calls.append(call("run_sql", sql=f"select {text(chance)}", limit=100))
    kind = chance.choice(["bar", "line", "pie"])
    return [*calls, call("plot", kind=kind, width=chance.choice([640, 800, 1024]))]


def editorial(chance: random.Random) -> list[Call]:
    """Two agents at work at one time: what one does stands between what the other does."""
    one = [call("research", topic=text(chance))]
    one += [call("read", url=f"https://example.com/{chance.randint(1, 999)}") for _ in range(chance.randint(1, 4))]
    other = [call("draft", words=chance.randint(200, 1500)), call("proofread", level=chance.choice(["light", "full"]))]
    calls = [call("plan")]
    while one or other:
        take = one if one and (not other or chance.random() < 0.5) else other
        calls.append(take.pop(0))
    return [*calls, call("publish", channel="blog")]


def assistant(chance: random.Random) -> list[Call]:
    """A tool that fails is replaced by another; arguments that may be there or not, nested, and dates."""
    web = call("search_web", query=text(chance))
    calls = [failed(web), call("search_cache", query=text(chance))] if chance.random() < 0.25 else [web]
    event: dict[str, Any] = {"title": text(chance, 2), "start": f"{day(chance)}T{chance.randint(8, 18):02d}:00:00Z"}
    if chance.random() < 0.5:
        event["attendees"] = [f"{text(chance, 1)}@example.com" for _ in range(chance.randint(1, 3))]
    calls.append(call("create_event", event=event, visibility=chance.choice(["private", "public"])))
    return [*calls, call("remind", minutes=chance.choice([5, 10, 30, 60]))]


AGENTS: Mapping[str, Agent] = {
    agent.__name__: agent
    for agent in (refund, retrieval, coding, travel, triage, pipeline, job, analyst, editorial, assistant)
}
