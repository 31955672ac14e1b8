from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from serving import DEADLINE_S, loop_thread
from spanscore.receivers.sockets.listening import Address
from spanscore.service.pages import Pages


@contextmanager
def pages_served(
    metrics: Callable[[str | None], tuple[str, bytes]] = lambda _: ("", b""),
    listening_on: str = "127.0.0.1",
    **how: Any,
) -> Iterator[Address]:
    """Serve pages, and return where to ask for them."""
    with loop_thread() as thread:
        pages = thread.call(lambda: Pages(metrics, lambda: {"otlp": "ok", "storage": "full"}, **how))
        (address,) = thread.call(lambda: pages.listen([Address(listening_on, 0)], "key"))
        thread.run(pages.start())
        try:
            yield Address("127.0.0.1", address.port)
        finally:
            thread.run(pages.stop(1))


def asked(
    metrics: Callable[[str | None], tuple[str, bytes]],
    *requests: tuple[str, str],
    listening_on: str = "127.0.0.1",
    **headers: str,
) -> list[tuple[int, str | None, bytes]]:
    """Serve pages and return the status, the content type and the body of each answer."""
    answers = []
    with (
        pages_served(metrics, listening_on, names=["metrics.example"]) as address,
        closing(http.client.HTTPConnection(*address, timeout=DEADLINE_S)) as connection,
    ):
        for method, path in requests:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            answers.append((answer.status, answer.getheader("Content-Type"), answer.read()))
    return answers


def test_the_metrics_page_is_made_for_the_accept_header() -> None:
    """The page is what is made of the request's Accept header."""
    (answer,) = asked(lambda accept: ("text/x", f"for {accept}".encode()), ("GET", "/metrics"), Accept="text/x")

    assert (200, "text/x", b"for text/x") == answer


def test_it_is_ready_when_everything_is() -> None:
    """One thing that is not right is told, and is enough."""
    (answer,) = asked(lambda _: ("", b""), ("GET", "/readyz"))

    assert (503, "application/json", {"otlp": "ok", "storage": "full"}) == (*answer[:2], json.loads(answer[2]))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9464", 200),
        ("127.0.0.1:1", 200),
        ("127.1.2.3", 200),
        ("[::1]:9464", 200),
        ("[::1]", 200),
        ("metrics.example:9464", 200),
        ("evil.example", 421),
        ("localhost.evil.example:9464", 421),
        ("192.0.2.1", 421),
        ("localhost:9464:1", 421),
        ("", 421),
    ],
)
def test_pages_of_loopback_are_for_those_who_ask_for_it(host: str, status: int) -> None:
    """A web page whose name leads here cannot have a browser read the pages; addresses and configured names do."""
    told = [asked(lambda _: ("", b""), ("GET", path), Host=host)[0][0] for path in ("/metrics", "/livez")]

    assert [status, status] == told


def test_where_others_can_ask_every_name_will_do() -> None:
    """By which names other machines reach it nobody has told."""
    (answer,) = asked(lambda _: ("", b""), ("GET", "/livez"), listening_on="0.0.0.0", Host="metrics.cluster.example")

    assert 200 == answer[0]


def test_other_methods_and_paths() -> None:
    """Pages can be looked at, and nothing else."""
    requests = [("HEAD", "/livez"), ("POST", "/livez"), ("GET", "/config")]
    answers = asked(lambda _: ("", b""), *requests)

    assert [(200, b""), (405, b"the method must be GET\n")] == [(answer[0], answer[2]) for answer in answers[:2]]
    assert 404 == answers[2][0]


def test_a_page_that_cannot_be_made_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """The other pages go on, and the log says why."""

    def broken(_accept: str | None) -> tuple[str, bytes]:
        raise RuntimeError

    answers = asked(broken, ("GET", "/metrics"), ("GET", "/livez"))

    assert [500, 200] == [answer[0] for answer in answers]
    assert ["the page /metrics could not be made"] == caplog.messages
