"""`POST claims:offline`: what was sent while nobody could ask, told once, twice and in parts."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from django.db import IntegrityError, transaction

from effects.core.claim_rows import call_facts, read_rules
from effects.core.identity import forwarded_key, identities
from effects.core.messages import ClaimRequest, OfflineTerms
from effects.core.vocabulary import ClaimState, EffectClass, TokenScope
from effects.models import Tool
from ledger import append, queries
from ledger.claiming import forget_tools
from ledger.models import Claim, IngestItem
from tests.ledger.test_verify_ledger import verify
from tests.support.agents import Agent, asked

pytestmark = pytest.mark.django_db

ATTEMPT: Final = "0123456789abcdef0123456789abcdef"
OTHER: Final = "fedcba9876543210fedcba9876543210"


@pytest.fixture(autouse=True)
def opted_in(refund: Tool) -> Tool:
    refund.sends_offline = True
    refund.argument_rules = {"volatile": ["trace"]}
    refund.save()
    forget_tools()
    return refund


def key_of(tool: Tool, **changes: Any) -> str:
    """As a client makes it, from what the ledger told it of the tool."""
    request = ClaimRequest.model_validate_json(json.dumps(asked(**changes)))
    rules = read_rules(tool.argument_rules)
    return forwarded_key(identities(call_facts(tool.workspace_id, request, rules)), 1)


def told(tool: Tool, attempt: str = ATTEMPT, **end: Any) -> dict[str, Any]:
    said = {
        "workspace": tool.workspace_id,
        "attempt": attempt,
        "key": key_of(tool),
        "claimed_at": datetime.now(UTC).isoformat(),
        "request": asked(),
    }
    return said if not end else {**said, "end": ended(**end)}


def ended(outcome: str = "completed", **more: Any) -> dict[str, Any]:
    return {"fence": 1, "outcome": outcome, "ended_at": datetime.now(UTC).isoformat(), **more}


def attempts(claim: Claim) -> list[dict[str, Any]]:
    return [
        {"fence": e.fence, "generation": e.generation, "ungranted": "ungranted" in (e.data or {})}
        for e in queries.events(claim)
        if e.kind == "granted"
    ]


def events(claim: Claim) -> list[tuple[str, int, str | None]]:
    return [(str(e.kind), e.fence, e.word and str(e.word)) for e in queries.events(claim)]


def test_an_answer_says_the_terms_of_a_tool_that_opted_in_whatever_it_grants(
    agent: Agent, refund: Tool
) -> None:
    terms = OfflineTerms(
        workspace=refund.workspace_id,
        window_seconds=86_400,
        margin_seconds=refund.margin_seconds,
        lease_seconds=refund.lease_seconds,
        argument_rules={"volatile": ["trace"]},
    ).model_dump(mode="json")
    first, again = agent.claim(), agent.claim()
    assert (first.status, first.json["offline"]) == (201, terms)
    assert (again.status, again.json["answer"]["offline"]) == (409, terms)
    batch = agent.post("claims:batch", {"claims": [asked(turn_index=8, call_id=None)]})
    assert batch.json["answers"][0]["answer"]["offline"] == terms
    Tool.objects.update(sends_offline=False, version=2)
    assert "offline" not in agent.claim(turn_index=9, call_id=None).json


def test_what_was_sent_offline_becomes_a_claim_that_nobody_granted(
    agent: Agent, refund: Tool
) -> None:
    said = told(refund, outcome="completed", provider_object="re_1", result='{"id": "re_1"}')
    answer = agent.post("claims:offline", said)
    assert answer.status == 200, answer.json
    assert (answer.json["state"], answer.json["provider_object"]) == ("completed", "re_1")
    claim = Claim.objects.get()
    assert attempts(claim) == [{"fence": 1, "generation": 1, "ungranted": True}]
    assert (claim.sent_key, claim.effect_class) == (key_of(refund), EffectClass.KEYED_WRITE)
    # Who asks the same from now on gets the result, and the key finds the claim.
    repeat = agent.claim(call_id=None)
    assert (repeat.status, repeat.json["code"]) == (200, "replayed")
    assert repeat.json["result"] == '{"id": "re_1"}'
    found = agent.get(f"claims?key={key_of(refund)}")
    assert found.json["claim_id"] == str(claim.pk)


def test_told_twice_and_in_two_parts_it_is_one_attempt(agent: Agent, refund: Tool) -> None:
    begun = told(refund)
    whole = {**begun, "end": ended(provider_object="re_1")}
    for said in (begun, begun, whole, whole, begun):
        assert agent.post("claims:offline", said).status == 200
    claim = Claim.objects.get()
    assert attempts(claim) == [{"fence": 1, "generation": 1, "ungranted": True}]
    assert [e for e in events(claim) if e[0] == "reported"] == [("reported", 1, "completed")]
    assert set(IngestItem.objects.values_list("state", flat=True)) == {"applied"}
    assert IngestItem.objects.count() == 3


def test_the_end_alone_says_everything(agent: Agent, refund: Tool) -> None:
    agent.post("claims:offline", told(refund, outcome="completed", provider_object="re_1"))
    assert Claim.objects.get().state is ClaimState.COMPLETED


def test_without_an_end_it_is_in_flight_until_its_lease_is_over_and_then_unknown(
    agent: Agent, refund: Tool, pass_time: Any
) -> None:
    assert agent.post("claims:offline", told(refund)).json["state"] == "in_flight"
    pass_time(seconds=refund.lease_seconds + 1)
    append.sweep(10)
    claim = Claim.objects.get()
    assert claim.state is ClaimState.UNKNOWN
    agent.post("claims:offline", told(refund) | {"end": ended(provider_object="re_1")})
    assert Claim.objects.get().state is ClaimState.COMPLETED, "a late report is the truth"


def test_the_safe_retry_window_counts_from_when_it_was_sent(agent: Agent, refund: Tool) -> None:
    sent_at = datetime.now(UTC) - timedelta(hours=3)
    said = told(refund, outcome="unknown", error="ReadTimeout")
    agent.post("claims:offline", {**said, "claimed_at": sent_at.isoformat()})
    claim = Claim.objects.get()
    assert claim.window_until is not None
    assert abs(claim.window_until - sent_at - timedelta(days=1)) < timedelta(seconds=1)


def test_a_grant_whose_answer_was_lost_and_the_call_that_went_on_are_one_claim(
    agent: Agent, refund: Tool
) -> None:
    granted = agent.claim()
    assert granted.json["key"] == key_of(refund), "the client makes the key that the ledger gives"
    answer = agent.post("claims:offline", told(refund, outcome="completed", provider_object="re_1"))
    assert (answer.json["claim_id"], answer.json["state"]) == (
        granted.json["claim_id"],
        "completed",
    )
    assert attempts(Claim.objects.get()) == [
        {"fence": 1, "generation": 1, "ungranted": False},
        {"fence": 2, "generation": 1, "ungranted": True},
    ]


@pytest.mark.parametrize(
    ("objects", "state"),
    [(("re_1", "re_1"), "completed"), (("re_1", "re_2"), "conflicted")],
    ids=["one object", "two objects"],
)
def test_two_agents_that_both_went_on_are_two_attempts_of_one_claim(
    agent: Agent, refund: Tool, objects: tuple[str, str], state: str
) -> None:
    for attempt, provider_object in zip((ATTEMPT, OTHER), objects, strict=True):
        said = told(refund, attempt, outcome="completed", provider_object=provider_object)
        agent.post("claims:offline", said)
    assert str(Claim.objects.get().state) == state
    assert attempts(Claim.objects.get()) == [
        {"fence": fence, "generation": 1, "ungranted": True} for fence in (1, 2)
    ]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        ("not_sent", "not_executed"),
        ("refused", "not_executed"),
        ("refused_stored", "not_executed"),
        ("unknown", "unknown"),
    ],
)
def test_an_end_proves_what_it_proves_of_any_attempt(
    agent: Agent, refund: Tool, outcome: str, state: str
) -> None:
    answer = agent.post("claims:offline", told(refund, outcome=outcome, http_status=400))
    assert answer.json["state"] == state


def test_a_result_that_no_item_can_hold_costs_the_result_and_not_the_effect(
    agent: Agent, refund: Tool
) -> None:
    result = json.dumps('"' * 400_000 + "é" * 100_000)
    answer = agent.post(
        "claims:offline",
        told(refund, outcome="completed", provider_object="re_1", result=result),
    )
    assert (answer.json["state"], answer.json["result_stored"]) == ("completed", False)


def test_what_was_made_for_another_workspace_is_refused_and_not_recorded(
    agent: Agent, refund: Tool
) -> None:
    answer = agent.post("claims:offline", {**told(refund), "workspace": refund.workspace_id + 1})
    assert (answer.status, answer.json["code"]) == (400, "bad_request")
    assert not Claim.objects.exists()
    assert not IngestItem.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": "a"},
        {"claimed_at": "2026-01-01T00:00:00"},
        {"end": {"outcome": "completed"}},
        {"key": ""},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_not_well_formed_is_refused_and_says_where(
    agent: Agent, refund: Tool, change: dict[str, Any]
) -> None:
    answer = agent.post("claims:offline", told(refund) | change)
    assert (answer.status, answer.json["code"]) == (422, "input_invalid")
    assert next(iter(change)) in json.dumps(answer.json["errors"])


def test_only_a_token_that_may_claim_may_tell_of_it(hire: Any, refund: Tool) -> None:
    reader = hire(refund.workspace, TokenScope.READ, TokenScope.INGEST)
    assert reader.post("claims:offline", told(refund)).status == 403


def test_a_tool_that_opted_out_meanwhile_loses_no_evidence(agent: Agent, refund: Tool) -> None:
    Tool.objects.update(sends_offline=False, argument_rules={}, version=2)
    answer = agent.post("claims:offline", told(refund, outcome="completed", provider_object="re_1"))
    assert answer.json["state"] == "completed"


@pytest.mark.parametrize(
    "settings",
    [
        {"effect_class": EffectClass.UNKEYED_WRITE},
        {"window_seconds": None},
    ],
    ids=str,
)
def test_the_database_takes_the_opt_in_only_with_a_key_and_a_window(
    refund: Tool, settings: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match="tool_offline_has_window"), transaction.atomic():
        Tool.objects.filter(pk=refund.pk).update(**settings)


def test_the_record_verifies_with_attempts_that_nobody_granted(agent: Agent, refund: Tool) -> None:
    agent.claim()
    agent.post("claims:offline", told(refund, outcome="unknown"))
    agent.post("claims:offline", told(refund, OTHER, outcome="completed", provider_object="re_1"))
    assert verify("--all", "--clock-may-move") == (True, {})
