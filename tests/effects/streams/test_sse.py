"""Server-sent events: the standard's framing, whatever the chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.streams import sse
from effects.core.streams.sse import SseDecoder, SseEvent


def decoded(*chunks: bytes) -> list[tuple[str, str]]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    rest = decoder.close()
    return [(event.name, event.data) for event in [*events, *([rest] if rest else [])]]


@pytest.mark.parametrize(
    ("body", "events"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", [("", "a"), ("", "b")], id="lines end in LF"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\r", [("", "a"), ("", "b")], id="CRLF and CR mixed"),
        pytest.param(b"data:a\n\n", [("", "a")], id="no space after the colon"),
        pytest.param(b"data:  a\n\n", [("", " a")], id="only one space is taken away"),
        pytest.param(b"data: a\ndata: b\n\n", [("", "a\nb")], id="two data lines"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [("", "a")], id="byte order mark"),
        pytest.param(b": hello\n\ndata: a\n\n", [("", "a")], id="comment"),
        pytest.param(b"event: ping\ndata\n\n", [("ping", "")], id="a field without a colon"),
        pytest.param(b"event: ping\n\ndata: a\n\n", [("", "a")], id="an event without data"),
        pytest.param(b"retry: 5\nunknown: x\ndata: a\n\n", [("", "a")], id="other fields"),
        pytest.param(
            "data: a\u2028b\x85c\x0bd\n\n".encode(), [("", "a\u2028b\x85c\x0bd")], id="U+2028"
        ),
        pytest.param(b"data: a\n\ndata: b", [("", "a"), ("", "b")], id="no blank line at the end"),
    ],
)
def test_events_are_framed_as_the_standard_says_however_they_are_cut(body, events):
    assert decoded(body) == events
    assert decoded(*(body[i : i + 1] for i in range(len(body)))) == events
    for cut in range(len(body)):
        assert decoded(body[:cut], body[cut:]) == events


@given(
    st.lists(st.sampled_from(["data: x", "data: é\U0001f642", "event: e", ": c", "", "id: 7"])),
    st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_chunks_never_change_what_is_read(lines, ends, sizes):
    body = "".join(line + ends[i % len(ends)] for i, line in enumerate(lines)).encode()
    chunks: list[bytes] = []
    at = 0
    while at < len(body):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(body[at : at + size])
        at += size
    assert decoded(*chunks) == decoded(body)


def test_what_ended_without_its_blank_line_says_so():
    decoder = SseDecoder()
    assert list(decoder.feed(b"id: 9\nevent: e\ndata: half")) == []
    assert decoder.close() == SseEvent(name="e", data="half", id="9", unfinished=True)


def test_bytes_that_are_no_text_are_damaged_and_never_replaced():
    (event,) = SseDecoder().feed(b"data: a\xff\n\n")
    assert event.damaged
    assert "\N{REPLACEMENT CHARACTER}" not in event.data


def test_an_event_above_the_limit_is_read_on_and_marked(monkeypatch):
    monkeypatch.setattr(sse, "EVENT_BYTES_MAX", 10)
    first, second = SseDecoder().feed(b"data: 0123\ndata: 456789\n\ndata: x\n\n")
    assert first.damaged
    assert (second.damaged, second.data) == (False, "x")
