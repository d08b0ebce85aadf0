"""A captured stream: whose it is, what is read of it, what is safe, and that nothing is kept."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.streams import Dispatched, Ending, Protocol, read_stream
from effects.core.vocabulary import Role, Terminal
from effects.models import AuditEntry
from ledger.capture.judging import judged
from ledger.capture.reading import CAPTURE_BYTES_MAX, CaptureFault, Form, guess, read_capture
from ledger.models import Call, IngestItem, Stream
from ledger.queries import clock
from tests.effects.streams.wire import (
    CHAT_END,
    a_payment,
    chunk,
    item,
    message_end,
    message_start,
    part,
    piece,
    response,
    sse,
    tool_block,
)
from tests.support import desk

CUT = sse(*a_payment('{"amount":', "14900}"), tool_block(1, "toolu_x", "mail"), piece(1, '{"to'))
WHOLE = sse(*a_payment('{"amount": 1}'), *message_end())
CHAT = sse(chunk(part(0, "call_1", "pay", '{"amount": 10000000000000001}')), *CHAT_END)


def read(body: bytes, protocol: Protocol | None = None, ending: Ending = Ending.CLEAN) -> Any:
    return read_capture(body, protocol, ending)


@pytest.mark.parametrize(
    ("body", "protocol"),
    [
        (CUT, Protocol.ANTHROPIC),
        (sse({"type": "error", "error": {"type": "overloaded_error"}}), Protocol.ANTHROPIC),
        (CHAT, Protocol.OPENAI_CHAT),
        (sse({"error": {"message": "no"}}), Protocol.OPENAI_CHAT),
        (b"data: [DONE]\n\n", Protocol.OPENAI_CHAT),
        (sse(response("created", 0), item("added", 1)), Protocol.OPENAI_RESPONSES),
        (sse({"type": "error", "sequence_number": 3, "code": "x"}), Protocol.OPENAI_RESPONSES),
        (sse({"hello": 1}), None),
        (b"HTTP/1.1 502 Bad Gateway\n\n<html>", None),
        (b"data: [[[[\n\n", None),
    ],
)
def test_whose_protocol_it_is_is_found_out_or_not_said(body, protocol):
    if protocol is not None:
        found = read(body)
        assert (found.protocol, found.guessed) == (protocol, True)
    else:
        with pytest.raises(CaptureFault, match="whose protocol"):
            read(body)
    chosen = read(body, Protocol.OPENAI_CHAT)
    assert (chosen.protocol, chosen.guessed) == (Protocol.OPENAI_CHAT, False)


@pytest.mark.parametrize("body", [CUT, WHOLE, CHAT], ids=["cut", "whole", "chat"])
def test_a_capture_is_read_as_the_client_reads_the_stream(body):
    found = read(body)
    straight = read_stream(found.protocol, body)
    assert (found.record.terminal, found.record.calls) == (straight.terminal, straight.calls)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_whatever_is_pasted_is_read_or_refused_in_words(body):
    if body.strip() and not body.lstrip().startswith(b"["):
        assert read(body, Protocol.ANTHROPIC).record.terminal is Terminal.CUT
    else:
        with contextlib.suppress(CaptureFault):
            read(body, Protocol.ANTHROPIC)


def test_events_as_lines_or_as_one_list_are_read_like_the_bytes_with_every_digit():
    events = [chunk(part(0, "call_1", "pay", {"amount": 1})), chunk(reason="tool_calls")]
    lines = "\n".join(json.dumps(event) for event in events)
    big = "12345678901234567891"
    lines = lines.replace('"amount": 1', f'"amount": {big}')
    as_list = f"[{lines.replace(chr(10), ',')}]"
    for text in (lines, as_list):
        found = read(text.encode())
        assert found.form is Form.NDJSON
        assert found.record.terminal is Terminal.SUCCESS
        assert big in found.record.calls[0].raw
        assert "done_marker" in found.record.unseen


def test_a_list_that_is_none_says_so():
    with pytest.raises(CaptureFault, match="JSON list"):
        read(b'[{"a": ')


def test_the_limit_is_named_and_so_are_bytes_that_are_no_text():
    with pytest.raises(CaptureFault, match=r"10000001 bytes.*CAPTURE_BYTES_MAX is 10000000"):
        read(b"x" * (CAPTURE_BYTES_MAX + 1))
    with pytest.raises(CaptureFault, match="empty"):
        read(b" \n ")
    found = read(CUT.replace(b'{\\"to', b'{\\"to\xff\xfe'))
    assert found.undecodable == 2


def test_where_each_call_stands_is_told_by_the_numbers_of_events():
    spans = [(span.began, span.ended) for span in read(CUT).spans]
    assert spans == [(2, 5), (6, 0)]


@pytest.mark.parametrize(
    ("body", "dispatched", "place", "step"),
    [
        (sse(message_start()), {}, "nothing_announced", "preserve_partial_result_and_report"),
        (CUT, {}, "arguments_streaming", "preserve_partial_result_and_report"),
        (CUT, {0: Dispatched.IN_FLIGHT}, "outstanding", "reconcile_tool_operation"),
        (CUT, {0: Dispatched.RETURNED}, "returned", "preserve_partial_result_and_report"),
        (WHOLE, {}, "ended", "preserve_partial_result_and_report"),
    ],
)
@pytest.mark.django_db
def test_what_is_safe_hangs_on_what_had_been_dispatched(body, dispatched, place, step):
    answer = judged(read(body), dispatched, clock())
    assert answer.death.where.name.lower() == place
    assert str(answer.decision.step) == step


# The page


@pytest.fixture
def engineer(client: Client, shop: Any) -> Client:
    client.force_login(desk.a_person(shop, Role.ENGINEER))
    return client


def upload(body: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("capture.txt", body)


def carried(page: str) -> str:
    found = re.search(r'name="carried" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.mark.case("U05")
def test_a_capture_is_shown_as_text_and_nothing_of_it_is_stored(engineer):
    evil = "<script>alert(1)</script>\u202e"
    body = sse(*a_payment('{"a": "'), tool_block(1, evil, evil), piece(1, f'{{"a": "{evil}'))
    page = engineer.post("/turns/read/", {"text": body.decode()}).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]" in page
    assert (IngestItem.objects.count(), Stream.objects.count(), AuditEntry.objects.count()) == (
        0, 0, 0,
    )  # fmt: skip


def test_the_answer_changes_with_what_was_dispatched_and_the_bytes_are_carried_on(engineer):
    body = CUT.replace(b'{\\"to', b'{\\"to\xff')
    page = engineer.post("/turns/read/", {"file": upload(body)}).content.decode()
    assert "A call was announced and nothing was dispatched" in page
    assert "1 byte of it is no UTF-8" in page
    again = {"carried": carried(page), "dispatched-0": "in_flight"}
    page = engineer.post("/turns/read/", again).content.decode()
    assert "A call was dispatched and has not returned" in page
    assert "1 byte of it is no UTF-8" in page, "every byte came along"


@pytest.mark.parametrize(
    ("form", "status", "says"),
    [
        ({"text": ""}, 422, "The capture is empty."),
        ({"text": "data: {}\n\n"}, 422, "Choose the provider"),
        ({"text": "x" * 2_700_000}, 413, "choose that: a file may have 10 MB"),
        ({"file": upload(b"x" * 10_100_000)}, 422, "CAPTURE_BYTES_MAX is 10000000"),
        ({"file": upload(b"x" * 10_300_000)}, 413, "CAPTURE_BYTES_MAX is 10000000"),
        ({"carried": "no base64"}, 422, "The capture is empty."),
    ],
    ids=["empty", "nobody's", "long paste", "large file", "larger file", "damaged"],
)
def test_what_cannot_be_read_is_refused_with_the_limit_named(engineer, form, status, says):
    answer = engineer.post("/turns/read/", form)
    assert answer.status_code == status
    assert says in answer.content.decode()


def test_what_was_typed_is_kept_when_it_is_refused(engineer):
    page = engineer.post("/turns/read/", {"text": "data: {}\n\n# mine"}).content.decode()
    assert "# mine</textarea>" in page


def test_a_form_of_another_site_is_refused(shop):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(desk.a_person(shop, Role.ENGINEER))
    assert strict.post("/turns/read/", {"text": CUT.decode()}).status_code == 403


KEEP = {"conversation": "conv/1", "turn": "4", "keep": "1"}


def test_it_is_kept_with_a_turn_through_the_one_door_and_only_once(engineer, shop):
    body = {"text": CUT.decode()}
    answer = engineer.post("/turns/read/", {**body, **KEEP})
    assert answer.status_code == 302
    stream = Stream.objects.get()
    assert (stream.conversation, stream.turn_index, stream.terminal) == ("conv/1", 4, "cut")
    calls = list(Call.objects.order_by("position").values_list("tool", "complete"))
    assert calls == [("pay", True), ("mail", False)]
    assert IngestItem.objects.get().state == "applied"
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.workspace_id) == ("capture.kept", shop.pk)
    assert (entry.after or {})["sha256"] == read(CUT).digest
    page = engineer.get(answer["Location"]).content.decode()
    assert "the connection ended without a last event" in page

    engineer.post("/turns/read/", {**body, **KEEP})
    assert (Stream.objects.count(), AuditEntry.objects.count()) == (1, 1)
    engineer.post("/turns/read/", {**body, **KEEP, "turn": "5"})
    assert Stream.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"conversation": " "}, "Name the conversation"),
        ({"turn": "x"}, "Give the number of the turn"),
        ({"turn": "-1"}, "Give the number of the turn"),
        ({"conversation": "a\x00b"}, "No turn can have this name"),
    ],
)
def test_a_turn_that_cannot_be_is_refused_with_what_was_typed_kept(engineer, changes, says):
    answer = engineer.post("/turns/read/", {"text": CUT.decode(), **KEEP, **changes})
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert Stream.objects.count() == 0


def test_a_record_that_the_door_does_not_take_leaves_nothing(engineer):
    body = sse(*a_payment('{"a": "' + "x" * 2_100_000 + '"}'))
    answer = engineer.post("/turns/read/", {"file": upload(body), **KEEP})
    assert answer.status_code == 422
    assert "ITEM_BYTES_MAX is 2097152" in answer.content.decode()
    assert (IngestItem.objects.count(), AuditEntry.objects.count()) == (0, 0)


def test_whoever_may_not_write_to_the_record_is_told_who_may(client, shop):
    client.force_login(desk.a_person(shop, Role.SUPPORT))
    page = client.post("/turns/read/", {"text": CUT.decode()}).content.decode()
    assert "Needs the role Engineer or Admin." in page
    assert client.post("/turns/read/", {"text": CUT.decode(), **KEEP}).status_code == 403
    assert Stream.objects.count() == 0


def test_a_guess_is_made_of_the_first_events_alone():
    noise = [b": keep-alive\n\n"] * 300
    assert guess([*noise, CUT]) is None
