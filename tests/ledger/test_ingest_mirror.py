"""A ledger that is kept elsewhere, mirrored by events alone, in whatever order they come."""

import itertools
import json
import random

import pytest
from django.db import transaction

from effects.core.messages import ClaimRequest, Fail
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    EventKind,
    Flag,
    Outcome,
)
from ledger import append, claiming, ingest, ingest_apply, queries
from ledger.ingest_reading import EVENTS, read_item
from ledger.management.verification import checks
from ledger.models import Claim, Event, IngestItem
from tests.ledger.mirror import claim_made, ended, event, started, tell, words

D14 = (
    claim_made(),
    started(attempt="a1", second=1),
    started(attempt="a2", second=2),
    started(attempt="a3", second=3),
    ended("unknown", attempt="a1", second=4, error="boom"),
    ended("unknown", attempt="a2", second=5, error="boom"),
    ended("completed", attempt="a3", second=6, provider_object="re_1", result='{"ok":1}'),
)
"""At least once inside one step: three attempts of one claim, and only the last says how it was."""

DECIDED_BY_FACTS = (
    claim_made(),
    started(attempt="a1", second=1),
    event("s1", "attempt.sent", time="2026-03-02T10:00:02Z", claim="k1", attempt="a1"),
    ended("failed", attempt="a1", second=3, proof="refused_stored", http_status=402),
    started(attempt="a2", second=4, key="another key"),
    ended("failed", attempt="a2", second=5, proof="not_sent"),
)
TWO_EFFECTS = (
    claim_made(),
    started(attempt="a1", second=1),
    started(attempt="a2", second=2),
    ended("completed", attempt="a1", second=3, provider_object="re_1", result='{"id":"re_1"}'),
    ended("completed", attempt="a2", second=4, provider_object="re_2", result='{"id":"re_2"}'),
)
SAID_BOTH = (
    claim_made(key="k"),
    started(attempt="a1", second=1),
    ended("failed", attempt="a1", second=2, proof="refused"),
    ended("completed", attempt="a1", second=3, provider_object="re_1", result="1"),
)

ROW = (
    *("state", "reason", "fence", "budget", "open_truth", "object", "result", "result_stored"),
    *("sent_key", "flags", "conversation", "turn_index", "effect_class", "fresh_key"),
)


def the_claim():
    return Claim.objects.get()


def timeline(claim):
    """What was said of the claim, by the clock of whoever said it, whatever its fences."""
    found = Event.objects.filter(claim_id=claim.pk).exclude(kind=EventKind.LAPSED)
    return sorted(
        (
            (e.data or {}).get("said_at", ""),
            (e.data or {}).get("attempt", ""),
            "started" if e.kind == EventKind.GRANTED and e.fence > 1 else str(e.kind),
            e.word or "",
            e.object or "",
        )
        for e in found
    )


def told():
    """What the events amount to: the row, and the lines."""
    claim = the_claim()
    row = {name: getattr(claim, name) for name in ROW}
    row["window"] = claim.window_until is not None and claim.window_until.isoformat()
    lines = timeline(claim)
    return row, lines


@pytest.mark.parametrize(
    ("story", "state", "attempts", "open_truth"),
    [
        pytest.param(D14, ClaimState.COMPLETED, 3, True, id="three attempts, the last completed"),
        pytest.param(DECIDED_BY_FACTS, ClaimState.NOT_EXECUTED, 2, False, id="refused, not sent"),
        pytest.param(TWO_EFFECTS, ClaimState.CONFLICTED, 2, False, id="two effects"),
        pytest.param(SAID_BOTH, ClaimState.COMPLETED, 1, False, id="one attempt said no and yes"),
    ],
)
def test_the_order_of_arrival_makes_no_difference(shop, refund, story, state, attempts, open_truth):
    shuffled = random.Random(state)
    outcomes = []
    for turn in range(12):
        sent = list(story) * 2
        if turn:
            shuffled.shuffle(sent)
        with transaction.atomic():
            # In batches of every size, so that orphans park across requests.
            for batch in itertools.batched(sent, 1 + turn % 4):
                tell(shop.pk, *batch)
            outcomes.append(told())
            claim = the_claim()
            assert (claim.state, claim.fence, claim.open_truth) == (state, attempts, open_truth)
            assert not IngestItem.objects.exclude(state="applied").exists()
            differences = [d for check in checks(clock_may_move=True) for d in check.find()]
            assert differences == []
            transaction.set_rollback(True)
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_a_claim_elsewhere_is_unknown_once_its_lease_is_over(shop, refund, pass_time):
    assert words(shop.pk, claim_made(), started()) == ["applied", "applied"]
    assert the_claim().state == ClaimState.IN_FLIGHT

    pass_time(seconds=refund.lease_seconds + 1)
    append.sweep(10)

    claim = the_claim()
    assert claim.state == ClaimState.UNKNOWN
    assert Flag.MIRRORED in claim.flags
    assert (claim.fence, claim.open_truth) == (1, True)


def test_late_truth_reopens_and_a_second_effect_conflicts(shop, refund, pass_time):
    tell(shop.pk, claim_made(), started(), ended("failed", proof="not_sent"))
    assert the_claim().state == ClaimState.NOT_EXECUTED

    tell(shop.pk, ended("completed", provider_object="re_1"))
    claim = the_claim()
    assert (claim.state, claim.reason) == (ClaimState.COMPLETED, "told_otherwise")

    tell(shop.pk, started(attempt="a2"), ended("completed", attempt="a2", provider_object="re_2"))
    assert the_claim().state == ClaimState.CONFLICTED


def asked(**changes):
    usual = claim_made()["data"] | {"effect_class": EffectClass.KEYED_WRITE}
    usual.pop("claim")
    return ClaimRequest(**(usual | changes))


def test_an_agent_that_claims_the_same_operation_is_answered_from_it(shop, refund):
    tell(shop.pk, claim_made(), started())
    assert claiming.claim(shop.pk, asked()).code is AnswerCode.IN_FLIGHT

    tell(shop.pk, ended("completed", provider_object="re_1", result='{"id": "re_1"}'))
    answer = claiming.claim(shop.pk, asked())
    assert (answer.code, answer.result) == (AnswerCode.REPLAYED, '{"id": "re_1"}')


def test_a_claim_elsewhere_attaches_to_the_one_that_was_made_here(shop, refund):
    granted = claiming.claim(shop.pk, asked())
    first = tell(shop.pk, claim_made())[0]
    assert (first.word, first.reason) == ("applied", "attached")
    assert first.claim_id == str(granted.claim_id)

    tell(shop.pk, started(fence=1))
    assert the_claim().fence == 1, "the attempt that was granted here is no second one"
    tell(shop.pk, started(attempt="a2"))
    claim = the_claim()
    assert claim.fence == 2
    assert claim.generation == 1
    newest = Event.objects.get(claim_id=claim.pk, fence=2)
    assert ((newest.data or {})["ungranted"], newest.generation) == (True, -2)


def test_a_refusal_under_our_key_says_nothing_about_an_attempt_with_another(shop, refund):
    granted = claiming.claim(shop.pk, asked())
    tell(shop.pk, claim_made(), started(attempt="a2", key="theirs"))
    assert granted.claim_id
    report = Fail(fence=1, proof=Outcome.REFUSED_STORED)
    append.report(shop.pk, granted.claim_id, Outcome.REFUSED_STORED, report)

    assert the_claim().open_truth, "the other attempt is still open"


@pytest.mark.parametrize(
    ("keys", "window"),
    [
        pytest.param({"claim": "K"}, True, id="the claim names its key"),
        pytest.param({"claim": "K", "a2": "K"}, True, id="and so does an attempt, the same"),
        pytest.param({}, False, id="nobody named a key"),
        pytest.param({"claim": "K", "a2": "L"}, False, id="an attempt sent another"),
        pytest.param({"a1": "K", "a2": "K"}, True, id="both attempts the same"),
        pytest.param({"a1": "K"}, False, id="one attempt did not say"),
    ],
)
def test_a_retry_is_called_safe_only_with_the_key_that_every_attempt_sent(
    shop, refund, keys, window
):
    tell(
        shop.pk,
        claim_made(key=keys.get("claim")),
        *(
            started(attempt=a, key=keys[a]) if a in keys else started(attempt=a)
            for a in ("a1", "a2")
        ),
    )
    claim = the_claim()
    assert (claim.window_until is not None) is window
    assert claim.sent_key == ("K" if window else None)
    if window:
        assert claim.window_until.isoformat() == "2026-03-03T10:00:00+00:00"


def test_a_release_with_the_same_key_hands_out_the_key_that_was_sent(shop, refund):
    now = queries.clock().isoformat()
    made = claim_made(key="their-key") | {"time": now}
    tell(shop.pk, made, started() | {"time": now}, ended("failed", proof="not_sent"))

    answer = claiming.claim(shop.pk, asked())
    assert (answer.code, answer.key) == (AnswerCode.GRANTED, "their-key")
    assert (answer.fence, answer.generation) == (2, 1)


def test_a_read_is_recorded_and_makes_no_claim(shop, lookup):
    made = claim_made(tool="lookup", effect_class="read")
    assert words(shop.pk, made, started(), ended("completed")) == ["recorded"] * 3
    assert not Claim.objects.exists()


def test_what_has_run_is_recorded_even_where_a_request_like_it_would_be_refused(shop, refund):
    tell(
        shop.pk,
        claim_made("no-turn", conversation=None, turn_index=None),
        claim_made("bad", arguments='{"a": 1, "a": 2}', turn_index=9, call_id=None),
        claim_made("none", arguments=None, turn_index=10, call_id=None),
    )
    flags = {claim.turn_index: claim.flags for claim in Claim.objects.all()}
    assert Flag.ARGUMENTS_UNREADABLE in flags[9]
    assert Flag.ARGUMENTS_UNREADABLE not in flags[None]
    assert len(flags) == 3


def test_the_same_id_with_other_arguments_is_an_operation_of_its_own(shop, refund):
    tell(shop.pk, claim_made(), claim_made("k2", arguments='{"charge":"ch_2"}', turn_index=4))
    first, second = Claim.objects.order_by("id")
    assert (first.call is not None, second.call) == (True, None)
    assert Flag.WEAK_TOOL_CALL_ID in second.flags


def test_one_response_reported_twice_is_one_operation(shop, refund):
    tell(
        shop.pk,
        claim_made("e1", call_id="toolu_1"),
        claim_made("e2", call_id="toolu_1", position=1, ordinal=1),
        claim_made("e3", call_id="toolu_2", position=2, arguments='{"to":"b"}'),
        claim_made("e4", call_id="toolu_1", position=3, ordinal=3),
    )
    assert Claim.objects.count() == 2


def test_a_sighting_of_somebody_else_is_shown_and_settles_nothing(shop, refund):
    tell(shop.pk, claim_made(), started(), ended("unknown"))
    found = event("f", "provider.sighted", claim="k1", word="found", objects=["re_1"])
    assert words(shop.pk, found, found) == ["applied", "duplicate"]
    claim = the_claim()
    assert claim.state == ClaimState.UNKNOWN
    (sighting,) = queries.sightings(claim)
    assert (sighting.counts, sighting.objects_seen) == (False, ["re_1"])


def test_a_note_elsewhere_is_a_note_here(shop, refund):
    tell(shop.pk, event("n", "claim.noted", claim="k1", text="called them", by="Bo"), claim_made())
    assert (Event.objects.get(kind=EventKind.NOTED).data or {})["text"] == "called them"


def test_names_mean_nothing_to_another_source_or_workspace(shop, neighbour, refund):
    tell(shop.pk, claim_made())
    other = started() | {"source": "urn:agent:other"}
    assert words(shop.pk, other) == ["parked"]
    assert words(neighbour.pk, started()) == ["parked"]


# Applying that fails


def test_a_failed_application_is_tried_again_and_never_called_a_duplicate(
    shop, refund, monkeypatch
):
    real, failures = ingest_apply.apply_message, [RuntimeError("the disk was full")]

    def breaks_once(*args):
        if failures:
            raise failures.pop()
        return real(*args)

    monkeypatch.setattr(ingest, "apply_message", breaks_once)
    assert words(shop.pk, claim_made()) == ["failed"]
    assert IngestItem.objects.get().reason == "apply_failed"
    assert words(shop.pk, claim_made()) == ["applied"]
    assert words(shop.pk, claim_made()) == ["duplicate"]


def test_an_orphan_that_fails_does_not_take_its_parent_with_it(shop, refund, monkeypatch):
    tell(shop.pk, started())
    real = ingest_apply.apply_message

    def breaks(workspace_id, item_id, item, exact):
        if item.type == "attempt.started":
            raise RuntimeError
        return real(workspace_id, item_id, item, exact)

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "apply_message", breaks)
        assert words(shop.pk, claim_made()) == ["applied"]
    assert IngestItem.objects.get(type="attempt.started").state == "failed"

    IngestItem.objects.update(last_seen_at=queries.clock().replace(year=2020))
    assert ingest.retry(10) == 1
    assert IngestItem.objects.get(type="attempt.started").state == "applied"


def test_an_item_whose_request_died_before_it_was_applied_is_picked_up(shop, refund):
    ingest.keep(shop.pk, None, EVENTS, [read_item(json.dumps(claim_made()).encode(), EVENTS)])
    assert ingest.retry(10) == 0, "its own request may still be at it"

    IngestItem.objects.update(last_seen_at=queries.clock().replace(year=2020))
    assert ingest.retry(10) == 1
    assert the_claim().state == ClaimState.IN_FLIGHT
