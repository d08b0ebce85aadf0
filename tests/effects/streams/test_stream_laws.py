"""Laws of reading a response: chunks never matter, a cut finishes nothing, nothing breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.streams import Protocol, StreamReader, read_stream
from effects.core.vocabulary import Terminal
from tests.effects.streams.wire import (
    CALL_ID,
    CHAT_END,
    a_payment,
    arguments,
    chunk,
    item,
    message_end,
    part,
    response,
    sse,
)

ANTHROPIC, CHAT, RESPONSES = Protocol

WHOLE = {
    ANTHROPIC: sse(*a_payment('{"invoice":"I-3",', '"amount":4200}'), *message_end()),
    CHAT: sse(
        chunk(part(0, CALL_ID, "pay", '{"amount":')), chunk(part(0, None, None, "4200}")), *CHAT_END
    ),
    RESPONSES: sse(
        response("created", 0),
        item("added", 1),
        arguments("delta", 2, '{"amount":4200}'),
        item("done", 3, arguments='{"amount":4200}', status="completed"),
        response("completed", 4),
    ),
}


@given(st.sampled_from(Protocol), st.data())
def test_chunks_never_change_a_record(protocol, data):
    body = WHOLE[protocol]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=12)))
    reader = StreamReader(protocol)
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        reader.feed(body[start:end])
    assert reader.close() == read_stream(protocol, body)


@pytest.mark.parametrize("protocol", Protocol)
def test_wherever_a_stream_is_cut_nothing_is_dispatched_that_did_not_end_whole(protocol):
    body = WHOLE[protocol]
    whole = read_stream(protocol, body).calls[0].raw
    finished = []
    for cut in range(len(body)):
        record = read_stream(protocol, body[:cut])
        assert all(call.raw == whole for call in record.calls if call.dispatchable)
        if record.terminal is not Terminal.CUT:
            finished.append(len(body) - cut)
    # The last event is whole in itself, whether or not its blank line arrived.
    assert finished == [2, 1]


@given(st.sampled_from(Protocol), st.binary(max_size=300))
def test_no_bytes_break_the_reader(protocol, noise):
    for body in (noise, b"data: " + noise + b"\n\n", WHOLE[protocol][:200] + noise):
        assert read_stream(protocol, body).terminal
