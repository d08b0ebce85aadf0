"""Who a call is: which facts make which identity, and what is made of them."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from uuid import UUID

import pytest

from effects.core.canonical import ArgumentRules, Refused
from effects.core.identity import (
    RECIPES,
    CallFacts,
    Identities,
    call_id_is_strong,
    forwarded_key,
    identities,
    marker,
    read_marker,
)

VECTORS = Path(__file__).parents[3] / "docs" / "canonical-form-vectors.json"

STRONG_ID = "toolu_01A9bCdEfGhIjKlMnOpQr"
WEAK_ID = "call_1"
REFUND = CallFacts(
    workspace=1,
    tool="refund",
    arguments='{"charge":"ch_1","amount":4200}',
    conversation="c1",
    turn_index=3,
    position=1,
    ordinal=0,
    response_id="resp_1",
    call_id=STRONG_ID,
    caller_key="order-7",
    rules=ArgumentRules(business=("charge", "amount")),
)
EVERY = {field.name for field in fields(Identities)} - {"weak_call_id"}


def changed(one: CallFacts, other: CallFacts) -> set[str]:
    first, second = identities(one), identities(other)
    return {name for name in EVERY if getattr(first, name) != getattr(second, name)}


def made(facts: CallFacts) -> set[str]:
    found = identities(facts)
    return {name for name in EVERY if getattr(found, name) is not None}


SPOKEN = {"scope", "turn", "slot", "call", "repeat"}
ONE_FACT_CHANGED = [
    pytest.param({"workspace": 2}, EVERY - {"arguments", "local"}, id="another workspace"),
    pytest.param(
        {"tool": "transfer"},
        {"turn", "slot", "repeat", "business", "arguments"},
        id="another tool",
    ),
    pytest.param(
        {"arguments": '{"charge":"ch_1","amount":4201}'},
        {"turn", "repeat", "business", "arguments"},
        id="other arguments",
    ),
    pytest.param(
        {"arguments": '{"charge":"ch_1","amount":4200,"note":"x"}'},
        {"turn", "repeat", "arguments"},
        id="arguments that are no business",
    ),
    pytest.param({"arguments": '{"amount":42e2,"charge":"ch_1"}'}, set(), id="another spelling"),
    pytest.param({"conversation": "c2"}, SPOKEN, id="another conversation"),
    pytest.param({"turn_index": 4}, {"scope", "turn", "slot"}, id="another turn"),
    pytest.param({"ordinal": 1}, {"turn"}, id="the second of two equal calls"),
    pytest.param({"position": 2}, {"slot"}, id="another place in the response"),
    pytest.param({"call_id": STRONG_ID + "s"}, {"call"}, id="another call id"),
    pytest.param({"response_id": "resp_2"}, set(), id="another response: a turn asked again"),
    pytest.param({"caller_key": "order-8"}, {"caller"}, id="another key of the caller"),
]


@pytest.mark.parametrize(("change", "moved"), ONE_FACT_CHANGED)
def test_a_fact_moves_exactly_the_identities_that_are_made_of_it(
    change: dict[str, object], moved: set[str]
) -> None:
    assert changed(REFUND, replace(REFUND, **change)) == moved  # type: ignore[arg-type]  # a table


WEAK = replace(REFUND, call_id=WEAK_ID)


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        pytest.param({"response_id": "resp_2"}, True, id="another response"),
        pytest.param({"call_id": "call_2"}, True, id="another call id"),
        pytest.param({"turn_index": 4}, True, id="another turn"),
        pytest.param({"conversation": "c2"}, True, id="another conversation"),
        pytest.param({"tool": "transfer"}, True, id="another tool"),
        pytest.param({"arguments": "{}"}, True, id="other arguments"),
        pytest.param({"workspace": 2}, True, id="another workspace"),
        pytest.param({"ordinal": 1}, False, id="numbered differently by the reporter"),
        pytest.param({"position": 2}, False, id="placed differently by the reporter"),
    ],
)
def test_a_weak_id_makes_a_local_identity_of_one_response(
    change: dict[str, object],
    moved: bool,  # noqa: FBT001, a column of the table
) -> None:
    assert ("local" in changed(WEAK, replace(WEAK, **change))) is moved  # type: ignore[arg-type]  # a table


BARE = CallFacts(workspace=1, tool="refund", arguments="{}", conversation="c1", turn_index=3)
IN_A_TURN = {"scope", "turn", "slot", "repeat", "arguments"}
WHICH_ARE_MADE = [
    pytest.param({}, IN_A_TURN, False, id="a turn alone"),
    pytest.param({"call_id": STRONG_ID}, IN_A_TURN | {"call"}, False, id="a strong id"),
    pytest.param({"call_id": WEAK_ID}, IN_A_TURN | {"local"}, True, id="a weak id"),
    pytest.param({"call_id": "refund"}, IN_A_TURN, True, id="the tool's name as the id"),
    pytest.param({"call_id": "Refund"}, IN_A_TURN, True, id="the tool's name in capitals"),
    pytest.param({"call_id": ""}, IN_A_TURN, False, id="an empty id is none"),
    pytest.param(
        {"conversation": None, "turn_index": None, "caller_key": "k"},
        {"caller", "arguments"},
        False,
        id="a caller's key alone",
    ),
    pytest.param(
        {"turn_index": None, "caller_key": "k", "call_id": STRONG_ID},
        {"caller", "call", "repeat", "arguments"},
        False,
        id="a conversation without a turn",
    ),
    pytest.param(
        {"turn_index": None, "caller_key": "k", "call_id": WEAK_ID},
        {"caller", "repeat", "arguments"},
        True,
        id="a weak id needs a turn",
    ),
    pytest.param(
        {"conversation": None, "caller_key": "k", "call_id": STRONG_ID},
        {"caller", "arguments"},
        False,
        id="a turn or an id without a conversation says nothing",
    ),
]


@pytest.mark.parametrize(("given", "expected", "weak"), WHICH_ARE_MADE)
def test_an_identity_is_made_only_of_facts_that_are_there(
    given: dict[str, object],
    expected: set[str],
    weak: bool,  # noqa: FBT001, a column of the table
) -> None:
    facts = replace(BARE, **given)  # type: ignore[arg-type]  # a table of keyword arguments
    assert made(facts) == expected
    assert identities(facts).weak_call_id is weak


CALL_IDS = [
    pytest.param(None, False, id="none"),
    pytest.param("", False, id="empty"),
    pytest.param("call_0", False, id="short"),
    pytest.param("0123456789abcde", False, id="15 characters"),
    pytest.param("0123456789abcdef", True, id="16 characters"),
    pytest.param("send_confirmation_email", False, id="the tool's name"),
    pytest.param("Send_Confirmation_Email", False, id="the tool's name in capitals"),
    pytest.param("functions.send_confirmation_email:0", False, id="built around the tool's name"),
    pytest.param("call_send_confirmation_email", False, id="the tool's name with a prefix"),
    pytest.param("send_confirmation_email_0123456789abcdef", True, id="16 characters beside it"),
    pytest.param("toolu_01A9bCdEfGhIjKlMnOpQr", True, id="a provider's id"),
]


@pytest.mark.parametrize(("call_id", "strong"), CALL_IDS)
def test_an_id_is_strong_by_what_it_says_beyond_the_tools_name(
    call_id: str | None,
    strong: bool,  # noqa: FBT001, a column of the table
) -> None:
    assert call_id_is_strong(call_id, "send_confirmation_email") is strong


@pytest.mark.parametrize("tool", ["a", "0", ".*", "toolu", ""])
def test_a_tool_with_a_short_or_odd_name_does_not_weaken_a_providers_id(tool: str) -> None:
    assert call_id_is_strong(STRONG_ID, tool)


def test_a_tools_name_counts_only_as_a_whole_word_of_the_id() -> None:
    assert call_id_is_strong("7171_7171_7171_71", "1")
    assert not call_id_is_strong("7171_7171_7171_71", "7171")


def test_a_call_reported_again_and_again_is_one_call() -> None:
    """An adapter that repeats everything so far numbers the same call differently each time."""
    first, again, other = (
        replace(BARE, tool="email", call_id=call_id, ordinal=ordinal, arguments=arguments)
        for call_id, ordinal, arguments in (
            ("toolu_1", 0, '{"to":"a"}'),
            ("toolu_1", 1, '{"to":"a"}'),
            ("toolu_2", 2, '{"to":"b"}'),
        )
    )
    assert identities(first).local == identities(again).local
    assert identities(first).local != identities(other).local


def test_equal_calls_of_one_response_are_kept_apart_and_known_to_look_alike() -> None:
    first, second = (
        identities(replace(BARE, tool="append_row", call_id=f"c_{n}", ordinal=n)) for n in (0, 1)
    )
    assert first.turn != second.turn
    assert first.local != second.local
    assert first.repeat == second.repeat


def test_a_turn_asked_again_in_another_order_keeps_its_identities() -> None:
    asked = replace(REFUND, position=0)
    again = replace(asked, position=1, response_id="resp_2", call_id="toolu_01ZyXwVuTsRqPoNmLkJi")
    assert identities(asked).turn == identities(again).turn


BUSINESS = ArgumentRules(
    business=("order", "currency"), defaults={"currency": '"usd"'}, drop_null=("currency",)
)
ONE_ACT = [
    pytest.param('{"order":"o1","currency":"usd","note":"x"}', id="said"),
    pytest.param('{"order":"o1"}', id="absent, so the default"),
    pytest.param('{"order":"o1","currency":null}', id="null that counts as absent"),
]


@pytest.mark.parametrize("arguments", ONE_ACT)
def test_a_business_member_left_out_counts_as_its_default(arguments: str) -> None:
    said = replace(BARE, rules=BUSINESS, arguments='{"currency":"usd","order":"o1"}')
    assert identities(said).business is not None
    assert identities(replace(said, arguments=arguments)).business == identities(said).business


NO_ACT = [
    pytest.param(BUSINESS, '{"currency":"usd"}', id="a member is missing"),
    pytest.param(BUSINESS, '{"order":null}', id="a member is null"),
    pytest.param(ArgumentRules(business=("a",), defaults={"a": "null"}), "{}", id="null default"),
    pytest.param(ArgumentRules(), '{"order":"o1"}', id="nothing is declared"),
]


@pytest.mark.parametrize(("rules", "arguments"), NO_ACT)
def test_a_business_identity_needs_every_member(rules: ArgumentRules, arguments: str) -> None:
    assert identities(replace(BARE, rules=rules, arguments=arguments)).business is None


def test_a_business_identity_does_not_depend_on_the_order_in_which_it_was_declared() -> None:
    turned = replace(REFUND, rules=ArgumentRules(business=("amount", "charge", "amount")))
    assert changed(REFUND, turned) == set()


def test_values_cannot_wander_from_one_business_member_to_another() -> None:
    rules = ArgumentRules(business=("from", "to"))
    there = replace(BARE, rules=rules, arguments='{"from":"a","to":"b"}')
    back = replace(BARE, rules=rules, arguments='{"from":"b","to":"a"}')
    assert identities(there).business != identities(back).business


REFUSED_FACTS = [
    pytest.param({"conversation": None}, "no_identity", id="no conversation"),
    pytest.param({"turn_index": None}, "no_identity", id="no turn"),
    pytest.param({"turn_index": None, "call_id": STRONG_ID}, "no_identity", id="an id alone"),
    pytest.param({"conversation": ""}, "conversation_empty", id="an empty conversation"),
    pytest.param({"tool": ""}, "tool_empty", id="an empty tool"),
    pytest.param({"conversation": "é" * 128}, "conversation_too_long", id="a long conversation"),
    pytest.param({"tool": "t" * 256}, "tool_too_long", id="a long tool"),
    pytest.param({"call_id": "i" * 256}, "call_id_too_long", id="a long call id"),
    pytest.param({"response_id": "r" * 256}, "response_id_too_long", id="a long response id"),
    pytest.param({"conversation": "c\x00"}, "conversation_unstorable", id="U+0000"),
    pytest.param({"call_id": "c\ud83d"}, "call_id_unstorable", id="half a pair"),
    pytest.param({"turn_index": -1}, "turn_index_out_of_range", id="a negative turn"),
    pytest.param({"position": 2**31}, "position_out_of_range", id="a large position"),
    pytest.param({"ordinal": -1}, "ordinal_out_of_range", id="a negative ordinal"),
    pytest.param({"caller_key": ""}, "key_empty", id="an empty key"),
    pytest.param({"caller_key": " same "}, "key_has_outer_space", id="a key with outer space"),
    pytest.param({"caller_key": "same\u00a0"}, "key_has_outer_space", id="a space of another kind"),
    pytest.param({"caller_key": "K" * 256}, "key_too_long", id="a long key"),
    pytest.param({"caller_key": "é" * 128}, "key_too_long", id="a key's bytes count"),
    pytest.param({"caller_key": "a\x07b"}, "key_has_control_characters", id="a bell"),
    pytest.param({"caller_key": "a\x7fb"}, "key_has_control_characters", id="a delete"),
    pytest.param({"caller_key": "a\ud800b"}, "key_has_control_characters", id="half a pair in it"),
    pytest.param({"arguments": None}, "arguments_missing", id="no arguments"),
    pytest.param({"arguments": '{"a":NaN}'}, "nan_or_infinity", id="bad arguments"),
]


@pytest.mark.parametrize(("given", "code"), REFUSED_FACTS)
def test_a_request_that_identifies_nothing_safely_is_refused(
    given: dict[str, object], code: str
) -> None:
    with pytest.raises(Refused) as refused:
        identities(replace(BARE, **given))  # type: ignore[arg-type]  # a table of keyword arguments
    assert refused.value.code == code
    if code.endswith("too_long"):
        assert "_BYTES_MAX is 255" in str(refused.value)


@pytest.mark.parametrize("key", ["K" * 255, "é" * 127, "a b", "same", "SAME"])
def test_a_callers_key_is_neither_trimmed_nor_folded(key: str) -> None:
    facts = replace(BARE, conversation=None, caller_key=key)
    expected = by_hand("caller.v1", 1, key)[:16]
    assert identities(facts).caller == expected


def by_hand(*parts: str | int | None) -> bytes:
    """The digest as its definition reads, written down a second time."""
    written = b""
    for part in parts:
        if part is None:
            written += b"\x00\x00\x00\x00n"
        elif isinstance(part, int):
            written += len(str(part)).to_bytes(4, "big") + b"i" + str(part).encode()
        else:
            written += len(part.encode()).to_bytes(4, "big") + b"s" + part.encode()
    return hashlib.sha256(written).digest()


def test_every_recipe_is_made_of_its_parts_in_their_order() -> None:
    text = '{"amount":42e2,"charge":"ch_1"}'
    turn = (1, "c1", 3)
    strong, weak = identities(REFUND), identities(replace(WEAK, response_id=None))
    assert strong.scope == by_hand("scope.v1", *turn)[:16]
    assert strong.turn == by_hand("turn.v1", *turn, "refund", 0, text)[:16]
    assert strong.slot == by_hand("slot.v1", *turn, "refund", 1)[:16]
    assert strong.call == by_hand("call.v1", 1, "c1", STRONG_ID)[:16]
    assert strong.caller == by_hand("caller.v1", 1, "order-7")[:16]
    assert strong.repeat == by_hand("repeat.v1", 1, "c1", "refund", text)[:16]
    business = ("amount", "42e2", "charge", '"ch_1"')
    assert strong.business == by_hand("business.v1", 1, "refund", *business)[:16]
    assert weak.local == by_hand("local.v1", *turn, None, WEAK_ID, "refund", text)[:16]
    assert strong.arguments == by_hand("args.v1", "refund", text)


def test_every_identity_names_the_version_of_its_recipe() -> None:
    assert set(RECIPES) == EVERY
    assert all(recipe.endswith(".v1") for recipe in RECIPES.values())
    assert len(set(RECIPES.values())) == len(RECIPES)


def test_the_published_vectors_hold() -> None:
    """Whoever writes a client in another language checks it against this file."""
    published = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert len(published["vectors"]) >= 20
    for vector in published["vectors"]:
        facts = replace(BARE, tool=published["tool"], arguments=vector["arguments"])
        text = vector["canonical"]
        assert identities(facts).arguments == by_hand("args.v1", published["tool"], text)
        assert identities(facts).arguments.hex() == vector["args.v1"]
    for refused in published["refused"]:
        with pytest.raises(Refused) as caught:
            identities(replace(BARE, arguments=refused["arguments"]))
        assert (caught.value.code, caught.value.at) == (refused["code"], refused["at"])


# What the provider is given

NONE = Identities(
    scope=None,
    turn=None,
    slot=b"slot" * 4,
    call=None,
    local=None,
    caller=None,
    repeat=b"rept" * 4,
    business=b"busi" * 4,
    arguments=b"args" * 8,
    weak_call_id=False,
)
FIRST = [
    pytest.param({"local": b"l" * 16}, "6c", id="the local id if nothing else is there"),
    pytest.param({"local": b"l" * 16, "call": b"c" * 16}, "63", id="the call before the local id"),
    pytest.param({"call": b"c" * 16, "turn": b"t" * 16}, "74", id="the turn before the call"),
    pytest.param({"turn": b"t" * 16, "caller": b"k" * 16}, "6b", id="the caller's key before all"),
]


@pytest.mark.parametrize(("given", "letter"), FIRST)
def test_the_forwarded_key_comes_from_the_first_same_operation_identity(
    given: dict[str, bytes], letter: str
) -> None:
    key = forwarded_key(replace(NONE, **given), 2)  # type: ignore[arg-type]  # a table
    assert key == f"cf1-{letter * 16}-2"
    assert len(key) <= 64, "the shortest limit of a provider that we know"


def test_what_merely_looks_alike_makes_no_key() -> None:
    with pytest.raises(ValueError, match="name no operation"):
        forwarded_key(NONE, 1)


@pytest.mark.parametrize("generation", [0, -1, 10**9])
def test_a_generation_counts_from_one(generation: int) -> None:
    with pytest.raises(ValueError, match="counts from 1"):
        forwarded_key(identities(REFUND), generation)
    with pytest.raises(ValueError, match="counts from 1"):
        marker(UUID(int=1), generation)


CLAIM = UUID("0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")


@pytest.mark.parametrize("generation", [1, 7, 999_999_999])
def test_a_marker_is_read_as_it_was_written(generation: int) -> None:
    text = marker(CLAIM, generation)
    assert text == f"cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_{generation}"
    assert read_marker(text) == (CLAIM, generation)


NO_MARKERS = [
    pytest.param("", id="nothing"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b", id="no generation"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_0", id="generation zero"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_01", id="a leading zero"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_1\n", id="a line end"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_١", id="a digit of another script"),  # noqa: RUF001
    pytest.param("cf_0199A1B2C3D47E5F8A9B0C1D2E3F4A5B_1", id="capitals"),
    pytest.param("see cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5b_1", id="a text that mentions one"),
    pytest.param("cf_0199a1b2c3d47e5f8a9b0c1d2e3f4a5_1", id="a digit too few"),
    pytest.param(f"cf_{CLAIM.hex}_{'9' * 5000}", id="a generation without end"),
]


@pytest.mark.parametrize("text", NO_MARKERS)
def test_only_exactly_what_we_wrote_is_a_marker(text: str) -> None:
    assert read_marker(text) is None
