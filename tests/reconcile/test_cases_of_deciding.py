"""Bad days of other products, at our pages: who decides, on what, twice, too late, in company.

Each test is one `must` or `must_not` of a case; what other files test of it carries its mark there.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, Complete
from effects.core.vocabulary import ClaimState, Outcome, Role, SightingWord
from effects.models import Tool, Workspace
from ledger import append
from ledger import queries as record
from ledger.models import Decision
from reconcile import queries
from reconcile.bulk import running
from reconcile.models import Bulk, Submission
from tests.support import desk

pytestmark = pytest.mark.django_db

MINUTE = timedelta(seconds=61)


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


@pytest.fixture
def lost(charge: Tool) -> UUID:
    """A lost call that the provider has no record of, although that proves nothing yet."""
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


class Person:
    """Somebody at their browser."""

    def __init__(self, workspace: Workspace, role: Role, name: str) -> None:
        self.workspace_id = workspace.pk
        self.user = desk.a_person(workspace, role, name)
        self.client = Client()
        self.client.force_login(self.user)

    def token(self, claim_id: UUID) -> str:
        page = self.client.get(f"/calls/{claim_id}?dialog=close")
        return str(page.context["review"]["token"])

    def send(self, claim_id: UUID, token: str, action: str, **changes: object) -> Any:
        call = queries.call(self.workspace_id, claim_id)
        form: dict[str, object] = {
            "token": token,
            "action": action,
            "reason": "Asked the bank.",
            "ev": [item.number for item in call.situation.standing],
        }
        return self.client.post(f"/calls/{claim_id}/decide", form | changes)

    def decide(self, claim_id: UUID, action: str, **changes: object) -> Any:
        return self.send(claim_id, self.token(claim_id), action, **changes)


@pytest.fixture
def ana(shop: Workspace) -> Person:
    return Person(shop, Role.SUPPORT, "ana")


@pytest.fixture
def bo(shop: Workspace) -> Person:
    return Person(shop, Role.LEAD, "bo")


def state(tool: Tool, claim_id: UUID) -> ClaimState:
    return queries.call(tool.workspace_id, claim_id).situation.state


def told(tool: Tool, claim_id: UUID) -> dict[str, object]:
    return for_model(record.answer(tool.workspace_id, claim_id))


# U02


@pytest.mark.case("U02")
def test_the_second_click_answers_as_the_first_and_the_back_button_is_told_who_decided(
    charge: Tool, ana: Person, lost: UUID
) -> None:
    token = ana.token(lost)
    first, second = (ana.send(lost, token, "close") for _ in range(2))
    assert first.status_code == second.status_code == 302
    assert first["Location"] == second["Location"]
    third = ana.send(lost, token, "happened", note="I saw it.")
    assert third.status_code == 409
    assert "ana decided “Stop: do not retry” at" in third.content.decode()
    (made,) = Decision.objects.all()
    assert made.verdict == "close"
    kept = Submission.objects.order_by("pk").values_list("action", "outcome")
    assert list(kept) == [("close", "made"), ("happened", "overtaken")]


# U03


@pytest.mark.case("U03")
def test_what_a_worker_reported_meanwhile_is_shown_and_not_overwritten(
    charge: Tool, ana: Person
) -> None:
    answer = desk.a_call(charge)
    claim_id = desk.lose(charge, answer)
    token = ana.token(claim_id)
    desk.complete(charge, answer, "pi_7")
    before = record.answer(charge.workspace_id, claim_id)
    response = ana.send(claim_id, token, "release_same", note="It hangs.")
    assert response.status_code == 409
    page = response.content.decode()
    assert "When you opened it" in page
    assert "Happened" in page
    assert "it happened as pi_7" in page
    assert record.answer(charge.workspace_id, claim_id) == before
    assert not Decision.objects.exists()


# U05, U08


@pytest.mark.case("U05")
def test_what_a_model_wrote_is_text_on_the_pages_of_bulks_too(shop: Workspace, bo: Person) -> None:
    name = '"><script>alert(2)</script>'
    tool = desk.a_keyed_tool(shop, name=name, summary="{md} {u}")
    desk.a_lost_call(
        tool,
        arguments=json.dumps({"md": "<img src=x onerror=alert(1)>", "u": "\u202egpj.exe"}),
        conversation="<b onmouseover=alert(6)>",
    )
    listed = bo.client.get("/queue/", {"tool": name})
    word = next(iter(listed.context["bulk_words"].values()))
    form = {"action": "snooze", "call": word, "token": "t", "view": f"?tool={name}"}
    review = bo.client.post("/bulk/new/", form, follow=True)
    bulk = Bulk.objects.get()
    bo.client.post(f"/bulk/{bulk.pk}/start/", {"reason": "<script>alert(9)</script>\u202e"})
    running.run(bulk.pk)
    done = bo.client.get(f"/bulk/{bulk.pk}/")
    for page in (listed, review, done, bo.client.get("/bulk/")):
        text = page.content.decode()
        assert page.status_code == 200
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b onmouseover" not in text
        assert "\u202e" not in text
        assert "unsafe-inline" not in page["Content-Security-Policy"]
    assert "U+202E" in done.content.decode()


@pytest.mark.case("U08")
def test_a_large_amount_is_never_rounded_on_the_way_through_a_bulk(
    charge: Tool, bo: Person
) -> None:
    desk.a_lost_call(charge, arguments={"amount": 900719925474099301})
    listed = bo.client.get("/queue/")
    (word,) = listed.context["bulk_words"].values()
    form = {"action": "snooze", "call": word, "token": "t"}
    review = bo.client.post("/bulk/new/", form, follow=True)
    for page in (listed, review):
        assert "9,007,199,254,740,993.01" in page.content.decode()


# U12


@pytest.mark.case("U12")
def test_nothing_is_decided_on_no_evidence_and_what_is_decided_says_by_whom_and_on_what(
    charge: Tool, ana: Person, bo: Person
) -> None:
    claim_id = desk.a_lost_call(charge)
    empty = ana.decide(claim_id, "happened", ev=[])
    assert empty.status_code == 422
    desk.see(charge, claim_id, SightingWord.FOUND_DIFFERENT, objects=("pi_1",))
    seen = queries.call(charge.workspace_id, claim_id)
    named = ana.decide(claim_id, "happened", provider_object="pi_1", note="The bank shows it.")
    assert named.status_code == 302
    (made,) = Decision.objects.all()
    (note,) = queries.call(charge.workspace_id, claim_id).notes
    assert made.decided_by == ana.user
    assert made.rule is None
    assert made.claim_version == note.seq
    assert bytes(made.screen_hash or b"") == queries.screen_hash(seen.situation)
    assert made.evidence == [seen.situation.evidence[0].number, note.seq]
    desk.move_clock(MINUTE)
    reopened = bo.decide(claim_id, "reopen", reason="wrong account", ev=[])
    assert reopened.status_code == 302
    assert [one.decided_by for one in Decision.objects.order_by("pk")] == [ana.user, bo.user]


@pytest.mark.case("U12")
def test_it_did_not_happen_needs_a_stated_basis(charge: Tool, ana: Person) -> None:
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT)
    assert ana.decide(claim_id, "not_happened", ev=[]).status_code == 422
    assert not Decision.objects.exists()


@pytest.mark.case("U12")
@pytest.mark.parametrize("change", ["UPDATE {} SET reason = 'x'", "DELETE FROM {}"])
def test_a_decision_is_never_edited(ana: Person, lost: UUID, change: str) -> None:
    ana.decide(lost, "close")
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change.format("ledger_decision"))
    assert Decision.objects.get().decided_by == ana.user


# U13


def near_its_end(shop: Workspace) -> tuple[Tool, UUID]:
    """A call whose key is honoured for six more minutes."""
    tool = desk.a_keyed_tool(shop, name="soon", window_seconds=1000)
    claim_id = desk.a_lost_call(tool)
    left = record.claim(shop.pk, claim_id).window_until
    assert left is not None
    desk.move_clock(left - record.clock() - timedelta(seconds=tool.margin_seconds + 360))
    return tool, claim_id


@pytest.mark.case("U13")
def test_a_page_that_was_opened_in_time_releases_nothing_after_the_window(
    shop: Workspace, ana: Person
) -> None:
    _, claim_id = near_its_end(shop)
    token = ana.token(claim_id)
    desk.move_clock(timedelta(seconds=1001))
    response = ana.send(claim_id, token, "release_same", note="It hangs.")
    assert response.status_code == 409
    assert "window" in response.content.decode()
    assert not Decision.objects.exists()


@pytest.mark.case("U13")
def test_the_agent_is_told_apart_what_waits_what_ran_out_and_what_a_person_decided(
    shop: Workspace, charge: Tool, ana: Person, lost: UUID
) -> None:
    soon, expired = near_its_end(shop)
    ana.decide(lost, "close")
    waits = told(charge, lost)
    desk.move_clock(timedelta(seconds=1001))
    said = {
        "waits": waits,
        "expired": told(soon, expired),
        "stopped": told(charge, lost),
        "done": told(charge, desk.complete(charge, desk.a_call(charge))),
    }
    texts = {name: json.dumps(one, sort_keys=True) for name, one in said.items()}
    assert len(set(texts.values())) == len(texts)
    assert "denied" not in "".join(texts.values()).lower()
    assert "pending" not in str(said["expired"].get("status"))


# U14


@pytest.mark.case("U14")
def test_what_one_dialog_was_set_to_touches_no_other_call(
    charge: Tool, ana: Person, lost: UUID
) -> None:
    other = desk.a_lost_call(charge)
    ana.decide(lost, "close", include_related="on", scope="view", call=[str(other)])
    assert {made.claim_id for made in Decision.objects.all()} == {lost}
    desk.move_clock(MINUTE)
    assert state(charge, other) is ClaimState.UNKNOWN


# U15


@pytest.mark.case("U15")
def test_a_call_whose_worker_is_alive_is_released_by_nobody(charge: Tool, ana: Person) -> None:
    answer = desk.a_call(charge)
    claim_id = desk.claim_id_of(answer)
    append.heartbeat(charge.workspace_id, claim_id, answer.fence)
    response = ana.decide(claim_id, "release_same", note="It hangs.")
    assert response.status_code == 409
    assert "A worker holds this call" in response.content.decode()
    assert state(charge, claim_id) is ClaimState.IN_FLIGHT


@pytest.mark.case("U15")
def test_what_the_old_worker_reports_after_a_release_is_evidence_and_grants_nothing(
    charge: Tool, ana: Person
) -> None:
    asked = {"conversation": "c", "call_id": "call_0123456789abcdef", "response_id": "r"}
    arguments = json.dumps({"amount": 4200, "currency": "eur"})
    first = desk.a_call(charge, arguments=arguments, **asked)
    claim_id = desk.lose(charge, first)
    assert ana.decide(claim_id, "release_same", note="It hangs.").status_code == 302
    desk.move_clock(MINUTE)
    second = desk.a_call(charge, arguments=arguments, **asked)
    assert second.fence == first.fence + 1
    for answer, name in ((first, "pi_1"), (second, "pi_2")):
        report = Complete(fence=answer.fence, provider_object=name, result="{}")
        append.report(charge.workspace_id, claim_id, Outcome.COMPLETED, report)
    assert state(charge, claim_id) is ClaimState.CONFLICTED


@pytest.mark.case("U15")
def test_there_is_no_button_that_deletes_or_releases_everything(bo: Person, lost: UUID) -> None:
    for address in ("/queue/", "/bulk/", f"/calls/{lost}"):
        page = bo.client.get(address).content.decode().lower()
        # A saved view can be deleted; no button does that to a call, or to all of them.
        for button in re.findall(r"<button[^>]*>.*?</button>", page, re.DOTALL):
            assert "delete" not in button
        assert "release all" not in page


# P20


@pytest.mark.case("P20")
def test_the_second_of_two_people_is_told_who_was_first_and_when_and_the_refusal_is_kept(
    charge: Tool, ana: Person, bo: Person
) -> None:
    asked = {"conversation": "c", "call_id": "call_0123456789abcdef", "response_id": "r"}
    arguments = json.dumps({"amount": 4200, "currency": "eur"})
    first = desk.a_call(charge, arguments=arguments, **asked)
    claim_id = desk.lose(charge, first)
    tokens = {one.user.username: one.token(claim_id) for one in (ana, bo)}
    assert ana.send(claim_id, tokens["ana"], "release_same", note="It hangs.").status_code == 302
    refused = bo.send(claim_id, tokens["bo"], "release_same", note="It hangs.")
    assert refused.status_code == 409
    (made,) = Decision.objects.all()
    words = f"ana decided “Release with the same key” at {made.decided_at:%H:%M:%S} UTC."
    assert words in refused.content.decode()
    kept = Submission.objects.order_by("pk").values_list("sent_by__username", "outcome", "said")
    assert list(kept) == [("ana", "made", ""), ("bo", "overtaken", words)]
    assert words in bo.client.get(f"/calls/{claim_id}").content.decode()
    desk.move_clock(MINUTE)
    again: list[ClaimAnswer] = [
        desk.ask(charge, arguments=arguments, **asked) for _ in range(2)
    ]  # the broker delivers twice
    assert [one.key for one in again if one.marker] == [first.key]
