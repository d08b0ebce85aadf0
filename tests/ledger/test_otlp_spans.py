"""What the span of a tool becomes in the record: no more than a span can say."""

import dataclasses

import pytest

from effects.core.messages import ClaimRequest, Complete
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    Flag,
    Outcome,
    TokenScope,
)
from effects.models import Tool
from ledger import append, claiming
from ledger.management.verification import checks
from ledger.models import Claim, Event, IngestItem
from tests.ledger import mirror
from tests.ledger.otlp import (
    BEGAN,
    JSON,
    PROTOBUF,
    SECOND,
    STRONG_ID,
    cut,
    export,
    of_a_tool,
    protobuf,
    send,
)


@pytest.fixture
def exporter(hire, shop, refund):
    return hire(shop, TokenScope.INGEST)


def the_claim():
    return Claim.objects.get()


def the_end():
    return Event.objects.get(kind="reported")


def thrown(name="exception"):
    return ({"name": name, "attributes": {"exception.type": "OSError"}},)


# Outcomes


@pytest.mark.parametrize(
    ("span", "outcome", "error"),
    [
        pytest.param(of_a_tool(), Outcome.COMPLETED, None, id="it returned"),
        pytest.param(of_a_tool(status=1), Outcome.COMPLETED, None, id="it returned, and says so"),
        pytest.param(of_a_tool(status=2), Outcome.UNKNOWN, "status", id="a status of error"),
        pytest.param(of_a_tool(status=7), Outcome.UNKNOWN, "status", id="a status nobody knows"),
        pytest.param(
            of_a_tool(said={"error.type": "ConnectError"}), Outcome.UNKNOWN, "ConnectError",
            id="an error before the send looks like one after it",
        ),
        pytest.param(of_a_tool(events=thrown()), Outcome.UNKNOWN, "OSError", id="an exception"),
        pytest.param(
            of_a_tool(events=thrown("gen_ai.execute_tool.exception")), Outcome.UNKNOWN, "OSError",
            id="an exception as the newer conventions name it",
        ),
        pytest.param(of_a_tool(events=thrown("retry")), Outcome.COMPLETED, None, id="other events"),
        pytest.param(
            of_a_tool(said={"tool.attempt_failed": True}), Outcome.UNKNOWN, "failed",
            id="marked as failed by a callback",
        ),
        pytest.param(
            of_a_tool(said={"gen_ai.tool.call.result": {"isError": True}}), Outcome.UNKNOWN,
            "handed to the model", id="an error as MCP hands it to the model",
        ),
        pytest.param(
            of_a_tool(said={"gen_ai.tool.call.result": '{"status": "error"}'}), Outcome.UNKNOWN,
            "handed to the model", id="an error as LangChain hands it to the model",
        ),
        pytest.param(
            of_a_tool(said={"gen_ai.tool.call.result": "An error occurred while running the tool. "
                            "Please try again."}),
            Outcome.UNKNOWN, "handed to the model", id="an error as the Agents SDK words it",
        ),
        pytest.param(
            of_a_tool(said={"gen_ai.tool.call.result": '{"status": "succeeded"}'}),
            Outcome.COMPLETED, None, id="a result with a status",
        ),
        pytest.param(
            cut(said={"counterfoil.outcome": "not_sent"}), Outcome.NOT_SENT, "ReadTimeout",
            id="whoever knows says that nothing was sent",
        ),
        pytest.param(
            cut(said={"counterfoil.outcome": "refused"}), Outcome.REFUSED, "ReadTimeout",
            id="or that it was refused",
        ),
        pytest.param(
            of_a_tool(said={"counterfoil.outcome": "unknown"}), Outcome.UNKNOWN, None,
            id="or that nobody knows",
        ),
        pytest.param(
            of_a_tool(said={"counterfoil.outcome": "never sent"}), Outcome.UNKNOWN, None,
            id="a word of ours that is none",
        ),
    ],
)  # fmt: skip
def test_a_span_counts_for_what_it_proves(exporter, span, outcome, error):
    assert export(exporter, span) == (0, "")
    end = the_end()
    assert end.word == outcome
    assert (error or "") in (end.data or {}).get("error", "")
    assert (end.object, end.data["span"]) == (None, span.id)


def test_the_states_of_a_call_follow_from_its_spans(exporter):
    export(exporter, cut())
    assert the_claim().state == ClaimState.UNKNOWN
    export(exporter, of_a_tool(3))
    claim = the_claim()
    assert (claim.state, claim.fence, claim.open_truth) == (ClaimState.COMPLETED, 2, True)
    export(exporter, of_a_tool(4))
    assert the_claim().state == ClaimState.CONFLICTED, "it returned twice: perhaps two effects"
    assert [d for check in checks(clock_may_move=True) for d in check.find()] == []


def test_what_the_record_keeps_of_a_call(exporter):
    export(exporter, of_a_tool(said={"gen_ai.tool.call.result": {"id": "re_1"}}))
    claim = the_claim()
    assert (claim.tool.name, claim.effect_class) == ("refund", EffectClass.KEYED_WRITE)
    assert (claim.conversation, claim.turn_index, claim.call_id) == (
        "conversation-1", None, STRONG_ID,
    )  # fmt: skip
    assert (claim.arguments, claim.result) == (
        '{"charge": "ch_1", "amount": 4200}', '{"id":"re_1"}',
    )  # fmt: skip
    assert (claim.window_until, claim.sent_key) == (None, None), "a span names no key"
    assert claim.flags == [Flag.MIRRORED]
    times = {e.kind: (e.data or {}).get("said_at") for e in Event.objects.all()}
    assert times == {
        "granted": None,
        "started": "2026-03-02T10:00:00+00:00",
        "reported": "2026-03-02T10:00:01+00:00",
    }
    assert (the_end().data or {})["worker"] == "worker-1"


@pytest.mark.parametrize(
    ("said", "result"),
    [
        pytest.param("re_1", '"re_1"', id="a text"),
        pytest.param('{"id": 1}', '{"id": 1}', id="JSON in a text"),
        pytest.param(7, "7", id="a number"),
        pytest.param(["a", None, 1.5, True], '["a",null,1.5,true]', id="an array"),
        pytest.param({"b": {"a": 2**53 + 1}}, '{"b":{"a":9007199254740993}}', id="nested pairs"),
        pytest.param("", '""', id="an empty text"),
        pytest.param(None, None, id="nothing, since results are opt-in"),
    ],
)
@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_results_are_kept_as_json(exporter, said, result, kind):
    export(exporter, of_a_tool(said={"gen_ai.tool.call.result": said}), kind=kind)
    assert (the_claim().result, the_claim().result_stored) == (result, result is not None)


@pytest.mark.parametrize(
    ("said", "kept", "flagged"),
    [
        pytest.param({"charge": "ch_1"}, '{"charge":"ch_1"}', False, id="an object"),
        pytest.param('{"charge": "ch_1"}', '{"charge": "ch_1"}', False, id="a text"),
        pytest.param({}, "{}", False, id="no arguments"),
        pytest.param("{'charge': 'ch_1'}", "{'charge': 'ch_1'}", True, id="no JSON"),
        pytest.param('{"charge": "ch', '{"charge": "ch', True, id="a text that was cut"),
        pytest.param(None, None, False, id="untold"),
    ],
)
def test_arguments_are_kept_as_they_were_told(exporter, said, kept, flagged):
    export(exporter, of_a_tool(said={"gen_ai.tool.call.arguments": said}))
    claim = the_claim()
    assert (claim.arguments, Flag.ARGUMENTS_UNREADABLE in claim.flags) == (kept, flagged)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"gen_ai.operation.name": None}, id="no operation, as before July 2025"),
        pytest.param(
            {
                "gen_ai.tool.call.arguments": None,
                "gen_ai.conversation.id": None,
                "gcp.vertex.agent.tool_call_args": '{"charge": "ch_1", "amount": 4200}',
                "gcp.vertex.agent.session_id": "conversation-1",
            },
            id="Google's ADK",
        ),
        pytest.param(
            {
                "gen_ai.tool.call.arguments": None,
                "tool_arguments": '{"charge": "ch_1", "amount": 4200}',
            },
            id="Pydantic AI before its third format",
        ),
        pytest.param({"gen_ai.tool.name": None}, id="the tool in the span's name only"),
    ],
)
def test_older_emitters_are_understood(exporter, said):
    export(exporter, of_a_tool(said=said))
    claim = the_claim()
    assert (claim.tool.name, claim.conversation) == ("refund", "conversation-1")
    assert claim.arguments == '{"charge": "ch_1", "amount": 4200}'


# Which spans, and which tools


@pytest.mark.parametrize("operation", ["chat", "invoke_agent", "execute_toolbox", None])
def test_other_spans_are_taken_and_not_kept(exporter, operation):
    said = {"gen_ai.operation.name": operation}
    other = dataclasses.replace(of_a_tool(said=said), name="GET /charges")
    assert export(exporter, other) == (0, "")
    assert not IngestItem.objects.exists()
    assert not Claim.objects.exists()


def test_a_registered_read_makes_no_claim(exporter, lookup):
    assert export(exporter, cut(tool="lookup")) == (0, "")
    assert not Claim.objects.exists()
    assert IngestItem.objects.get().reason == "read"


def test_a_tool_that_nobody_registered_is_of_the_most_dangerous_class(exporter, shop):
    export(exporter, of_a_tool(tool="wire_money"))
    tool = Tool.objects.get(workspace=shop, name="wire_money")
    assert (tool.registered, the_claim().effect_class) == (False, EffectClass.UNKEYED_WRITE)


# Which spans are attempts of one call

OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("second", "claims"),
    [
        pytest.param({}, 1, id="the same strong call id"),
        pytest.param({"trace": OTHER_TRACE}, 1, id="in another trace, after a redelivery"),
        pytest.param({"said": {"gen_ai.tool.call.id": "call_1"}}, 2, id="a weak call id"),
        pytest.param({"said": {"gen_ai.tool.call.id": None}}, 2, id="no call id"),
        pytest.param({"said": {"gen_ai.conversation.id": "c2"}}, 2, id="another conversation"),
        pytest.param({"said": {"gen_ai.tool.call.arguments": "{}"}}, 2, id="other arguments"),
        pytest.param({"said": {"gen_ai.tool.call.arguments": None}}, 2, id="untold is not equal"),
        pytest.param(
            {"said": {"gen_ai.tool.call.arguments": '{"amount": 4200, "charge": "ch_1"}'}}, 1,
            id="the same arguments written otherwise",
        ),
    ],
)  # fmt: skip
def test_two_spans_are_one_call_only_by_a_strong_id(exporter, second, claims):
    export(exporter, cut(1), cut(2, **second))
    assert Claim.objects.count() == claims


@pytest.mark.parametrize("call_id", ["call_1", None])
def test_without_a_strong_id_no_two_spans_are_one_call(exporter, call_id):
    said = {"gen_ai.tool.call.id": call_id}
    export(exporter, cut(1, said=said), cut(2, said=said))
    assert Claim.objects.count() == 2


def test_span_ids_of_two_traces_are_two_attempts_even_where_they_are_equal(exporter):
    export(exporter, cut(1), cut(1, trace=OTHER_TRACE))
    assert the_claim().fence == 2


def test_untold_arguments_are_not_no_arguments_and_resemble_nothing(exporter):
    untold = {"gen_ai.tool.call.arguments": None}
    export(
        exporter,
        cut(1, said=untold),
        cut(2, said=untold),
        cut(3, said=untold | {"gen_ai.tool.call.id": "call_nnnnnnnnnnnnnnnn"}),
        cut(4, said={"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.id": None}),
    )
    assert sorted(c.fence for c in Claim.objects.all()) == [1, 1, 2]
    assert len({bytes(c.arguments_digest) for c in Claim.objects.all()}) == 3
    assert Claim.objects.filter(repeat=None).count() == 2


def test_without_a_conversation_the_trace_stands_for_one_and_the_item_says_so(exporter):
    said = {"gen_ai.conversation.id": None}
    export(exporter, cut(1, said=said), cut(2, said=said), cut(3, trace=OTHER_TRACE, said=said))
    assert sorted((c.conversation, c.fence) for c in Claim.objects.all()) == [
        (f"otel:{OTHER_TRACE}", 1), ("otel:4bf92f3577b34da6a3ce929d0e0e4736", 2),
    ]  # fmt: skip
    assert {i.reason for i in IngestItem.objects.all()} == {"no_conversation"}


# Beside claims of others


def asked(**changes):
    usual = mirror.claim_made()["data"] | {"effect_class": EffectClass.KEYED_WRITE}
    usual.pop("claim")
    return ClaimRequest(**(usual | {"call_id": STRONG_ID} | changes))


@pytest.mark.parametrize("arguments", ['{"charge": "ch_1", "amount": 4200}', None])
def test_a_call_that_was_claimed_here_is_not_counted_twice(exporter, shop, arguments):
    granted = claiming.claim(shop.pk, asked())
    done = Complete(fence=1, provider_object="re_1", result='{"id": "re_1"}')
    assert granted.claim_id is not None
    append.report(shop.pk, granted.claim_id, Outcome.COMPLETED, done)

    export(exporter, of_a_tool(said={"gen_ai.tool.call.arguments": arguments}))
    claim = the_claim()
    assert (claim.state, claim.fence) == (ClaimState.COMPLETED, 1)
    item = IngestItem.objects.get()
    assert (item.state, item.reason, item.claim_id) == ("recorded", "told_by_others", claim.pk)


def test_a_call_that_its_own_ledger_told_of_is_not_counted_twice(exporter, shop):
    mirror.tell(shop.pk, mirror.claim_made(), mirror.started(), mirror.ended("completed"))
    export(exporter, of_a_tool())
    assert (the_claim().state, the_claim().fence) == (ClaimState.COMPLETED, 1)


def test_an_agent_that_claims_what_was_seen_is_answered_from_it(exporter, shop):
    export(exporter, cut())
    assert claiming.claim(shop.pk, asked()).code is AnswerCode.UNKNOWN


# Duplicates and conflicts


def test_a_span_that_comes_twice_changes_nothing_whatever_its_encoding_and_order(exporter):
    said = {"gen_ai.tool.call.result": {"a": 1, "b": [1.5, "x"]}, "zone": 1}
    first = of_a_tool(said=said)
    turned = dataclasses.replace(
        first, attributes=dict(reversed([*first.attributes.items()])),
    )  # fmt: skip
    assert export(exporter, first) == (0, "")
    before = Event.objects.count()
    assert export(exporter, turned, kind=JSON) == (0, "")
    assert export(exporter, first, turned) == (0, "")
    assert (Event.objects.count(), IngestItem.objects.get().times_seen) == (before, 4)


def test_the_same_ids_with_other_content_are_a_conflict_and_both_are_kept(exporter):
    export(exporter, of_a_tool())
    rejected, says = export(exporter, of_a_tool(end=BEGAN + 2 * SECOND))
    assert (rejected, "other content" in says) == (1, True)
    assert sorted(i.state for i in IngestItem.objects.all()) == ["applied", "conflict"]
    assert the_claim().fence == 1


def test_one_bad_span_costs_only_itself_and_says_why(exporter):
    no_end, no_id = of_a_tool(2, end=0), of_a_tool(3, trace="0" * 32)
    rejected, says = export(exporter, of_a_tool(1), no_end, no_id, cut(4))
    assert rejected == 2
    assert "has not ended" in says
    assert "traceId" in says
    assert sorted(i.state for i in IngestItem.objects.all()) == [
        "applied", "applied", "unreadable", "unreadable",
    ]  # fmt: skip
    assert export(exporter, of_a_tool(2)) == (0, ""), "its end came"


@pytest.mark.parametrize("name", ["gen_ai.conversation.id", "gen_ai.tool.name"])
def test_a_name_that_is_too_long_is_refused_by_the_limits_name(exporter, name):
    rejected, says = export(exporter, of_a_tool(said={name: "ü" * 128}))
    assert (rejected, "_BYTES_MAX, 255 bytes" in says) == (1, True)


def test_what_names_nothing_is_no_name(exporter):
    rejected, says = export(exporter, of_a_tool(said={"gen_ai.conversation.id": "a\x00b"}))
    assert (rejected, "data.conversation" in says) == (1, True)


def test_nothing_is_made_of_a_span_that_did_not_come(exporter, shop):
    claiming.claim(shop.pk, asked())
    chat = of_a_tool(said={"gen_ai.operation.name": "chat", "gen_ai.tool.call.id": None})
    export(exporter, chat, of_a_tool(2, said={"gen_ai.tool.call.id": "call_1"}))
    silent = Claim.objects.get(call_id=STRONG_ID)
    assert (silent.state, silent.version) == (ClaimState.IN_FLIGHT, 1)


@pytest.mark.parametrize(
    ("text", "written", "mark"),
    [
        pytest.param("a\x00b", rb"a\u0000b", "nul", id="NUL"),
        pytest.param("cut \ud83d", rb"cut \ud83d", "lone_surrogate", id="half of a pair"),
    ],
)
def test_what_cannot_be_stored_is_mended_and_its_bytes_are_kept(exporter, text, written, mark):
    export(exporter, of_a_tool(said={"gen_ai.tool.call.result": text}), kind=JSON)
    item = IngestItem.objects.get()
    assert (item.state, item.mended) == ("applied", [mark])
    assert written in bytes(item.raw or b"")


def test_a_text_that_is_no_utf8_costs_no_span(exporter):
    span = of_a_tool(said={"gen_ai.tool.call.result": "0123456789"})
    answer = send(exporter, protobuf([span]).replace(b"0123456789", b"012345678\xff"))
    assert (answer.status, answer.body) == (200, b"")
    assert the_claim().result == '"012345678\ufffd"'
    assert rb"012345678\udcff" in bytes(IngestItem.objects.get().raw or b"")
