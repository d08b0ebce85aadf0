"""A background response that was cut is read on: no second generation, nothing applied twice."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import openai
import pytest

from effects.client import Call, Ledger, ToolCall, effect
from effects.core.recovery import ENDPOINTS, RecoveryRecord
from effects.core.recovery_messages import RecoveryStep
from effects.core.streams import Protocol, StreamReader, StreamRecord, unapplied
from effects.core.vocabulary import EffectClass, Terminal
from effects.models import Tool, Workspace
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.client.ways import token_of
from tests.effects.faulty_server import FaultyServer, faulty, read_request
from tests.effects.streams.wire import arguments, item, response, sse

EVENTS = (
    response("created", 0),
    item("added", 1),
    arguments("delta", 2, '{"amount":'),
    arguments("delta", 3, "4200}"),
    item("done", 4, arguments='{"amount":4200}', status="completed"),
    response("completed", 5),
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@dataclass
class Endpoint:
    """It keeps one background response. A reader that resumes is given `overlap` events again."""

    cut_after: int
    overlap: int = 0
    url: str = ""
    generations: int = 0
    resumed_after: list[int] = field(default_factory=list)

    def serve(self, _server: FaultyServer, connection: socket.socket) -> None:
        method, target, _ = read_request(connection).split(b"\r\n", 1)[0].decode().split(" ")
        if method == "POST":
            self.generations += 1
            connection.sendall(HEAD + sse(*EVENTS[: self.cut_after + 1]))
            return
        after = int(parse_qs(urlsplit(target).query)["starting_after"][0])
        self.resumed_after.append(after)
        connection.sendall(HEAD + sse(*EVENTS[max(0, after + 1 - self.overlap) :]))

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key="none", max_retries=0)

    def begun(self) -> Iterator[Any]:
        """The events of a new background response, as the SDK hands them out."""
        made = self.client().responses
        yield from made.create(model="m", input="Pay.", background=True, stream=True, store=True)

    def resumed(self, response_id: str, cursor: int) -> Iterator[Any]:
        made = self.client().responses
        yield from made.retrieve(response_id, stream=True, starting_after=cursor)


@dataclass
class Consumer:
    """Keeps each event together with what it did. It may be stopped in between."""

    kept: list[Any] = field(default_factory=list)
    cursor: int | None = None
    at: datetime | None = None

    def consume(self, events: Iterator[Any], *, stops_at: int = -1, act: Any = None) -> None:
        for number, event in unapplied(events, self.cursor):
            if act is not None:
                act(event)
            if number == stops_at:
                return  # What was done for it is not kept: the process is gone.
            self.kept.append(event)
            self.cursor, self.at = number, datetime.now(UTC)

    def record(self) -> StreamRecord:
        reader = StreamReader(Protocol.OPENAI_RESPONSES, from_events=True)
        for event in self.kept:
            reader.feed_event(event)
        return reader.close()

    def known(self) -> RecoveryRecord:
        return RecoveryRecord(
            background=True, stored=True, cursor=self.cursor, last_event_at=self.at
        )


@pytest.fixture
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    made = Endpoint(cut_after=getattr(request, "param", 4), overlap=2)
    with faulty(made.serve) as server:
        made.url = f"{server.url}/v1"
        yield made


@pytest.mark.parametrize("endpoint", range(5), indirect=True, ids="cut after {}".format)
def test_a_cut_response_is_read_on_after_what_was_applied(endpoint: Endpoint) -> None:
    consumer, ledger = Consumer(), Ledger("http://127.0.0.1:9", "a-token")
    # It has read the last event that came, and stopped before that was applied.
    consumer.consume(endpoint.begun(), stops_at=endpoint.cut_after or -1)
    decision = ledger.recover(
        consumer.record(), known=consumer.known(), contract=ENDPOINTS[Protocol.OPENAI_RESPONSES]
    )
    assert decision.step is RecoveryStep.RESUME
    assert decision.operation_id is not None
    assert decision.cursor == consumer.cursor == max(endpoint.cut_after - 1, 0)

    consumer.consume(endpoint.resumed(decision.operation_id, decision.cursor))
    record = consumer.record()
    assert [event.sequence_number for event in consumer.kept] == list(range(6))
    assert (record.terminal, record.gaps, record.repeated_events) == (Terminal.SUCCESS, (), 0)
    assert record.calls[0].arguments == '{"amount":4200}'
    assert endpoint.generations == 1, "a read is no second generation"


def test_a_tool_that_ran_before_its_event_was_kept_runs_once(
    endpoint: Endpoint, live_api: str, db: None
) -> None:
    shop = Workspace.objects.create(name="Shop", slug="shop", created_at=datetime.now(UTC))
    write = EffectClass.KEYED_WRITE
    Tool.objects.create(workspace=shop, name="pay", effect_class=write, window_seconds=86_400)
    paid: list[int] = []
    with Ledger(live_api, token_of(shop), patience=QUICK) as ledger:

        @effect(ledger, effect_class=write)
        def pay(call: Call, *, amount: int) -> dict[str, int]:
            paid.append(amount)
            return {"paid": amount}

        told: list[Any] = []

        def act(event: Any) -> None:
            if event.type == "response.output_item.done":
                at = ToolCall(
                    conversation="c-1",
                    turn_index=1,
                    response_id="resp_1",
                    call_id=event.item.call_id,
                )
                told.append(pay.run(at, event.item.arguments))

        consumer = Consumer()
        consumer.consume(endpoint.begun(), stops_at=4, act=act)
        assert (paid, consumer.cursor) == ([4200], 3)

        consumer.consume(endpoint.resumed("resp_1", 3), act=act)
    assert consumer.cursor == 5
    assert paid == [4200], "the event came again, and the effect did not"
    assert [effect.status for effect in told] == ["completed", "completed"]
    assert told[1].result == {"paid": 4200}
