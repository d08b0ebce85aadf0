"""The client against a real ledger: over HTTP to the API process, and straight in PostgreSQL."""

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from effects.client import (
    Call,
    ClaimNotFound,
    Ledger,
    LedgerUnavailable,
    NoIdentity,
    Patience,
    ScopeMissing,
    Timeouts,
    TokenRefused,
    ToolCall,
    Transport,
    effect,
)
from effects.core.vocabulary import ClaimState, EffectClass, TokenScope, Verdict
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import append, queries
from ledger.append import NewDecision
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.client.ways import Way, token_of
from tests.effects.faulty_server import answers, close_after_reading, closed_port, faulty

pytestmark = pytest.mark.django_db(transaction=True)

TURN = ToolCall(conversation="c-1", turn_index=3, call_id="toolu_01WkP9QmXyZ01234")


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    RegisteredTool.objects.create(
        workspace=made,
        name="send_payment",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
    )
    return made


@pytest.fixture
def ledger(way: Way, shop: Workspace) -> Iterator[Ledger]:
    with Ledger(*way.to(shop), patience=QUICK) as client:
        yield client


class Payments:
    """A tool that counts how often it really ran."""

    def __init__(self, ledger: Ledger, send=None) -> None:
        self.runs = 0
        self.keys: list[str] = []
        self._lock = threading.Lock()
        self._send = send

        @effect(ledger, effect_class="keyed_write", object_from="id")
        def send_payment(call: Call, *, amount: int) -> dict[str, object]:
            with self._lock:
                self.runs += 1
                self.keys.append(call.key)
            if self._send is not None:
                self._send(call)
            return {"id": f"pi_{self.runs}", "amount": amount}

        self.pay = send_payment


def decide(workspace: Workspace, claim_id: UUID | None, verdict: Verdict, person) -> None:
    assert claim_id is not None
    append.decide(
        workspace.pk,
        claim_id,
        NewDecision(
            verdict=verdict,
            claim_version=queries.claim(workspace.pk, claim_id).version,
            reason="Seen in the bank's list.",
            user_id=person.pk,
            hold_seconds=0,
        ),
    )


@pytest.fixture
def person(django_user_model):
    return django_user_model.objects.create_user("ada")


# Once


def test_a_call_runs_once_and_every_repeat_gets_the_first_result(ledger):
    payments = Payments(ledger)
    first = payments.pay(TURN, amount=1200)
    reissued = ToolCall(conversation="c-1", turn_index=3, call_id="toolu_02AnotherIdentifier")
    repeats = [payments.pay(at, amount=1200) for at in (TURN, reissued, TURN)]
    assert payments.runs == 1
    assert first.status == "completed"
    assert first.reported
    for repeat in repeats:
        assert (repeat.status, repeat.result) == ("completed", first.result)
        assert repeat.claim_id == first.claim_id
        assert repeat.for_model["result"] == {"id": "pi_1", "amount": 1200}


def test_many_workers_with_one_call_run_it_once(ledger):
    payments = Payments(ledger)
    with ThreadPoolExecutor(12) as pool:
        told = list(pool.map(lambda _: payments.pay(TURN, amount=1200), range(12)))
    assert payments.runs == 1
    assert {each.status for each in told} <= {"completed", "in_flight"}
    assert Counter(each.value is not None for each in told)[True] == 1


def test_a_later_turn_is_another_call(ledger):
    payments = Payments(ledger)
    payments.pay(TURN, amount=1200)
    later = payments.pay(ToolCall(conversation="c-1", turn_index=9), amount=1200)
    assert later.status == "completed"
    assert payments.runs == 2
    assert len(set(payments.keys)) == 2


# Failures


def test_what_was_not_sent_may_be_called_again_under_the_same_key(ledger):
    port = closed_port()

    def refuse_at_first(_):
        if payments.runs == 1:
            httpx.post(f"http://127.0.0.1:{port}")

    payments = Payments(ledger, refuse_at_first)
    first = payments.pay(TURN, amount=1200)
    assert (first.status, first.may_call_again) == ("not_executed", True)
    again = payments.pay(TURN, amount=1200)
    assert (again.status, again.claim_id) == ("completed", first.claim_id)
    assert len(payments.keys) == 2
    assert len(set(payments.keys)) == 1


def test_a_stored_refusal_moves_on_to_a_new_key(ledger):
    body = b'{"error": {"type": "card_error", "code": "card_declined"}}'
    with faulty(answers(402, body)) as provider:

        def decline_at_first(_):
            if payments.runs == 1:
                httpx.post(provider.url, json={}).raise_for_status()

        payments = Payments(ledger, decline_at_first)
        payments.pay = effect(
            ledger, effect_class="keyed_write", tool="send_payment", contract="stripe.v1"
        )(payments.pay._function)  # noqa: SLF001 - the same function under another contract
        assert payments.pay(TURN, amount=1200).status == "not_executed"
        assert payments.pay(TURN, amount=1200).status == "completed"
    assert len(set(payments.keys)) == 2


def test_an_unknown_call_is_not_run_again_and_the_decision_comes_back(ledger, shop, person):
    with faulty(close_after_reading) as provider:
        payments = Payments(
            ledger, lambda call: httpx.post(provider.url, json=call.marker_metadata)
        )
        lost = payments.pay(TURN, amount=1200)
        assert (lost.status, lost.reported) == ("unknown", True)
        assert payments.pay(TURN, amount=1200).status == "unknown"
    assert payments.runs == 1
    assert lost.claim_id
    assert ledger.status(lost.claim_id).status == "unknown"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ledger.wait, lost.claim_id, 30)
        decide(shop, lost.claim_id, Verdict.HAPPENED, person)
        told = waiting.result(timeout=20)
    assert told.status == "completed"
    assert told.answer
    assert told.answer.decision
    assert told.answer.decision.verdict is Verdict.HAPPENED
    assert told.for_model["decided"] == "happened"
    assert payments.pay(TURN, amount=1200).status == "completed"
    assert payments.runs == 1


def test_a_release_lets_the_same_call_run_once_more_under_the_same_key(ledger, shop, person):
    def lose_at_first(_):
        if payments.runs == 1:
            raise TimeoutError

    payments = Payments(ledger, lose_at_first)
    lost = payments.pay(TURN, amount=1200)
    decide(shop, lost.claim_id, Verdict.RELEASE_SAME, person)
    assert lost.claim_id
    released = ledger.wait(lost.claim_id, 10)
    assert (released.status, released.may_call_again) == ("released", True)
    done = payments.pay(TURN, amount=1200)
    assert payments.runs == 2
    assert len(set(payments.keys)) == 1
    # The first attempt's truth is still open, so the model may yet be told of a second effect.
    assert done.status == "completed"


def test_a_stopped_call_stays_stopped(ledger, shop, person):
    def lose(_):
        raise TimeoutError

    payments = Payments(ledger, lose)
    lost = payments.pay(TURN, amount=1200)
    decide(shop, lost.claim_id, Verdict.CLOSE, person)
    told = payments.pay(TURN, amount=1200)
    assert (told.status, payments.runs) == ("unknown_do_not_retry", 1)
    assert told.for_model["next_step"].startswith("Outcome unknown, do not retry.")


# Lost answers


@contextlib.contextmanager
def losing(way: Way, shop: Workspace, *words: str, patience: Patience = QUICK) -> Iterator[Ledger]:
    timeouts = Timeouts(answer_seconds=5)
    with (
        way.losing(shop, *words) as arguments,
        Ledger(*arguments, patience=patience, timeouts=timeouts) as ledger,
    ):
        yield ledger


def test_a_grant_whose_answer_was_lost_is_given_again_and_runs_once(way, shop):
    with losing(way, shop, "claims") as ledger:
        payments = Payments(ledger)
        told = payments.pay(TURN, amount=1200)
    assert (told.status, payments.runs) == ("completed", 1)
    assert told.claim_id
    assert queries.claim(shop.pk, told.claim_id).fence == 1, "no second attempt was made of it"


def test_a_report_whose_answer_was_lost_is_one_fact(way, shop):
    with losing(way, shop, "complete", "complete") as ledger:
        told = Payments(ledger).pay(TURN, amount=1200)
    assert (told.status, told.reported) == ("completed", True)
    assert told.claim_id
    assert queries.claim(shop.pk, told.claim_id).state == ClaimState.COMPLETED


def test_a_grant_that_stays_lost_sends_nothing_and_grants_nobody_else(way, shop):
    with losing(way, shop, "claims", "claims", "claims") as ledger:
        payments = Payments(ledger)
        assert payments.pay(TURN, amount=1200).status == "ledger_unavailable"
        assert payments.pay(TURN, amount=1200).status == "in_flight"
    assert payments.runs == 0


def test_a_report_that_never_arrives_leaves_the_claim_in_flight(way, shop):
    patience = Patience(report_tries_max=2, pause_seconds_first=0.01)
    with losing(way, shop, "complete", "complete", patience=patience) as ledger:
        told = Payments(ledger).pay(TURN, amount=1200)
        assert (told.status, told.reported) == ("completed", False)
        assert told.result == {"id": "pi_1", "amount": 1200}


# Small words


def test_a_heartbeat_and_a_hint_reach_the_ledger(ledger, shop):
    heard: list[bool] = []

    def beat(call):
        heard.append(call.heartbeat())
        call.sent()

    told = Payments(ledger, beat).pay(TURN, amount=1200)
    assert heard == [True]
    assert told.status == "completed"


def test_a_claim_is_found_by_the_key_that_was_forwarded_and_by_its_marker(ledger):
    payments = Payments(ledger)
    done = payments.pay(TURN, amount=1200)
    assert ledger.status(payments.keys[0]).claim_id == done.claim_id
    with ledger.attempt("send_payment", '{"amount": 7}', ToolCall(caller_key="a/b ?&c")) as call:
        call.complete({"id": "pi_7"})
    assert ledger.status(call.marker).result == {"id": "pi_7"}
    assert ledger.status("a/b ?&c").result == {"id": "pi_7"}


# Who may ask


def test_a_wrong_question_is_an_error(ledger):
    payments = Payments(ledger)
    with pytest.raises(NoIdentity):
        payments.pay(ToolCall(), amount=1)
    with pytest.raises(ClaimNotFound):
        ledger.status("nobody's key")
    assert payments.runs == 0


def test_a_token_that_is_not_good_enough_is_an_error(live_api, shop):
    with Ledger(live_api, "cf_00000000_nothing") as stranger, pytest.raises(TokenRefused):
        Payments(stranger).pay(TURN, amount=1)
    with (
        Ledger(live_api, token_of(shop, TokenScope.READ)) as reader,
        pytest.raises(ScopeMissing),
    ):
        Payments(reader).pay(TURN, amount=1)


def test_another_workspaces_claim_is_nobodys(ledger, way):
    done = Payments(ledger).pay(TURN, amount=1200)
    other = Workspace.objects.create(
        name="Neighbour", slug="neighbour", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert done.claim_id
    with Ledger(*way.to(other)) as neighbour, pytest.raises(ClaimNotFound):
        neighbour.status(done.claim_id)


class Switched:
    """A real transport, whose reports can be made to find nobody."""

    def __init__(self, real: Transport) -> None:
        self.real = real
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def report(self, claim_id, report):
        if self.away:
            raise LedgerUnavailable("The ledger is away.")
        return self.real.report(claim_id, report)


def test_an_end_that_nobody_heard_is_kept_and_settles_the_claim_later(way, shop, tmp_path):
    transport = Switched(way.transport(shop))
    with Ledger(transport=transport, patience=QUICK, spool=tmp_path) as ledger:
        payments = Payments(ledger)
        transport.away = True
        lost = payments.pay(TURN, amount=100)
        assert (lost.reported, lost.kept, lost.happened) == (False, True, True)
        assert lost.claim_id
        kept = "".join(path.read_text() for path in tmp_path.glob("*.record"))
        assert not re.search("cf_[0-9a-f]{8}_|postgresql:", kept), "a token, or a password"
        assert ledger.status(lost.claim_id).status == "in_flight"
        assert ledger.flush().waiting == 1
        transport.away = False
        # Any answer of the ledger is a sign that it is there again.
        again = payments.pay(TURN, amount=100)
        assert again.status in {"in_flight", "completed"}
        deadline = time.monotonic() + 10
        while ledger.status(lost.claim_id).status != "completed":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # The record is removed once the ledger's answer is read, which is after it was written.
        while list(tmp_path.glob("*.record")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert payments.runs == 1


def test_what_a_dead_process_left_is_told_by_the_next(way, shop, tmp_path):
    transport = Switched(way.transport(shop))
    with Ledger(transport=transport, patience=QUICK, spool=tmp_path) as ledger:
        transport.away = True
        lost = Payments(ledger).pay(TURN, amount=100)
    assert lost.claim_id
    with Ledger(*way.to(shop), patience=QUICK, spool=tmp_path) as heir:
        assert heir.flush().told == 1
        assert heir.status(lost.claim_id).status == "completed"
