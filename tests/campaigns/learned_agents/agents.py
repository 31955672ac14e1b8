"""The agents: thirteen kinds as people have them."""

from __future__ import annotations

from typing import Final

from campaigns.learned_agents.runs import (
    Agent,
    AnyOrder,
    Either,
    InOrder,
    Parallel,
    Tool,
    optional,
    repeated,
    taking,
    tools,
    under,
)
from campaigns.learned_agents.values import (
    ByWay,
    City,
    Date,
    Email,
    Flag,
    Formed,
    Items,
    Members,
    Number,
    OneOf,
    Said,
    Sometimes,
    Sql,
    Text,
)

_ORDER: Final = Said("order", Formed("A-####"))
_TICKET: Final = Said("ticket", Formed("TCK-#####"))
_CUSTOMER: Final = Said("customer", Email())
_CURRENCY: Final = OneOf(("EUR",), ("USD", "eur"))
_FOUND: Final = Members({"count": Number(0, 40), "best": Text(3, 8)})

REFUND: Final = Agent(
    "refund-agent",
    tools(
        Tool("lookup_order", taking(order_id=_ORDER), Members({"amount": Said("amount", Number(5, 300, 2))}), 120),
        Tool(
            "check_policy",
            taking(order_id=_ORDER, reason=OneOf(("damaged", "late", "wrong_item"), ("bored", "DAMAGED"))),
            Members({"refund": Flag(1)}),
            80,
        ),
        Tool(
            "issue_refund",
            taking(order_id=_ORDER, amount=Said("amount", Number(5, 300, 2)), currency=_CURRENCY),
            takes_ms=400,
        ),
        Tool("notify_customer", taking(to=_CUSTOMER, text=Text(6, 20)), takes_ms=150),
    ),
    InOrder("lookup_order", "check_policy", "issue_refund", "notify_customer"),
)
"""A straight line."""

RAG: Final = Agent(
    "docs-assistant",
    tools(
        Tool("search_docs", taking(query=Text(2, 7), top_k=Number(3, 10)), _FOUND, 250),
        Tool("rerank", taking(query=Text(2, 7), ids=Items(Formed("doc-####"), 2, 6)), _FOUND, 180),
        Tool("cite_sources", taking(ids=Items(Formed("doc-####"), 1, 4), style=OneOf(("footnote",), ("apa",)))),
    ),
    InOrder(repeated("search_docs", most=3), "rerank", "cite_sources"),
)
"""One to three searches, then an answer."""

PARALLEL: Final = Agent(
    "trip-planner",
    tools(
        Tool("get_weather", taking(city=Said("city", City()), days=Number(1, 10)), _FOUND, 300),
        Tool("get_flights", taking(to=Said("city", City()), passengers=Number(1, 6), direct=Flag()), _FOUND, 900),
        Tool("get_hotels", taking(city=Said("city", City()), stars=Number(2, 5)), _FOUND, 700),
        Tool("merge_offers", taking(budget=Number(200, 4000), sort=OneOf(("price", "time"), ("stars",))), _FOUND),
        Tool("present_plan", taking(title=Text(2, 6)), takes_ms=60),
    ),
    InOrder(Parallel("get_weather", "get_flights", "get_hotels"), "merge_offers", "present_plan"),
)
"""Three fetches at once, then a merge."""

CODING: Final = Agent(
    "coding-agent",
    tools(
        Tool("read_issue", taking(number=Number(1, 9000)), Members({"title": Text()}), 150),
        Tool("open_file", taking(path=Formed("src/@@%%%.py"), line=Sometimes(Number(1, 800), 0.4)), _FOUND, 30),
        Tool("edit_file", taking(path=Formed("src/@@%%%.py"), patch=Text(5, 30)), takes_ms=40),
        Tool("run_tests", taking(suite=OneOf(("unit", "all"), ("none",))), _FOUND, 4000, fails_until_last=True),
        Tool("commit", taking(message=Text(3, 10), sign_off=Flag(0.8)), Members({"sha": Formed("%%%%%%%")}), 90),
    ),
    InOrder("read_issue", repeated("open_file", most=3), repeated("edit_file", "run_tests", most=4), "commit"),
)
"""Edits and tests until the tests are green: those before are errors."""

BOOKING: Final = Agent(
    "booking-agent",
    tools(
        Tool("search_trips", taking(to=City(), on=Date(), adults=Number(1, 5)), _FOUND, 800),
        Tool("apply_discount", taking(code=Formed("SAVE##"), percent=Number(5, 30))),
        Tool("pay_card", taking(token=Formed("tok_%%%%%%%%"), amount=Number(20, 900, 2)), takes_ms=1200),
        Tool("check_voucher", taking(code=Formed("V-@@##")), Members({"value": Number(10, 500)}), 90),
        Tool("redeem_voucher", taking(code=Formed("V-@@##"), amount=Number(20, 900, 2)), takes_ms=300),
        Tool("add_insurance", taking(plan=OneOf(("basic", "full"), ("gold",)))),
        Tool("confirm_booking", taking(email=_CUSTOMER, seat=OneOf(("aisle", "window"), ("roof",))), takes_ms=350),
    ),
    InOrder(
        "search_trips",
        optional("apply_discount"),
        Either("pay_card", InOrder("check_voucher", "redeem_voucher")),
        optional("add_insurance", share=0.4),
        "confirm_booking",
    ),
)
"""Optional steps, and a choice: card or voucher."""

RETRYING: Final = Agent(
    "payments-agent",
    tools(
        Tool("fetch_account", taking(iban=Formed("CH##############")), Members({"balance": Number(0, 9000, 2)}), 150),
        Tool(
            "transfer",
            taking(to=Formed("CH##############"), amount=Number(1, 2000, 2), currency=_CURRENCY),
            Members({"id": Formed("tx-%%%%%%")}),
            900,
            fails=0.3,
        ),
        Tool("write_ledger", taking(id=Formed("tx-%%%%%%"), memo=Text(1, 5)), takes_ms=100, fails=0.2),
        Tool("send_receipt", taking(to=Email()), takes_ms=150),
    ),
    InOrder("fetch_account", "transfer", "write_ledger", "send_receipt"),
)
"""Calls that time out, and are made again."""

DELEGATING: Final = Agent(
    "report-agent",
    tools(
        Tool("plan_report", taking(topic=Text(2, 5), sections=Number(2, 6)), takes_ms=100),
        Tool("ask_researcher", taking(question=Text(4, 12)), Members({"answer": Text(10, 30)}), is_delegation=True),
        *under(
            "researcher",
            Tool("search_web", taking(query=Text(2, 6), recent=Flag(0.3)), _FOUND, 500),
            Tool("read_source", taking(url=Formed("https://example.org/%%%%"), max_chars=Number(500, 8000)), _FOUND),
        ),
        Tool("write_report", taking(title=Text(2, 6), format=OneOf(("markdown", "html"), ("docx",))), takes_ms=300),
        Tool("send_report", taking(to=Items(Email(), 1, 3)), takes_ms=150),
    ),
    InOrder(
        "plan_report", "ask_researcher", repeated("search_web", most=3), "read_source", "write_report", "send_report"
    ),
)
"""An agent that asks another one."""

_SECTION: Final = Formed("S-##")

LONG: Final = Agent(
    "case-worker",
    tools(
        Tool("open_case", taking(case_id=Said("case", Formed("C-######"))), takes_ms=100),
        Tool("load_section", taking(case_id=Said("case", Formed("C-######")), section=_SECTION), _FOUND, 120),
        Tool("extract_fields", taking(section=_SECTION, fields=Items(Text(1, 2), 1, 5)), _FOUND, 300),
        Tool("validate_fields", taking(section=_SECTION, strict=Flag()), Members({"valid": Flag(1)}), 60),
        Tool("save_fields", taking(section=_SECTION, version=Number(1, 9)), takes_ms=80),
        Tool("reconcile_totals", taking(tolerance=Number(0.01, 0.5, 2))),
        Tool("compute_risk", taking(model=OneOf(("v2", "v3"), ("v9",))), Members({"risk": Number(0, 1, 3)}), 600),
        Tool("write_summary", taking(text=Text(10, 40), language=OneOf(("de", "en", "fr"), ("xx",)))),
        Tool("close_case", taking(case_id=Said("case", Formed("C-######")))),
    ),
    InOrder(
        "open_case",
        repeated("load_section", "extract_fields", "validate_fields", "save_fields", fewest=5, most=5),
        "reconcile_totals",
        "compute_risk",
        "write_summary",
        "close_case",
    ),
)
"""Twenty-five calls."""

DATA: Final = Agent(
    "data-analyst",
    tools(
        Tool("list_tables", taking(database=OneOf(("sales",), ("hr",))), Members({"tables": Items(Text(1, 1))}), 60),
        Tool("describe_table", taking(table=OneOf(("orders", "invoices", "refunds"), ("salaries",))), _FOUND, 50),
        Tool(
            "run_query",
            taking(
                sql=Sql(),
                params=Members(
                    {
                        "since": Date(),
                        "regions": Items(OneOf(("north", "south", "west"), ("moon",)), 1, 3),
                        "page": Members({"size": Number(10, 200), "number": Sometimes(Number(1, 9))}),
                    }
                ),
                timeout_s=Sometimes(Number(5, 60)),
                dry_run=Flag(0.2),
            ),
            Members({"rows": Number(0, 5000)}),
            1500,
        ),
        Tool(
            "export_rows",
            taking(
                format=OneOf(("csv", "parquet", "xlsx"), ("exe",)),
                recipients=Items(Email(), 1, 4),
                job=Formed("%%%%%%%%-%%%%-4%%%-a%%%-%%%%%%%%%%%%"),
                scheduled_at=Date(time=True),
                notes=Sometimes(Text(2, 10)),
            ),
            takes_ms=400,
        ),
    ),
    InOrder("list_tables", repeated("describe_table", most=3), "run_query", "export_rows"),
)
"""Arguments of all kinds: queries, dates, ids, addresses, enumerations, objects, arrays, some of them optional."""

VARYING: Final = Agent(
    "incident-agent",
    tools(
        Tool("open_ticket", taking(severity=OneOf(("low", "medium", "high"), ("apocalyptic",)), title=Text()), _FOUND),
        Tool("fetch_logs", taking(service=Formed("svc-@@"), minutes=Number(5, 120)), _FOUND, 700),
        Tool("check_metrics", taking(query=Text(1, 4), step_s=Number(10, 60)), _FOUND, 300),
        Tool("diagnose", taking(summary=Text(5, 20)), Members({"cause": Text()}), 100),
        Tool("post_update", taking(channel=OneOf(("#ops", "#oncall"), ("#random",)), text=Text(5, 20)), takes_ms=150),
    ),
    InOrder("open_ticket", AnyOrder("fetch_logs", "check_metrics"), "diagnose", "post_update"),
)
"""Two steps that do not need each other, in either order."""

_CATEGORY: Final = ByWay(
    ("billing", "outage", "access"), ("legal", "other"), ("find_invoice", "read_status", "find_user")
)

TRIAGE: Final = Agent(
    "triage-agent",
    tools(
        Tool("classify_ticket", taking(ticket=_TICKET, text=Text(5, 25), category=_CATEGORY), takes_ms=200),
        Tool("find_invoice", taking(ticket=_TICKET, number=Formed("INV-####")), _FOUND),
        Tool("issue_credit", taking(number=Formed("INV-####"), amount=Number(1, 150, 2)), takes_ms=350),
        Tool("read_status", taking(service=Formed("svc-@@")), _FOUND),
        Tool("restart_service", taking(service=Formed("svc-@@"), grace_s=Number(1, 30)), takes_ms=2500),
        Tool("find_user", taking(email=_CUSTOMER), _FOUND),
        Tool("reset_password", taking(email=_CUSTOMER, notify=Flag(0.9)), takes_ms=250),
        Tool("close_ticket", taking(ticket=_TICKET, solved=Flag(0.9))),
    ),
    InOrder(
        "classify_ticket",
        Either(
            InOrder("find_invoice", "issue_credit"),
            InOrder("read_status", "restart_service"),
            InOrder("find_user", "reset_password"),
        ),
        "close_ticket",
    ),
)
"""One of three ways, by a category."""

DELIVERY: Final = Agent(
    "delivery-agent",
    tools(
        Tool("geocode", taking(city=City(), country=OneOf(("CH", "DE", "FR", "IT"), ("ZZ",))), _FOUND, 90),
        Tool(
            "quote_shipping",
            taking(
                weight_kg=Number(0.1, 30, 1),
                size_cm=Members({"x": Number(5, 120), "y": Number(5, 120), "z": Number(5, 80)}),
                express=Flag(0.3),
                note=Sometimes(Text()),
            ),
            Members({"price": Number(4, 90, 2)}),
            350,
        ),
        Tool("file_customs", taking(hs_code=Formed("####.##"), value=Number(1, 5000)), takes_ms=700),
        Tool("book_pickup", taking(on=Date(), window=OneOf(("morning", "afternoon"), ("midnight",))), takes_ms=300),
    ),
    InOrder("geocode", "quote_shipping", optional("file_customs", share=0.4), "book_pickup"),
)
"""Cities that are no closed list, sizes as an object, an optional step."""

HOME: Final = Agent(
    "home-agent",
    tools(
        Tool("list_devices", takes_ms=40),
        Tool("read_sensors", taking(room=OneOf(("kitchen", "bath", "office"), ("moon",))), _FOUND, 60),
        Tool("set_heating", taking(room=OneOf(("kitchen", "bath", "office"), ("moon",)), offset=Number(-5, 5, 1))),
        Tool("set_light", taking(room=OneOf(("kitchen", "bath", "office"), ("moon",)), level=Number(0, 100))),
        Tool("save_scene", taking(name=Text(1, 3)), takes_ms=40),
    ),
    InOrder(
        "list_devices",
        repeated("read_sensors", most=2),
        Either(InOrder("set_heating", optional("set_light")), "set_light"),
        "save_scene",
    ),
)
"""A tool without arguments, numbers below zero, and one thing or another or both."""

AGENTS: Final = (
    REFUND,
    RAG,
    PARALLEL,
    CODING,
    BOOKING,
    RETRYING,
    DELEGATING,
    LONG,
    DATA,
    VARYING,
    TRIAGE,
    DELIVERY,
    HOME,
)
