"""What is known of a response where its stream ended: three protocols, whole and broken."""

import json

import pytest

from effects.core.streams import (
    ArgumentsState,
    Dispatched,
    Ending,
    NotDispatchable,
    Protocol,
    StreamFlag,
    StreamReader,
    read_stream,
)
from effects.core.streams.record import Advice, Where
from effects.core.vocabulary import Terminal
from tests.effects.streams.wire import (
    CALL_ID,
    CHAT_END,
    OTHER_ID,
    a_payment,
    arguments,
    block_stop,
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

S = ArgumentsState
ANTHROPIC, CHAT, RESPONSES = Protocol


def read(protocol, *events, ending=Ending.CLEAN):
    return read_stream(protocol, sse(*events), ending)


def calls(record):
    return [
        (call.name, call.call_id, call.state, call.raw, call.dispatchable) for call in record.calls
    ]


# The end of the message


@pytest.mark.parametrize(
    ("protocol", "events", "terminal", "reason"),
    [
        pytest.param(ANTHROPIC, [*a_payment("{}"), *message_end()], "SUCCESS", "tool_use", id="a"),
        pytest.param(
            ANTHROPIC,
            [*a_payment("{}"), message_end()[0]],
            "CUT",
            None,
            id="a stop reason is no end",
        ),
        pytest.param(
            ANTHROPIC,
            [*a_payment("{}"), *message_end("max_tokens")],
            "INCOMPLETE",
            "max_tokens",
            id="b",
        ),
        pytest.param(
            ANTHROPIC,
            [message_start(), *message_end("refusal")],
            "INCOMPLETE",
            "refusal",
            id="refusal",
        ),
        pytest.param(
            CHAT,
            [chunk(part(0, CALL_ID, "pay", "{}")), *CHAT_END],
            "SUCCESS",
            "tool_calls",
            id="c",
        ),
        pytest.param(
            CHAT,
            [chunk(part(0, CALL_ID, "pay", "{}")), CHAT_END[0]],
            "CUT",
            None,
            id="no done marker",
        ),
        pytest.param(
            CHAT, [chunk(part(0, CALL_ID, "pay", "{}")), "[DONE]"], "CUT", None, id="no reason"
        ),
        pytest.param(CHAT, [chunk(reason="length")], "INCOMPLETE", "length", id="length"),
        pytest.param(
            RESPONSES, [response("created", 0), response("completed", 1)], "SUCCESS", None, id="d"
        ),
        pytest.param(
            RESPONSES,
            [response("incomplete", 0, incomplete_details={"reason": "max_output_tokens"})],
            "INCOMPLETE",
            "max_output_tokens",
            id="incomplete",
        ),
        pytest.param(RESPONSES, [response("cancelled", 0)], "CANCELLED", None, id="cancelled"),
        pytest.param(RESPONSES, [response("created", 0)], "CUT", None, id="created only"),
        pytest.param(RESPONSES, [], "CUT", None, id="not one byte"),
    ],
)
def test_a_message_ended_only_if_its_protocol_said_so(protocol, events, terminal, reason):
    record = read(protocol, *events)
    assert (record.terminal, record.reason) == (Terminal[terminal], reason)


@pytest.mark.parametrize(
    ("protocol", "event", "kind"),
    [
        (
            ANTHROPIC,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}},
            "overloaded_error",
        ),
        (CHAT, {"error": {"type": "server_error", "message": "Busy", "code": 503}}, "server_error"),
        (CHAT, {"error": {"code": 503, "message": "Busy"}}, "503"),
        (
            RESPONSES,
            {"type": "error", "code": "rate_limited", "message": "Busy", "sequence_number": 3},
            "rate_limited",
        ),
        (
            RESPONSES,
            response("failed", 3, error={"code": "server_error", "message": "Busy"}),
            "server_error",
        ),
    ],
)
def test_an_error_inside_the_stream_is_kept_with_its_words(protocol, event, kind):
    record = read(protocol, event)
    assert (record.terminal, record.error_type) == (Terminal.ERROR_EVENT, kind)
    assert record.error_message == "Busy"


@pytest.mark.parametrize("ending", Ending)
def test_the_end_of_the_connection_is_never_an_end_of_the_message(ending):
    cut = read(ANTHROPIC, *a_payment("{}"), ending=ending)
    assert cut.terminal is (Terminal.CANCELLED if ending is Ending.CANCELLED else Terminal.CUT)
    whole = read(ANTHROPIC, *a_payment("{}"), *message_end(), ending=ending)
    assert whole.terminal is Terminal.SUCCESS


def test_what_an_sdk_hides_is_said():
    reader = StreamReader(CHAT, from_events=True)
    for event in (chunk(part(0, CALL_ID, "pay", "{}")), chunk(reason="tool_calls")):
        reader.feed_event(event)
    record = reader.close()
    assert record.terminal is Terminal.SUCCESS
    assert record.unseen == ("done_marker",)


# The arguments of a call


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"files":["a"', "not_json"),
        ('{"amount":1,"amount":2}', "duplicate_member"),
        ("[1]", "arguments_not_an_object"),
        ('{"a":NaN}', "nan_or_infinity"),
        ('{"a":"\\ud800"}', "lone_surrogate"),
    ],
)
def test_an_end_does_not_vouch_for_the_arguments(text, fault):
    (call,) = read(ANTHROPIC, *a_payment(text), *message_end()).calls
    assert (call.state, call.why_not) == (S.INVALID, NotDispatchable.INVALID)
    assert call.fault_code == fault
    assert fault in call.flags
    assert (call.raw, call.arguments) == (text, None)


@pytest.mark.parametrize("pieces", [(), ("",), ("{}",), (" ",)])
def test_no_text_is_no_arguments_once_the_call_has_ended(pieces):
    (call,) = read(ANTHROPIC, *a_payment(*pieces), *message_end()).calls
    assert (call.state, json.loads(call.arguments)) == (S.COMPLETE, {})


def test_no_text_of_a_call_that_did_not_end_is_not_known():
    (call,) = read(ANTHROPIC, message_start(), tool_block(0)).calls
    assert (call.state, call.arguments) == (S.PARTIAL, None)


def test_arguments_that_parse_do_not_prove_that_the_call_ended():
    (call,) = read(CHAT, chunk(part(0, CALL_ID, "pay", '{"to":"ops"}'))).calls
    assert (call.state, call.why_not) == (S.UNCONFIRMED, NotDispatchable.NOT_ENDED)


def test_a_limit_on_the_message_holds_back_a_call_that_is_whole():
    record = read(
        RESPONSES,
        item("done", 0, 0, arguments='{"amt":5}', status="completed"),
        item("added", 1, 1),
        arguments("delta", 2, '{"am', 1),
        response("incomplete", 3, incomplete_details={"reason": "max_output_tokens"}),
    )
    assert [call.state for call in record.calls] == [S.COMPLETE, S.PARTIAL]
    assert [call.why_not for call in record.calls] == [
        NotDispatchable.TURN_INCOMPLETE,
        NotDispatchable.NOT_ENDED,
    ]


@pytest.mark.parametrize("text", ['{"n":1.10,"big":9007199254740993}'])
def test_arguments_that_come_as_an_object_keep_every_digit(text):
    said = "\n".join(
        ["", "data: " + json.dumps(tool_block(0)).replace('"input": {}', f'"input": {text}')]
    )
    body = sse(message_start()) + said.encode() + b"\n\n" + sse(block_stop(0), *message_end())
    (call,) = read_stream(ANTHROPIC, body).calls
    assert call.state is S.COMPLETE
    assert call.arguments == '{"big":9007199254740993e0,"n":11e-1}'


def test_a_character_cut_between_two_pieces_is_one_character():
    (call,) = read(ANTHROPIC, *a_payment('{"a":"\ud83d', '\ude42"}'), *message_end()).calls
    assert json.loads(call.arguments) == {"a": "\U0001f642"}


# Compatible servers and their habits


@pytest.mark.parametrize(
    ("pieces", "expected", "flag"),
    [
        pytest.param(
            [
                part(0, CALL_ID, "pay", ""),
                part(1, OTHER_ID, "void", ""),
                part(0, None, None, '{"a":'),
                part(1, None, None, '{"b":'),
                part(0, None, None, "1}"),
                part(1, None, None, "2}"),
            ],
            [("pay", CALL_ID, '{"a":1}'), ("void", OTHER_ID, '{"b":2}')],
            None,
            id="fragments interleave",
        ),
        pytest.param(
            [part(0, CALL_ID, "pay", "{}"), part(0, OTHER_ID, "pay", "{}")],
            [("pay", CALL_ID, "{}"), ("pay", OTHER_ID, "{}")],
            StreamFlag.INDEX_REUSED,
            id="every call is number 0",
        ),
        pytest.param(
            [part(0, CALL_ID, "pay", "{"), part(0, "", "", '"a"'), part(0, CALL_ID, "pay", ":1}")],
            [("pay", CALL_ID, '{"a":1}')],
            None,
            id="id and name are repeated or empty",
        ),
        pytest.param(
            [part(0, CALL_ID, "pay", "{"), part(0, OTHER_ID, None, "}")],
            [("pay", CALL_ID, "{}")],
            StreamFlag.ID_CHANGED,
            id="a new id for every chunk",
        ),
        pytest.param(
            [part(0, None, "pay", "{}")], [("pay", None, "{}")], StreamFlag.ID_MISSING, id="no id"
        ),
        pytest.param(
            [
                part(None, CALL_ID, "pay", "{"),
                part(None, None, None, "}"),
                part(None, OTHER_ID, "pay", "{}"),
            ],
            [("pay", CALL_ID, "{}"), ("pay", OTHER_ID, "{}")],
            None,
            id="no index",
        ),
        pytest.param(
            [part(0, "pay", "pay", "{}")],
            [("pay", "pay", "{}")],
            StreamFlag.WEAK_CALL_ID,
            id="the name as id",
        ),
        pytest.param(
            [part(0, CALL_ID, "pay", "{}"), part(1, CALL_ID, "pay", "{}")],
            [("pay", CALL_ID, "{}"), ("pay", CALL_ID, "{}")],
            StreamFlag.DUPLICATE_CALL_ID,
            id="one id for two calls",
        ),
        pytest.param(
            [part(0, CALL_ID, "pay", {"a": 1})],
            [("pay", CALL_ID, '{"a":1e0}')],
            None,
            id="an object",
        ),
    ],
)
def test_calls_of_servers_that_speak_almost_the_protocol(pieces, expected, flag):
    record = read(CHAT, *(chunk(one) for one in pieces), *CHAT_END)
    assert [(call.name, call.call_id, call.raw) for call in record.calls] == expected
    assert all(call.dispatchable for call in record.calls)
    assert flag is None or flag in record.flags


def test_usage_comes_in_a_chunk_without_choices():
    record = read(
        CHAT, *CHAT_END[:1], {"id": "x", "choices": [], "usage": {"total_tokens": 13}}, "[DONE]"
    )
    assert record.usage == {"total_tokens": 13}


def test_the_form_before_parallel_calls():
    older = {"name": "pay", "arguments": '{"a":1}'}
    first = {"id": "x", "choices": [{"index": 0, "delta": {"function_call": older}}]}
    record = read(CHAT, first, chunk(reason="function_call"), "[DONE]")
    assert calls(record) == [("pay", None, S.COMPLETE, '{"a":1}', True)]


@pytest.mark.parametrize("alive", ["", '{"type":"ping"}', ": PROCESSING"])
def test_signs_of_life_between_fragments_change_nothing(alive):
    (call,) = read(
        CHAT,
        chunk(part(0, CALL_ID, "pay", '{"a":')),
        alive,
        chunk(part(0, None, None, "1}")),
        *CHAT_END,
    ).calls
    assert call.dispatchable


def test_an_event_that_cannot_be_read_makes_open_calls_suspect():
    record = read(
        CHAT,
        chunk(part(0, CALL_ID, "pay", "{")),
        "{half",
        chunk(part(0, None, None, "}")),
        *CHAT_END,
    )
    assert record.calls[0].why_not is NotDispatchable.SUSPECT
    assert record.warnings == ("unreadable event: {half",)


def test_fragments_without_a_call_belong_to_none():
    record = read(
        ANTHROPIC, *a_payment('{"id":1}'), piece(2, '{"amount":99}'), piece(0, "x"), *message_end()
    )
    assert record.violations == ("delta_without_start:2", "delta_after_stop:0")
    assert record.orphans == ('{"amount":99}', "x")
    assert calls(record) == [("pay", "toolu_0123456789abcdef", S.COMPLETE, '{"id":1}', True)]


# Numbered events


def test_arguments_across_a_gap_are_suspect_although_they_parse():
    record = read(
        RESPONSES,
        item("added", 1),
        arguments("delta", 2, '{"amount":1'),
        arguments("delta", 4, "}"),
        response("completed", 5),
    )
    assert record.gaps == ((3, 3),)
    assert record.calls[0].state is S.SUSPECT


def test_the_protocols_last_word_heals_a_gap_and_contradicts_without_one():
    events = [item("added", 1), arguments("delta", 2, '{"a":')]
    done = item("done", 5, arguments='{"a":12}', status="completed")
    (healed,) = read(RESPONSES, *events, arguments("delta", 4, "2}"), done).calls
    assert healed.state is S.COMPLETE
    (contradicted,) = read(
        RESPONSES, *events, arguments("delta", 3, "2}"), done | {"sequence_number": 4}
    ).calls
    assert contradicted.state is S.SUSPECT
    assert StreamFlag.ARGUMENTS_DISAGREE in contradicted.flags


def test_what_a_resumed_stream_repeats_is_applied_once():
    first = [item("added", 0), arguments("delta", 1, '{"a":')]
    rest = [arguments("delta", 2, "1}"), item("done", 3, arguments='{"a":1}', status="completed")]
    record = read(RESPONSES, *first, *first, *rest, rest[0], response("completed", 4))
    assert record.repeated_events == 3
    assert record.cursor == 4
    assert calls(record)[0][2:] == (S.COMPLETE, '{"a":1}', True)


def test_a_call_whose_item_was_interrupted_did_not_end():
    done = item("done", 2, arguments='{"a":1}', status="incomplete")
    (call,) = read(RESPONSES, item("added", 0), arguments("done", 1, '{"a":1}'), done).calls
    assert call.state is S.UNCONFIRMED


def test_a_tool_that_takes_any_text_is_a_call_too():
    done = item("done", 0, type="custom_tool_call", input="SELECT 1", status="completed")
    (call,) = read(RESPONSES, done, response("completed", 1)).calls
    assert call.dispatchable
    assert json.loads(call.arguments) == {"input": "SELECT 1"}


# Where it died


@pytest.mark.parametrize(
    ("events", "dispatched", "where", "advice"),
    [
        ([message_start()], {}, Where.NOTHING_ANNOUNCED, Advice.REISSUE),
        ([message_start(), tool_block(0)], {}, Where.ARGUMENTS_STREAMING, Advice.REISSUE),
        (a_payment("{}"), {0: Dispatched.NOT_STARTED}, Where.ARGUMENTS_STREAMING, Advice.REISSUE),
        (a_payment("{}"), {0: Dispatched.IN_FLIGHT}, Where.OUTSTANDING, Advice.RECONCILE),
        (a_payment("{}"), {0: Dispatched.RETURNED}, Where.RETURNED, Advice.REISSUE_KEYED),
        ([*a_payment("{}"), *message_end()], {0: Dispatched.RETURNED}, Where.ENDED, Advice.NOTHING),
        (
            [*a_payment("{}"), *message_end()],
            {0: Dispatched.IN_FLIGHT},
            Where.OUTSTANDING,
            Advice.RECONCILE,
        ),
        ([*a_payment("{"), *message_end()], {}, Where.ARGUMENTS_STREAMING, Advice.REISSUE),
        (
            [*a_payment("{}"), *message_end("max_tokens")],
            {},
            Where.ARGUMENTS_STREAMING,
            Advice.LARGER_BUDGET,
        ),
    ],
)
def test_where_a_stream_died_says_what_is_safe(events, dispatched, where, advice):
    death = read(ANTHROPIC, *events).where_it_died(dispatched)
    assert (death.where, death.advice) == (where, advice)
