"""The call page and its acts over HTTP, as a person's browser without script sends them."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client

from effects.core.vocabulary import ClaimState, Role, SightingWord
from ledger import append
from reconcile import queries
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def charge(halden):
    return desk.a_keyed_tool(halden)


@pytest.fixture
def ana(halden):
    return desk.a_person(halden, Role.SUPPORT, "ana")


@pytest.fixture
def lost(charge):
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def browser(ana):
    return signed_in(ana)


def text_of(response):
    return response.content.decode()


def token_on(response):
    return first_of(r'name="token" value="([^"]+)"', response)


def first_of(pattern, response):
    found = re.search(pattern, text_of(response))
    assert found is not None, pattern
    return found[1].replace("&amp;", "&")


def review(browser, claim_id, action="close", *, evidence=()):
    query = "&".join([f"dialog={action}", *(f"ev={number}" for number in evidence)])
    return browser.get(f"/calls/{claim_id}?{query}")


def send(browser, claim_id, action="close", *, evidence=(), **changes):
    token = token_on(review(browser, claim_id, action, evidence=evidence))
    form = {"token": token, "action": action, "ev": evidence, "reason": "Asked the bank."}
    return browser.post(f"/calls/{claim_id}/decide", form | changes)


def test_the_page_says_what_is_known_and_what_may_be_done(browser, charge, lost):
    page = text_of(browser.get(f"/calls/{lost}"))
    assert "Unknown" in page
    assert "Charge 149.00 EUR" in page
    assert "We do not know yet whether this went through." in page
    assert "Release with the same key" in page
    assert "There is no strong absence, and the old key still holds" in page
    assert str(lost) in page


@pytest.mark.parametrize("state", ["in_flight", "completed", "not_executed", "conflicted"])
def test_every_state_has_a_page(browser, charge, state):
    answer = desk.a_call(charge)
    claim_id = desk.claim_id_of(answer)
    if state == "completed":
        desk.complete(charge, answer)
    elif state == "not_executed":
        desk.not_sent(charge, answer)
    elif state == "conflicted":
        objects = ("pi_1", "pi_2")
        desk.see(charge, claim_id, SightingWord.FOUND_MANY, objects=objects, counts=True)
    assert browser.get(f"/calls/{claim_id}").status_code == 200
    assert queries.call(charge.workspace_id, claim_id).situation.state == state


@pytest.mark.parametrize(
    "action",
    [
        *("happened", "not_happened", "release_same", "release_new", "lost", "close"),
        *("settle", "reopen", "allow", "snooze", "second_person"),
    ],
)
def test_every_review_can_be_linked(browser, charge, lost, action):
    page = text_of(review(browser, lost, action))
    assert 'id="review"' in page
    assert "<dialog" in page


@pytest.mark.parametrize("dialog", ["withdraw", "nonsense", ""])
def test_a_dialog_that_does_not_exist_is_not_opened(browser, lost, dialog):
    page = text_of(browser.get(f"/calls/{lost}?dialog={dialog}"))
    assert 'id="review"' not in page


def test_deciding_holds_and_says_what_the_agent_will_be_told(browser, lost):
    response = send(browser, lost)
    assert response.status_code == 302
    page = text_of(browser.get(response["Location"]))
    assert "Held: stop: do not retry" in page
    assert "What the agent will be told" in page
    assert "&quot;status&quot;: &quot;unknown_do_not_retry&quot;" in page


def test_undo_then_decide_again(browser, charge, lost):
    send(browser, lost)
    (made,) = queries.call(charge.workspace_id, lost).decisions
    undone = browser.post(f"/calls/{lost}/undo", {"decision": made.pk}, follow=True)
    assert "is taken back. Nothing was told." in text_of(undone)
    assert "Safe actions now" in text_of(undone)
    evidence = [queries.call(charge.workspace_id, lost).situation.evidence[0].number]
    assert send(browser, lost, "release_same", evidence=evidence).status_code == 302
    assert len(queries.call(charge.workspace_id, lost).decisions) == 3


def test_undo_twice_and_undo_too_late_are_said_and_are_no_errors(browser, charge, lost):
    send(browser, lost)
    (made,) = queries.call(charge.workspace_id, lost).decisions
    for words in ("Nothing was told", "was taken back already"):
        response = browser.post(f"/calls/{lost}/undo", {"decision": made.pk}, follow=True)
        assert words in text_of(response)
    send(browser, lost)
    newest = queries.call(charge.workspace_id, lost).last_decision
    assert newest is not None
    desk.move_clock(timedelta(seconds=61))
    response = browser.post(f"/calls/{lost}/undo", {"decision": newest.pk}, follow=True)
    assert "Too late" in text_of(response)


def test_the_author_of_a_cancelled_decision_is_told(browser, charge, lost):
    send(browser, lost)
    desk.see(charge, lost, SightingWord.PENDING)
    page = text_of(browser.get(f"/calls/{lost}"))
    assert "was cancelled: something new was learnt in its minute" in page
    assert "Safe actions now" in page


@pytest.mark.case("U02")
def test_a_double_click_is_one_decision(browser, charge, lost):
    token = token_on(review(browser, lost))
    form = {"token": token, "action": "close", "reason": "Asked the bank."}
    answers = [browser.post(f"/calls/{lost}/decide", form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert len(queries.call(charge.workspace_id, lost).decisions) == 1


def test_a_missing_reason_comes_back_with_everything_that_was_typed(browser, lost):
    response = send(browser, lost, "happened", reason="", note="I saw it.", provider_object="pi_9")
    page = text_of(response)
    assert response.status_code == 422
    assert "Say why, in a few words" in page
    assert "I saw it." in page
    assert "pi_9" in page


@pytest.mark.case("U03")
def test_a_page_that_is_no_longer_true_is_shown_beside_what_is(browser, charge, lost):
    token = token_on(review(browser, lost))
    desk.see(charge, lost, SightingWord.FOUND, objects=("pi_1",), counts=True)
    form = {"token": token, "action": "close", "reason": "Asked the bank."}
    response = browser.post(f"/calls/{lost}/decide", form)
    page = text_of(response)
    assert response.status_code == 409
    assert "When you opened it" in page
    assert "What happened in between" in page
    assert "Evidence 4: found, strong" in page
    assert "Happened" in page


def test_an_action_that_is_offered_no_more_says_why(browser, charge, lost):
    evidence = [queries.call(charge.workspace_id, lost).situation.evidence[0].number]
    token = token_on(review(browser, lost, "release_same", evidence=evidence))
    desk.move_clock(timedelta(hours=24))
    form = {"token": token, "action": "release_same", "ev": evidence, "reason": "Why not."}
    response = browser.post(f"/calls/{lost}/decide", form)
    assert response.status_code == 409
    assert "closed at" in text_of(response)


@pytest.mark.parametrize("token", ["", "forged"])
def test_a_form_that_this_page_did_not_make_decides_nothing(browser, charge, lost, token):
    form = {"token": token, "action": "close", "reason": "Asked the bank."}
    assert browser.post(f"/calls/{lost}/decide", form).status_code == 409
    assert queries.call(charge.workspace_id, lost).decisions == ()


# Who


def test_another_workspaces_call_is_not_found(charge, lost):
    stranger = desk.a_person(desk.a_workspace("stranger"), Role.ADMIN)
    browser = signed_in(stranger)
    assert browser.get(f"/calls/{lost}").status_code == 404
    for act in ("decide", "undo", "ask", "note"):
        assert browser.post(f"/calls/{lost}/{act}").status_code == 404
    assert browser.get(f"/calls/{lost}/bodies/0/arguments").status_code == 404
    assert browser.get(f"/calls/{lost}/answer").status_code == 404


def test_a_viewer_sees_everything_and_is_told_which_role_decides(halden, charge, lost):
    browser = signed_in(desk.a_person(halden, Role.VIEWER))
    page = text_of(browser.get(f"/calls/{lost}"))
    assert "Needs the role Support, Payments lead or Admin." in page
    assert 'type="radio"' not in page
    assert browser.post(f"/calls/{lost}/note", {"note": "x"}).status_code == 403
    assert browser.post(f"/calls/{lost}/undo", {"decision": "1"}).status_code == 403


def test_nobody_gets_in_without_signing_in(lost):
    response = Client().get(f"/calls/{lost}")
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


# Asking, notes, bodies


def test_asking_hands_the_question_to_a_worker_and_waits_for_its_answer(
    browser, charge, lost, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "reconcile.tasks.look.apply_async", lambda **said: asked.append(said["args"])
    )
    response = browser.post(f"/calls/{lost}/ask")
    assert asked == [(charge.workspace_id, str(lost))]
    page = browser.get(response["Location"])
    assert "is being asked" in text_of(page)
    address = first_of(r'hx-get="([^"]+)"', page)
    waiting = browser.get(address)
    assert "HX-Refresh" not in waiting
    desk.see(charge, lost, SightingWord.PENDING, data={"trigger": "person"})
    answered = browser.get(address)
    assert answered["HX-Refresh"] == "true"
    assert "answered" in text_of(browser.get(response["Location"]))


def test_asking_is_refused_while_a_decision_is_held(browser, lost, monkeypatch):
    monkeypatch.setattr("reconcile.tasks.look.apply_async", lambda **_: pytest.fail("asked"))
    send(browser, lost)
    page = text_of(browser.post(f"/calls/{lost}/ask", follow=True))
    assert "Nobody was asked." in page


def test_a_note_is_kept_once_and_can_be_cited(browser, charge, lost):
    for _ in range(2):
        browser.post(f"/calls/{lost}/note", {"note": "The customer sees no debit."})
    call = queries.call(charge.workspace_id, lost)
    assert len(call.notes) == 1
    response = send(browser, lost, "release_same", evidence=[call.notes[0].seq])
    assert response.status_code == 302


def test_a_body_is_downloaded_as_received_and_never_shown_as_a_page(browser, charge):
    text = '{"amount": 1.10, "html": "<script>alert(1)</script>"}'
    claim_id = desk.a_lost_call(charge, arguments=text)
    response = browser.get(f"/calls/{claim_id}/bodies/0/arguments")
    assert response.content.decode() == text
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")


# Texts of agents


HOSTILE = {
    "</script><script>alert(3)</script>": "javascript:alert(4)",
    "md": "[x](javascript:alert(5))",
    "tmpl": "{{7*7}}",
    "u": "\u202egpj.exe",
    "amount": 1,
}


@pytest.mark.case("U05")
def test_what_an_agent_wrote_is_text_everywhere(halden, browser):
    tool = desk.a_keyed_tool(halden, name='"><script>alert(2)</script>', summary="{md} {u}")
    claim_id = desk.a_lost_call(
        tool,
        arguments=json.dumps(HOSTILE),
        conversation="<img src=x onerror=alert(1)>",
    )
    desk.see(
        tool,
        claim_id,
        SightingWord.FOUND_DIFFERENT,
        data={"why": "<b onmouseover=alert(6)>boom</b>", "found": {"<i>": "<u>"}},
        raw=b"<script>alert(7)</script>",
    )
    append.note(halden.pk, claim_id, 1, "<script>alert(8)</script>")
    for address in (f"/calls/{claim_id}", f"/calls/{claim_id}?dialog=close", "/queue/"):
        page = text_of(browser.get(address))
        assert "<script>alert" not in page
        assert "onerror=alert(1)>" not in page.replace("&gt;", "")
        assert "<b onmouseover" not in page
        assert 'href="javascript:' not in page
        assert "\u202e" not in page
    assert "U+202E" in text_of(browser.get(f"/calls/{claim_id}"))


@pytest.mark.case("U08")
def test_digits_are_shown_as_they_were_received(browser, charge):
    text = '{"id": 1970670598291982290, "f": 1.10, "e": 1e2, "amount": 9007199254740993}'
    page = text_of(browser.get(f"/calls/{desk.a_lost_call(charge, arguments=text)}"))
    for digits in ("1970670598291982290", "1.10", "1e2", "9007199254740993"):
        assert f">{digits}<" in page


# Limits


@pytest.mark.case("U06")
def test_a_call_with_many_attempts_and_a_large_argument_has_a_small_page(halden, browser):
    tool = desk.a_keyed_tool(halden, attempts_max=120)
    asked = {"conversation": "c", "call_id": "call_0123456789abcdef"}
    arguments = json.dumps({"text": "x" * 200_000})
    for _ in range(60):
        desk.not_sent(tool, desk.a_call(tool, arguments=arguments, **asked))
    claim_id = desk.lose(tool, desk.a_call(tool, arguments=arguments, **asked))
    for number in range(30):
        desk.see(tool, claim_id, SightingWord.PENDING, data={"why": f"look {number}"})
    response = browser.get(f"/calls/{claim_id}")
    page = text_of(response)
    assert len(response.content) < 300_000
    assert page.count('class="ev-card"') == 10
    assert "Show 20 older answers" in page
    assert "Older attempts" in page
    older = text_of(browser.get(f"/calls/{claim_id}?before=22"))
    assert '<th scope="row">21</th>' in older
    assert '<th scope="row">22</th>' not in older
    before = first_of(r"\?evidence_before=(\d+)#pe", response)
    next_page = text_of(browser.get(f"/calls/{claim_id}?evidence_before={before}"))
    assert next_page.count("ev-card") == 10
    assert "look 19" in next_page
    assert "look 20" not in next_page
    queue = browser.get("/queue/")
    assert len(queue.content) < 60_000


def test_the_state_after_each_verdict_is_what_the_record_makes_of_it(browser, charge, lost):
    evidence = [queries.call(charge.workspace_id, lost).situation.evidence[0].number]
    send(browser, lost, "release_same", evidence=evidence)
    desk.move_clock(timedelta(seconds=61))
    assert queries.call(charge.workspace_id, lost).situation.state is ClaimState.RELEASED
