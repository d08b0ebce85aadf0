"""An agent with OpenTelemetry and nothing else, through the real door for agents."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from effects.core.vocabulary import ClaimState, Role, TokenScope
from ledger import auth
from ledger.models import Claim, Event
from reconcile import listing
from reconcile.views.filters import Filters
from tests.ledger.otlp import JSON, PROTOBUF, Sent, as_json, of_a_tool, protobuf, send, told
from tests.support import desk
from tests.support.agents import Agent, through

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def a_provider() -> Iterator[int]:
    """Answers the first request, and cuts the line after it has read the second. Its port."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for said in (answer, b""):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(said)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(timeout=5)


def traced(number: int, port: int, charge: str) -> Sent:
    """Runs the tool as an instrumentation does: a span that ends whatever happens, and says of an
    exception what it is."""
    call = {
        "gen_ai.tool.call.id": f"call_{charge:a>20}",
        "gen_ai.tool.call.arguments": {"charge": charge},
    }
    began = time.time_ns()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/refunds", json.dumps({"charge": charge}))
        result = connection.getresponse().read().decode()
    except OSError as error:
        kind = type(error).__qualname__
        thrown = {"exception.type": kind, "exception.message": str(error)}
        failed = of_a_tool(number, said={**call, "error.type": kind}, status=2)
        event = {"name": "exception", "attributes": thrown}
        span = replace(failed, message=f"{kind}: {error}", events=(event,))
    else:
        span = of_a_tool(number, said={**call, "gen_ai.tool.call.result": result})
    finally:
        connection.close()
    return replace(span, start=began, end=time.time_ns())


@pytest.fixture
def exporter(live_api, shop, refund):
    _, plain = auth.issue(shop, "exporter", (TokenScope.INGEST,), user=None)
    return Agent(token=plain, send=through(live_api))


def rows():
    claims = Claim.objects.order_by("id").values_list("id", "version", "state")
    return list(claims), Event.objects.count()


def test_its_calls_are_in_the_queue_and_on_their_conversations_page(exporter, client, shop):
    with a_provider() as port:
        spans = [traced(1, port, "ch_1"), traced(2, port, "ch_2")]
    packed = {"Content-Encoding": "gzip"}
    answer = send(exporter, gzip.compress(protobuf(spans)), **packed)
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, PROTOBUF, b"")

    (row,) = listing.queue_page(shop.pk, Filters()).rows
    lost = Claim.objects.get(pk=row.claim_id)
    assert (row.state, lost.arguments) == (ClaimState.UNKNOWN, '{"charge":"ch_2"}')
    assert row.ended.startswith("RemoteDisconnected"), "the words of its own exception"
    done = Claim.objects.exclude(pk=lost.pk).get()
    assert (done.state, done.result) == (ClaimState.COMPLETED, "{}")

    client.force_login(desk.a_person(shop, Role.ENGINEER))
    call = client.get(f"/calls/{lost.pk}").content.decode()
    assert "by a span of its tool" in call
    assert "was not asked." in client.get(f"/calls/{done.pk}").content.decode()
    link = call.split('Seen in <a href="')[1].split('"')[0].replace("&amp;", "&")
    page = client.get(link).content.decode()
    for words in (
        "Calls without a turn",
        "attempt 0000000000000001: the tool&#x27;s code returned",
        "attempt 0000000000000002: outcome unknown",
        "no provider was asked",
    ):
        assert words in page
    assert "the provider answered" not in page
    index = client.get("/turns/", {"conversation": "conversation-1"}).content.decode()
    assert link.replace("&", "&amp;") in index

    before = rows()
    random.Random(1).shuffle(spans)
    again = [*reversed(spans), *spans]
    assert told(send(exporter, gzip.compress(as_json(again)), JSON, **packed), JSON) == (0, "")
    assert told(send(exporter, protobuf(spans)), PROTOBUF) == (0, "")
    assert rows() == before


def test_a_body_that_is_compressed_while_it_is_sent_has_no_length_and_is_read(exporter, live_api):
    packed = gzip.compress(protobuf([of_a_tool()]))
    address = urlsplit(live_api)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    headers = {
        "Authorization": f"Bearer {exporter.token}",
        "Content-Type": PROTOBUF,
        "Content-Encoding": "gzip",
    }
    connection.request("POST", "/v1/traces", iter([packed[:20], packed[20:]]), headers)
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    connection.close()
    assert Claim.objects.count() == 1


def test_the_door_survives_a_body_that_is_nested_as_deep_as_it_is_long(exporter):
    for deep in (b"[", b'{"resourceSpans":', b'{"a":['):
        assert send(exporter, deep * 500_000, JSON).status == 400
        assert send(exporter, b"{}", JSON).status == 200


def test_an_empty_request_is_a_success(exporter):
    answer = send(exporter, b"")
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, PROTOBUF, b"")
