"""Cases about providers: each is judged as `make cases` judges it, and what they say to people."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from effects.core.answers import STRIPE_V1, Contract, classify_answer
from effects.core.problems import NotOffered, Stale
from effects.core.refusals import Reply as Answered
from effects.core.refusals import proves_refusal
from effects.core.vocabulary import ClaimState, EventKind, Outcome, Role, SightingWord, Verdict
from ledger import append, queries
from ledger.append import NewDecision
from reconcile.action_names import ActionName
from reconcile.actions import find, safe_actions
from reconcile.history import Names, line_of
from reconcile.models import WebhookDelivery
from reconcile.queries import call
from reconcile.runs import ending
from reconcile.second_person import Team
from reconcile.verdict import verdict
from tests.cases import bank, webhooks
from tests.cases.at_hand import the_case, the_cases
from tests.cases.judge import judge
from tests.cases.kinds import asks_providers
from tests.cases.polling import poll_until
from tests.cases.refusals import CODE
from tests.cases.stub import Reply
from tests.cases.world import Setting, World, a_world
from tests.support.situations import a_situation

pytestmark = pytest.mark.django_db(transaction=True)

PAYMENTS = Setting(lookup_kind="stripe.payment_intents")
ASKED = sorted(case.id for case in the_cases().values() if asks_providers(case))
NOBODY = Names(people={}, authors={}, verdicts={})


@pytest.mark.parametrize("case_id", ASKED)
def test_a_case_about_a_provider_comes_out_as_expected(case_id: str) -> None:
    assert judge(the_case(case_id)).failures == ()


WRONG: dict[str, dict[str, Any]] = {
    "P01": {"after_lookup": "outcome_unknown", "evidence": "ch_other"},
    "P02": {"states": ["in_flight", "outcome_unknown", "completed"]},
    "P04": {"state": "completed"},
    "P06": {"states": ["failed", "outcome_unknown"]},
    "P08": {"reconcile_result": "absent"},
    "P09": {"map": {"succeeded": "failed"}},
    "P10": {"states": ["failed"]},
    "P11": {"state": "failed"},
    "P14": {"responses": ["200 processed", "200 duplicate", "200 duplicate"]},
    "P15": {"state": "completed"},
    "P16": {"states": ["completed", "mismatch", "mismatch"]},
    "P17": {"ambiguous": [400], "definite_not_applied": []},
    "P18": {"state": "failed"},
}
"""One wrong expectation for each case: a judge that never disagrees is none."""


DONE = {"status": 200, "body": {"id": "pi_1", "status": "succeeded"}}
SHORTER: dict[str, dict[str, Any]] = {
    "P09": {"provider_replies": [DONE]},
    "P10": {"provider_replies": [DONE]},
    "P17": {"replies": [400]},
    "P18": {"poll": {"every_s": 3600, "max_age_s": 86_400}},
}
"""As much of a long case as its wrong expectation is about."""


def test_a_wrong_expectation_of_every_case_fails() -> None:
    assert sorted(WRONG) == ASKED
    for case_id, wrong in WRONG.items():
        case = the_case(case_id)
        expected = deepcopy(dict(case.expected))
        for name, said in wrong.items():
            expected[name] = {**expected[name], **said} if isinstance(said, dict) else said
        given = {**deepcopy(dict(case.input)), **SHORTER.get(case_id, {})}
        given.pop("variants", None)
        changed = {"id": "W", "kind": case.kind, "input": given, "expected": expected}

        assert judge(bank.understand(changed)).failures, case_id


UNREADABLE: dict[str, dict[str, Any]] = {
    "P10": {"operation": {"key": "k", "mapping": {"completed": "perhaps"}}},
    "P11": {"observations": []},
    "P14": {"sequence": [{"deliver": "evt_1", "inject": "a power cut"}]},
    "P15": {"variants": ["the moon is full"]},
    "P17": {"replies": ["a shrug"]},
    "P18": {"provider_replies": "sometimes {}"},
}


def test_what_nobody_can_read_fails_by_name() -> None:
    for case_id, odd in UNREADABLE.items():
        case = the_case(case_id)
        given = {**deepcopy(dict(case.input)), **odd}
        changed = {"id": "W", "kind": case.kind, "input": given, "expected": case.expected}
        failures = judge(bank.understand(changed)).failures

        assert any("input" in said or "expected" in said for said in failures), case_id


def unknown(world: World) -> None:
    world.later(1)
    world.report(Outcome.UNKNOWN)


def offered(world: World, name: ActionName) -> bool:
    situation = call(world.workspace.pk, world.claim_id).situation
    return find(safe_actions(situation, role=Role.ADMIN, team=Team()), name).offered


def said_of(world: World) -> str:
    return verdict(call(world.workspace.pk, world.claim_id).situation).says


@pytest.mark.case("P01")
def test_an_idempotency_error_proves_an_earlier_request_and_asks_for_no_new_key() -> None:
    with a_world(PAYMENTS) as world:
        body = {"error": {"type": "idempotency_error"}}
        _, failure, _ = world.send(Reply(status=400, body=body))
        assert failure is not None
        assert failure.outcome is Outcome.UNKNOWN
        assert "used before" in failure.why
        world.report(Outcome.UNKNOWN, http_status=400)

        assert world.claim.state == ClaimState.UNKNOWN
        assert world.claim.fresh_key is False
        assert world.claim.generation == 1
        assert next(one for one in ActionName if offered(world, one)) is ActionName.ASK


@pytest.mark.case("P02")
def test_a_request_that_is_still_at_work_is_waited_for_and_never_a_failure() -> None:
    for status, code in ((409, "idempotency_key_in_use"), (429, "lock_timeout")):
        said = classify_answer(Contract.STRIPE_V1, status, code, first_send=True, replayed=False)
        assert said is Outcome.UNKNOWN, code


@pytest.mark.case("P04")
def test_two_effects_without_a_key_offer_no_release_with_the_same_key() -> None:
    lookup: dict[str, Any] = {
        "url": "/log?reference={marker}",
        "items": "requests",
        "id": "object",
    }
    lookup |= {"status": "'logged'", "map": {"logged": "found"}, "delay_class": "none"}
    with a_world(Setting(lookup_kind="http", lookup=lookup)) as world:
        unknown(world)
        log = [{"id": f"req_{n}", "idempotency_key": None, "object": f"pi_{n}"} for n in (1, 2)]
        world.stub.pages = [Reply(status=200, body={"requests": log})]
        world.look()

        assert world.claim.state == ClaimState.CONFLICTED
        assert not offered(world, ActionName.RELEASE_SAME)


@pytest.mark.case("P05")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"window_until": a_situation().now - timedelta(hours=2)}, id="it has passed"),
        pytest.param({"window_until": None}, id="nobody published it"),
    ],
)
def test_once_a_key_may_be_forgotten_it_is_no_safe_way_to_try_again(changes: Any) -> None:
    actions = safe_actions(a_situation(**changes), role=Role.ADMIN, team=Team())

    assert not find(actions, ActionName.RELEASE_SAME).offered
    assert find(actions, ActionName.RELEASE_SAME).reason


@pytest.mark.case("P06")
def test_a_stored_error_is_shown_as_a_replay_and_asks_for_a_new_key() -> None:
    with a_world(PAYMENTS) as world:
        body = {"error": {"code": "balance_insufficient"}}
        for replayed in (False, True):
            headers = {"Idempotent-Replayed": "true"} if replayed else {}
            _, failure, _ = world.send(Reply(status=400, body=body, headers=headers))
            assert failure is not None
            world.report(failure.outcome, replayed=failure.replayed, http_status=400)
            world.later(10)
        lines = [
            line_of(event, NOBODY).words
            for event in queries.events(world.claim)
            if event.kind == EventKind.REPORTED
        ]

        assert world.claim.state == ClaimState.NOT_EXECUTED
        assert "refused by the provider" in lines[0]
        assert "the provider's saved answer" in lines[1]
        assert world.claim.fresh_key, "the next attempt takes another key"
        first_500 = classify_answer(Contract.STRIPE_V1, 500, None, first_send=True, replayed=False)
        replayed_500 = classify_answer(
            Contract.STRIPE_V1, 500, None, first_send=False, replayed=True
        )
        assert first_500 is replayed_500 is Outcome.UNKNOWN


@pytest.mark.case("P08")
def test_a_404_is_a_look_up_that_is_set_up_wrongly_and_is_asked_slowly() -> None:
    with a_world(replace(PAYMENTS, account="acct_Seller9")) as world:
        unknown(world)
        world.later(3600)
        body = {"error": {"code": "resource_missing", "type": "invalid_request_error"}}
        world.stub.pages = [Reply(status=404, body=body)]
        looked = world.look()

        assert looked.word is SightingWord.MISCONFIGURED
        assert any("/v1/account" in asked for asked in world.stub.asked), "whose secret it is"
        assert looked.next_at is None or looked.next_at - world.clock.now >= timedelta(minutes=15)
        assert world.claim.state == ClaimState.UNKNOWN
        assert "set up wrongly" in said_of(world)


@pytest.mark.case("P09")
def test_only_what_is_final_settles_and_the_providers_own_word_is_kept() -> None:
    for status in ("processing", "requires_action", "requires_payment_method", "half_done"):
        with a_world(PAYMENTS) as world:
            unknown(world)
            world.later(3600)
            world.stub.pages = [Reply(status=200, body={"id": "pi_Fir1", "status": status})]
            world.look()

            assert world.claim.state == ClaimState.UNKNOWN, status
            assert status in str(world.sightings[-1].data), status


@pytest.mark.case("P10")
def test_a_word_that_nobody_mapped_is_quoted_and_settles_nothing() -> None:
    lookup = {"url": "/status?reference={marker}", "map": {"completed": "found"}}
    with a_world(Setting(lookup_kind="http", lookup=lookup)) as world:
        unknown(world)
        world.stub.pages = [Reply(status=200, body={"id": "l_1", "status": "awaiting_carrier"})]
        looked = world.look()

        assert looked.word is SightingWord.UNMAPPED
        assert "awaiting_carrier" in looked.why
        assert (world.sightings[-1].counts, world.claim.state) == (False, ClaimState.UNKNOWN)


@pytest.mark.case("P11")
def test_a_failure_of_the_same_second_is_read_afresh_and_one_event_is_one_observation() -> None:
    said = [dict(one) for one in the_case("P11").input["observations"]]
    with webhooks.a_door("payment_intents") as door:
        webhooks.play(door, said[:3])
        before = len(door.world.stub.asked)
        words = [event.word for event in door.world.sightings]
        webhooks.play(door, said[3:])

        assert words == [SightingWord.FOUND], "the older failure says nothing, the copy nothing new"
        assert before == 0
        assert len(door.world.stub.asked) > before, "the doubtful one is read afresh"
        assert door.world.claim.state == ClaimState.COMPLETED


@pytest.mark.case("P14")
def test_an_event_that_failed_is_seen_and_is_no_duplicate() -> None:
    with webhooks.a_door("payment_intents") as door:
        assert webhooks.deliver(door, "evt_1", broken=True) == "202 parked"
        failed = WebhookDelivery.objects.get()
        assert failed.state == WebhookDelivery.State.FAILED
        assert "the disk is full" in failed.note
        assert webhooks.deliver(door, "evt_1") == "200 processed"
        assert webhooks.deliver(door, "evt_1") == "200 duplicate"
        assert len(door.world.sightings) == 1


@pytest.mark.case("P15")
def test_all_pages_are_read_and_both_objects_are_named() -> None:
    with a_world(PAYMENTS) as world:
        unknown(world)
        world.later(3600)
        world.stub.pages = [
            Reply(status=200, body={"data": [{"id": f"pi_{n}", "status": "succeeded"}]})
            for n in (1, 2)
        ]
        world.look()

        assert any("starting_after" in asked for asked in world.stub.asked)
        assert world.claim.state == ClaimState.CONFLICTED
        assert all(name in said_of(world) for name in ("pi_1", "pi_2"))


@pytest.mark.case("P15")
def test_a_second_payment_that_was_canceled_moved_nothing_and_is_named_beside_the_first() -> None:
    with a_world(PAYMENTS) as world:
        unknown(world)
        world.later(3600)
        data = [{"id": "pi_1", "status": "succeeded"}, {"id": "pi_2", "status": "canceled"}]
        world.stub.pages = [Reply(status=200, body={"data": data})]
        world.look()

        assert (world.claim.state, world.claim.object) == (ClaimState.COMPLETED, "pi_1")
        assert world.sightings[-1].data["others"] == ["pi_2"]


@pytest.mark.case("P16")
def test_what_was_requested_stands_beside_what_was_found() -> None:
    arguments = {"cents": 8800, "currency": "chf"}
    with a_world(replace(PAYMENTS, arguments=arguments)) as world:
        unknown(world)
        world.later(3600)
        less = {"id": "pi_1", "status": "succeeded", "amount": 8800, "amount_received": 8350}
        world.stub.pages = [Reply(status=200, body=less)]
        world.look()
        data = world.sightings[-1].data

        assert world.claim.state == ClaimState.UNKNOWN
        assert (data["requested"]["amount"], data["found"]["amount"]) == ("88.00", "83.50")
        assert (data["meaning"], data["rule"]) == ("differs", "found_different")


@pytest.mark.case("P17")
def test_the_body_outranks_the_status_and_a_gateway_is_not_the_provider() -> None:
    reused = Answered(status=400, body={"error": {"type": "idempotency_error"}}, first_send=True)
    ours = replace(reused, body={"error": {"code": CODE}})
    hosts = STRIPE_V1.narrowed(hosts=frozenset({"api.stripe.com"}))

    assert proves_refusal(reused, STRIPE_V1).outcome is Outcome.UNKNOWN
    assert proves_refusal(ours, STRIPE_V1).outcome is Outcome.REFUSED
    elsewhere = replace(ours, host="gateway.example")
    assert proves_refusal(elsewhere, hosts).outcome is Outcome.UNKNOWN
    at_home = replace(ours, host="api.stripe.com")
    assert proves_refusal(at_home, hosts).outcome is Outcome.REFUSED


@pytest.mark.case("P17")
def test_what_we_hold_otherwise_about_statuses() -> None:
    def of(contract: Contract, status: int) -> Outcome:
        return classify_answer(contract, status, CODE, first_send=True, replayed=False)

    assert of(Contract.GENERIC, 429) is Outcome.REFUSED, "a limiter answers before the work"
    assert of(Contract.GENERIC, 402) is Outcome.UNKNOWN
    assert of(Contract.GENERIC, 410) is Outcome.UNKNOWN
    assert of(Contract.STRIPE_V1, 402) is Outcome.REFUSED_STORED


@pytest.mark.case("P18")
def test_when_asking_ends_it_is_said_once_and_a_person_may_begin_anew() -> None:
    lookup = {"url": "/status?reference={marker}", "map": {"queued": "pending"}, "id": "'it'"}
    setting = Setting(lookup_kind="http", lookup=lookup, policy={"horizon_days": 1})
    with a_world(setting) as world:
        until = world.clock.now + timedelta(days=3)
        looks = poll_until(world, Reply(status=200, body={"status": "queued"}), until)
        end = ending.of_call(world.workspace.pk, world.claim_id)

        assert looks > 3
        assert world.claim.state == ClaimState.UNKNOWN
        assert end is not None
        assert end.open
        assert end.ended_at <= world.clock.now - timedelta(days=1)
        assert not ending.ended(world.workspace.pk, world.claim_id, world.clock.now, why="again"), (
            "it is said once"
        )
        assert ending.restart(world.workspace.pk, world.claim_id, user_id=world.person.pk)


@pytest.mark.case("P20")
def test_of_two_people_who_release_one_call_at_once_one_is_refused_and_one_attempt_is_granted() -> (
    None
):
    with a_world(PAYMENTS) as world:
        unknown(world)
        version = world.claim.version

        def release() -> None:
            decision = NewDecision(
                verdict=Verdict.RELEASE_SAME,
                claim_version=version,
                reason="try once more",
                user_id=world.person.pk,
                hold_seconds=0,
            )
            append.decide(world.workspace.pk, world.claim_id, decision)

        release()
        with pytest.raises((Stale, NotOffered)):
            release()
        first, second = (world.ask({}) for _ in range(2))

        assert (first.key, first.fence) == (world.answer.key, 2)
        assert second.fence != 3, "one release is one more attempt"
        assert world.claim.fence == 2
