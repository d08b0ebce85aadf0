"""Calls that are made a set at a time are what the record's own functions would have made."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from effects.core.identity import CallFacts, forwarded_key, identities
from effects.core.messages import ClaimRequest
from effects.core.vocabulary import ClaimState, EffectClass
from effects.models import Workspace
from ledger import claiming, queries, turns
from ledger.management.commands.verify_ledger import _run
from ledger.management.verification import checks, further_checks
from ledger.models import Claim, Due, Stream
from ledger.turn_parts import listing
from reconcile import listing as queue
from reconcile.sandbox import seeding
from reconcile.sandbox.seeding import Seed
from reconcile.views.filters import Filters
from tests.support.desk import a_workspace

pytestmark = pytest.mark.django_db

SMALL = Seed(claims=2000, undecided=200, attempts=60, large_bytes=10_000, further_tools=3)


def told(_sentence: str) -> None:
    """Nobody reads it here."""


def test_a_seeded_record_is_sound_in_every_check_and_its_identities_are_the_clients_own() -> None:
    shop = a_workspace()
    made = seeding.make(shop, SMALL, say=told)

    asked = [*checks(clock_may_move=True), *further_checks()]
    wrong = {each["sentence"]: each["differences"] for each in map(_run, asked)}
    assert {sentence: found for sentence, found in wrong.items() if found} == {}
    claims = Claim.objects.filter(workspace=shop).select_related("tool")
    assert claims.count() == SMALL.claims + 2
    for claim in [*claims.order_by("id")[:20], *claims.filter(pk__in=[made.often])]:
        ids = identities(
            CallFacts(
                workspace=shop.pk,
                tool=claim.tool.name,
                arguments=claim.arguments,
                conversation=claim.conversation,
                turn_index=claim.turn_index,
                position=claim.position,
                response_id=claim.response_id,
                call_id=claim.call_id,
            )
        )
        stored = (claim.scope, claim.turn, claim.call, claim.repeat, claim.arguments_digest)
        assert (ids.scope, ids.turn, ids.call, ids.repeat, ids.arguments) == tuple(
            None if one is None else bytes(one) for one in stored
        )
        assert claim.key_sent(1) == forwarded_key(ids, 1)


def test_whoever_asks_for_a_seeded_call_again_is_answered_with_its_result() -> None:
    shop = a_workspace()
    seeding.make(shop, SMALL, say=told)
    done = Claim.objects.filter(workspace=shop, state=ClaimState.COMPLETED, result_stored=True)[0]
    again = ClaimRequest(
        tool=done.tool.name,
        effect_class=EffectClass(done.effect_class),
        arguments=done.arguments or "",
        conversation=done.conversation,
        turn_index=done.turn_index,
        position=done.position,
        response_id=done.response_id,
        call_id=done.call_id,
    )
    answer = claiming.claim(shop.pk, again)
    assert (answer.code, answer.claim_id) == ("replayed", done.pk)
    assert json.loads(answer.result or "") == {"id": done.object}


def test_the_pages_show_what_was_seeded() -> None:
    shop = a_workspace()
    made = seeding.make(shop, SMALL, say=told)
    figures = queue.queue_page(shop.pk, Filters()).figures
    undecided = Due.objects.filter(workspace=shop, why="person").count()
    assert figures.unread == 0
    assert undecided == SMALL.undecided + 2
    turn = turns.turn(shop.pk, made.conversation(20), 3, now=queries.clock())
    assert len(turn.calls) == 2
    assert [len(turn.streams), Stream.objects.filter(conversation=turn.conversation).count()] == [
        1,
        8,
    ]
    long = listing.turns_of(shop.pk, made.long_conversation, 0, now=queries.clock())
    assert len(long.rows) == 10


def test_a_live_workspace_takes_no_made_up_calls() -> None:
    live = a_workspace()
    live.mode = Workspace.Mode.LIVE
    live.save()
    with pytest.raises(CommandError, match="Made-up calls belong into one whose mode is test"):
        call_command("sandbox", "seed", "--claims", "10", "--workspace", live.slug)
    assert not Claim.objects.exists()
