"""What was told and turns out otherwise: noted with the change, told to whoever was told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from effects.core.messages import Complete
from effects.core.vocabulary import ClaimState, Outcome, Role, SightingWord, Verdict
from ledger import append, queries
from ledger.append import NewDecision, Observation
from reconcile.late import alerts
from reconcile.models import Alert, Contradiction
from tests.reconcile.finding_out import WORKING_SECONDS, Shop, open_shop
from tests.support.desk import a_person, a_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


def decide(shop: Shop, claim_id: UUID, verdict: Verdict, person: User, **more: Any) -> int:
    claim = queries.claim(shop.workspace.pk, claim_id)
    decision = NewDecision(
        verdict=verdict,
        claim_version=claim.version,
        reason="Looked it up by hand.",
        user_id=person.pk,
        hold_seconds=0,
        **more,
    )
    return append.decide(shop.workspace.pk, claim_id, decision).decision_id


def told_not_executed_and_paid(shop: Shop, **claiming: Any) -> UUID:
    """A payment that everybody holds not to have happened, and that the provider has by now."""
    answer = shop.claim(shop.charge, **claiming)
    claim_id = shop.unknown(answer)
    shop.past(WORKING_SECONDS + 10)
    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED
    shop.pay(answer)
    return claim_id


def test_an_effect_after_did_not_happen_is_noted_with_the_change_and_alerts_the_agent_once(
    shop: Shop,
) -> None:
    claim_id = told_not_executed_and_paid(shop, worker="worker-7")

    shop.look(claim_id)
    assert not Contradiction.objects.exists(), "one answer alone turns nothing round"
    shop.past(3)
    shop.look(claim_id)
    alerts.tick()
    alerts.tick()

    contradiction = Contradiction.objects.get()
    claim = queries.claim(shop.workspace.pk, claim_id)
    assert (claim.state, claim.reason) == (ClaimState.COMPLETED, "told_otherwise")
    assert (contradiction.told, contradiction.became) == ("not_executed", "completed")
    assert contradiction.version == shop.sightings(claim_id)[-1].seq
    (alert,) = alerts.alerts_since(shop.workspace.pk)
    assert (alert.agent, alert.person, alert.decision_id) == ("worker-7", None, None)


# Where mail is set up, the product's settings name its server; here Django's own box takes it.
@pytest.mark.filterwarnings("ignore::django.utils.deprecation.RemovedInDjango2028Warning")
def test_whoever_decided_is_told_by_mail_and_the_decision_counts_as_later_contradicted(
    shop: Shop, settings: Any
) -> None:
    settings.COUNTERFOIL_MAIL = True
    ilse = a_person(shop.workspace, Role.LEAD, "ilse")
    ilse.email = "ilse@example.com"
    ilse.save()
    since = queries.clock() - timedelta(days=1)
    right, wrong = (shop.unknown(shop.claim(shop.charge)) for _ in range(2))
    decide(shop, right, Verdict.NOT_HAPPENED, ilse)
    decision_id = decide(shop, wrong, Verdict.CLOSE, ilse)
    append.sweep(10)
    assert alerts.later_contradicted(shop.workspace.pk, since=since).of == 2

    append.observe(
        shop.workspace.pk,
        wrong,
        Observation(word=SightingWord.FOUND, fence=1, counts=True, objects=("pi_1",)),
    )
    alerts.tick()
    alerts.tick()

    assert shop.state(wrong) is ClaimState.COMPLETED
    raised = list(alerts.alerts_since(shop.workspace.pk))
    assert [(one.person, one.agent) for one in raised] == [(ilse, ""), (None, alerts.AN_AGENT)]
    assert {one.decision_id for one in raised} == {decision_id}
    (sent,) = mail.outbox
    assert sent.to == ["ilse@example.com"]
    assert str(wrong) in sent.body
    share = alerts.later_contradicted(shop.workspace.pk, since=since)
    assert (share.contradicted, share.of, share.percent) == (1, 2, 50.0)
    assert alerts.later_contradicted(shop.workspace.pk, since=queries.clock()).percent is None


def test_a_late_report_of_the_worker_alerts_as_a_sighting_does(shop: Shop) -> None:
    ilse = a_person(shop.workspace, Role.LEAD)
    answer = shop.claim(shop.charge)
    claim_id = shop.unknown(answer)
    decide(shop, claim_id, Verdict.NOT_HAPPENED, ilse)
    append.sweep(10)

    report = Complete(fence=answer.fence, provider_object="pi_1", result="{}", marker_sent=True)
    append.report(shop.workspace.pk, claim_id, Outcome.COMPLETED, report)
    alerts.tick()

    assert Contradiction.objects.get().told == "not_executed"
    assert ilse.pk in {one.person_id for one in Alert.objects.all()}


def test_a_second_object_and_an_effect_that_ended_contradict_what_was_told(shop: Shop) -> None:
    two, ended = (shop.unknown(shop.claim(shop.charge)) for _ in range(2))

    def see(claim_id: UUID, word: SightingWord, name: str) -> None:
        seen = Observation(word=word, fence=1, counts=True, objects=(name,))
        append.observe(shop.workspace.pk, claim_id, seen)

    for claim_id, name in ((two, "pi_1"), (ended, "po_1")):
        see(claim_id, SightingWord.FOUND, name)
    assert not Contradiction.objects.exists(), "that it was unknown contradicts nothing"
    see(two, SightingWord.FOUND, "pi_2")
    see(ended, SightingWord.FOUND_DIFFERENT, "po_1")

    noted = {one.claim_id: (one.told, one.became) for one in Contradiction.objects.all()}
    assert noted == dict.fromkeys((two, ended), ("completed", "conflicted"))
    reasons = {c: queries.claim(shop.workspace.pk, c).reason for c in (two, ended)}
    assert reasons == {two: None, ended: "told_otherwise"}, "a duplicate, and a contradiction"


def test_what_ended_comes_back_by_a_reopening_and_is_not_told_as_done_again(shop: Shop) -> None:
    lead = a_person(shop.workspace, Role.LEAD)
    claim_id = shop.unknown(shop.claim(shop.charge))
    for word in (SightingWord.FOUND, SightingWord.FOUND_DIFFERENT):
        seen = Observation(word=word, fence=1, counts=True, objects=("po_1",))
        append.observe(shop.workspace.pk, claim_id, seen)

    decide(shop, claim_id, Verdict.REOPEN, lead)
    append.sweep(10)

    assert shop.state(claim_id) is ClaimState.UNKNOWN
    append.observe(
        shop.workspace.pk,
        claim_id,
        Observation(word=SightingWord.FOUND_DIFFERENT, fence=1, counts=True, objects=("po_1",)),
    )
    assert shop.state(claim_id) is ClaimState.UNKNOWN, "what ended is no effect by itself"


def test_a_decision_that_was_taken_back_is_nobodys_alert(shop: Shop) -> None:
    lead = a_person(shop.workspace, Role.LEAD)
    found_at_once, found_later = (shop.unknown(shop.claim(shop.charge)) for _ in range(2))
    for claim_id in (found_at_once, found_later):
        for verdict in (Verdict.CLOSE, Verdict.REOPEN):
            decide(shop, claim_id, verdict, lead)
            append.sweep(10)
    absent = Observation(word=SightingWord.ABSENT, fence=1, counts=True)
    assert append.observe(shop.workspace.pk, found_later, absent) is ClaimState.NOT_EXECUTED

    for claim_id in (found_at_once, found_later):
        found = Observation(word=SightingWord.FOUND, fence=1, counts=True, objects=("pi_1",))
        append.observe(shop.workspace.pk, claim_id, found)
    alerts.tick()

    assert Contradiction.objects.get().claim_id == found_later, "unknown says nothing"
    assert Alert.objects.get().person is None, "the decision was taken back before it turned out"


# The page


@pytest.fixture
def desk(shop: Shop) -> Client:
    browser = Client()
    browser.force_login(a_person(shop.workspace, Role.SUPPORT, "jonas"))
    return browser


def test_the_list_says_what_was_told_and_is_done_with_once_somebody_says_so(
    shop: Shop, desk: Client
) -> None:
    assert "Nobody was told otherwise" in desk.get("/told-otherwise/").content.decode()
    claim_id = told_not_executed_and_paid(shop, worker="<b>worker</b>")
    shop.look(claim_id)
    shop.past(3)
    shop.look(claim_id)
    alerts.tick()
    alert = Alert.objects.get()

    page = desk.get("/told-otherwise/").content.decode()
    assert str(claim_id) in page
    assert "&lt;b&gt;worker&lt;/b&gt;" in page
    assert "Did not happen" in page or "Not executed" in page
    assert "No decision of the last 90 days" in page

    seen = desk.post(f"/told-otherwise/{alert.pk}/seen", follow=True)
    assert seen.status_code == 200
    alert.refresh_from_db()
    assert alert.seen_by is not None
    assert alert.seen_by.get_username() == "jonas"
    assert str(claim_id) not in desk.get("/told-otherwise/").content.decode()
    assert str(claim_id) in desk.get("/told-otherwise/?show=seen").content.decode()
    assert desk.post(f"/told-otherwise/{alert.pk}/seen", follow=True).status_code == 200


def test_viewers_see_the_list_and_mark_nothing_and_strangers_find_nothing(shop: Shop) -> None:
    claim_id = told_not_executed_and_paid(shop)
    shop.look(claim_id)
    shop.past(3)
    shop.look(claim_id)
    alerts.tick()
    alert = Alert.objects.get()
    viewer = Client()
    viewer.force_login(a_person(shop.workspace, Role.VIEWER))
    stranger = Client()
    stranger.force_login(a_person(a_workspace("other"), Role.ADMIN))

    assert viewer.get("/told-otherwise/").status_code == 200
    assert viewer.post(f"/told-otherwise/{alert.pk}/seen").status_code == 403
    assert str(claim_id) not in stranger.get("/told-otherwise/?show=all").content.decode()
    assert stranger.post(f"/told-otherwise/{alert.pk}/seen", follow=True).status_code == 404
    alert.refresh_from_db()
    assert alert.seen_at is None
