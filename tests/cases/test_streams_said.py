"""What the stream cases say to people: what must be in a record, and what must never be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from effects.core.canonical import canonical_text, parse_arguments
from effects.core.identity import CallFacts, identities
from effects.core.streams import (
    ArgumentsState,
    CallRecord,
    Dispatched,
    NotDispatchable,
    Protocol,
    StreamFlag,
    StreamRecord,
    read_stream,
)
from effects.core.streams.record import Advice
from effects.core.vocabulary import Terminal
from tests.cases.at_hand import record, response, the_case
from tests.cases.fields import Fields
from tests.cases.streams import response_of


def key_of(call: CallRecord, **changes: Any) -> bytes | None:
    """The turn identity of a call, as its claim would have it."""
    facts = CallFacts(
        workspace=1,
        tool=call.name or "",
        arguments=call.arguments,
        conversation="c",
        turn_index=3,
        position=call.position,
        call_id=call.call_id,
    )
    return identities(replace(facts, **changes)).turn


def cut_after(case_id: str, text: str) -> StreamRecord:
    """The case's response, ended before `text`."""
    sse = the_case(case_id).input["sse"]
    assert text in sse
    return record(case_id, sse=sse.partition(text)[0])


@pytest.mark.case("S01", "S22")
@pytest.mark.parametrize("case_id", ["S01", "S22"])
@pytest.mark.parametrize("eof", ["clean", "reset"])
def test_a_polite_end_of_the_connection_finishes_no_turn(case_id: str, eof: str) -> None:
    found = record(case_id, eof=eof)
    assert found.terminal is Terminal.CUT
    assert [call.why_not for call in found.calls] == [NotDispatchable.NOT_ENDED]
    death = found.where_it_died()
    assert death.advice is Advice.REISSUE
    assert "nothing was dispatched" in death.says
    assert "No result is written" in death.says


@pytest.mark.case("S01")
def test_the_piece_of_arguments_that_came_is_kept_as_it_came() -> None:
    (call,) = record("S01").calls
    assert call.raw == '{"customer":"C-77","lines":[{"sku":"A1","qty":2},{"sku":"B'
    assert call.arguments is None


@pytest.mark.case("S02", "S03")
@pytest.mark.parametrize(
    ("case_id", "kind", "words"),
    [("S02", "overloaded_error", "Overloaded"), ("S03", "api_error", "Internal server error")],
)
def test_an_error_after_200_is_the_end_of_the_turn_and_keeps_its_words(
    case_id: str, kind: str, words: str
) -> None:
    assert the_case(case_id).input["http_status"] == 200
    found = record(case_id)
    assert found.terminal is Terminal.ERROR_EVENT
    assert (found.error_type, found.error_message, found.request_id) == (kind, words, "req_T1")
    assert found.reason == kind, "the reason of the end is the error, not a status"


@pytest.mark.case("S03")
def test_a_stream_without_a_beginning_has_a_record() -> None:
    found = record("S03")
    assert (found.response_id, found.calls) == (None, ())


@pytest.mark.case("S04")
def test_a_turn_that_ended_well_does_not_make_its_arguments_whole() -> None:
    (call,) = record("S04").calls
    assert (call.state, call.arguments) == (ArgumentsState.INVALID, None)
    assert call.fault_at is not None
    assert call.raw[call.fault_at :] == '"a/03', "where the text breaks off inside a value"
    assert call.raw.endswith('"a/03'), "nothing was added to make it parse"


@pytest.mark.case("S06")
def test_no_arguments_are_one_argument_list_and_one_key_in_every_dress() -> None:
    said = the_case("S06").input["variants"]
    records = [next(iter(response_of(Fields("v", one)).readings()))[1] for one in said]
    calls = [call for found in records for call in found.calls]
    assert len(calls) == 4
    assert {canonical_text(parse_arguments(call.arguments)) for call in calls} == {"{}"}
    assert len({key_of(call) for call in calls}) == 1


@pytest.mark.case("S06")
def test_no_arguments_of_a_call_that_did_not_end_are_not_known() -> None:
    for variant in the_case("S06").input["variants"][:2]:
        sse = variant["sse"].partition("event: content_block_stop")[0]
        (call,) = read_stream(Protocol.ANTHROPIC, sse.encode()).calls
        assert (call.state, call.arguments) == (ArgumentsState.PARTIAL, None)


@pytest.mark.case("S07")
def test_a_piece_goes_to_its_number_and_not_to_the_newest_call() -> None:
    pay, void = record("S07").calls
    assert (pay.raw, void.raw) == ('{"to":"A-ONLY"}', '{"id":"V-2"}')


@pytest.mark.case("S08")
def test_a_new_id_at_a_used_number_is_a_new_call() -> None:
    found = record("S08")
    assert [call.raw for call in found.calls] == ['{"q":"one"}', '{"q":"two"}']
    assert StreamFlag.INDEX_REUSED in found.flags


@pytest.mark.case("S09")
def test_an_empty_id_or_name_takes_nothing_back() -> None:
    assert [(call.call_id, call.name) for call in record("S09").calls] == [("call_S09", "book")]


@pytest.mark.case("S10")
def test_a_call_without_an_id_is_kept_and_gets_none() -> None:
    (call,) = record("S10").calls
    assert call.call_id is None
    assert key_of(call) is not None
    for changes in ({"turn_index": 4}, {"conversation": "d"}, {"tool": "x"}, {"ordinal": 1}):
        assert key_of(call, **changes) != key_of(call)
    assert key_of(call, call_id="call_made_up_by_somebody") == key_of(call)


@pytest.mark.case("S11")
def test_a_turn_that_brings_an_id_twice_says_so() -> None:
    pieces = [
        {"index": n, "id": event["tool_call_id"], "function": {"name": "email", "arguments": "{}"}}
        for n, event in enumerate(the_case("S11").input["events"])
    ]
    choices = [{"index": 0, "delta": {"tool_calls": pieces}, "finish_reason": "tool_calls"}]
    body = f"data: {json.dumps({'choices': choices})}\n\ndata: [DONE]\n\n"
    found = read_stream(Protocol.OPENAI_CHAT, body.encode())
    flagged = [StreamFlag.DUPLICATE_CALL_ID in call.flags for call in found.calls]
    assert flagged == [True, True, False, True]
    assert StreamFlag.DUPLICATE_CALL_ID in found.flags


@pytest.mark.case("S13")
def test_a_chunk_without_choices_brings_the_usage_and_breaks_nothing() -> None:
    found = record("S13")
    assert found.usage == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    assert (found.violations, found.warnings) == ((), ())


@pytest.mark.case("S14")
def test_signs_of_life_are_no_progress() -> None:
    found = record("S14")
    assert len(found.warnings) == 1
    assert found.calls[0].state is ArgumentsState.COMPLETE
    alive_only = cut_after("S14", "data: {")
    assert (alive_only.calls, alive_only.terminal) == ((), Terminal.CUT)
    assert alive_only.last_call_end_at is None


@pytest.mark.case("S15", "S16")
@pytest.mark.parametrize("case_id", ["S15", "S16"])
def test_how_bytes_are_cut_changes_neither_record_nor_key(case_id: str) -> None:
    read = dict(response(case_id).readings())
    assert len(read) == 4
    assert len({key_of(found.calls[0]) for found in read.values()}) == 1
    for found in read.values():
        assert found == read["whole"]
        assert "\ufffd" not in found.calls[0].raw


@pytest.mark.case("S16")
def test_half_a_character_at_the_end_is_a_cut_and_no_guess() -> None:
    whole = the_case("S16").input["sse"].encode()
    inside = whole.index("\u5317".encode()) + 1
    found = read_stream(Protocol.ANTHROPIC, whole[:inside])
    assert found.terminal is Terminal.CUT
    assert [call.dispatchable for call in found.calls] == [False]
    assert "\ufffd" not in found.calls[0].raw


@pytest.mark.case("S17")
def test_only_line_ends_of_the_standard_end_a_line() -> None:
    found = record("S17")
    assert found.terminal is Terminal.SUCCESS
    assert found.terminal is not record("S17", sse=the_case("S17").input["sse"][:-250]).terminal


@pytest.mark.case("S18")
def test_a_missing_last_line_is_noted_and_the_first_event_is_not_lost() -> None:
    found = record("S18")
    assert found.warnings == ("last event not terminated by a blank line",)
    assert found.response_id == "chatcmpl-T1"


@pytest.mark.case("S20")
def test_arguments_across_a_hole_are_not_run_although_they_parse() -> None:
    found = record("S20")
    (call,) = found.calls
    assert found.gaps == ((3, 3),)
    assert (call.raw, call.why_not) == ('{"amount":1}', NotDispatchable.SUSPECT)
    assert canonical_text(parse_arguments(call.raw)) == '{"amount":1e0}'


@pytest.mark.case("S21")
def test_a_turn_that_a_limit_ended_runs_no_call_of_its_batch() -> None:
    found = record("S21")
    assert found.terminal is Terminal.INCOMPLETE
    assert found.calls[0].why_not is NotDispatchable.TURN_INCOMPLETE
    assert found.where_it_died().advice is Advice.LARGER_BUDGET


@pytest.mark.case("S23")
@pytest.mark.parametrize(
    ("done", "advice"),
    [
        (Dispatched.IN_FLIGHT, Advice.RECONCILE),
        (Dispatched.RETURNED, Advice.REISSUE_KEYED),
        (Dispatched.NOT_STARTED, Advice.REISSUE),
    ],
)
def test_what_is_safe_depends_on_what_was_dispatched(done: Dispatched, advice: Advice) -> None:
    assert record("S23").where_it_died({0: done}).advice is advice


@pytest.mark.case("S25")
def test_what_breaks_the_protocol_is_named_and_its_pieces_belong_to_nobody() -> None:
    found = record("S25")
    assert found.violations == ("delta_without_start:2", "delta_after_stop:0")
    assert found.orphans == ('{"amount":99}',)
    assert [call.name for call in found.calls] == ["safe_read"]
