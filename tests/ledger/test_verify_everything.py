"""`verify_ledger --all`: every fault that can be forged is found by the invariant it breaks."""

import random
import re

import pytest
from django.conf import settings
from django.db import connection, transaction

from effects.core.messages import Complete, Fail, Unknown
from effects.core.vocabulary import ClaimState, Outcome, SightingWord, Verdict
from ledger import append, queries
from ledger.append import NewDecision, Observation
from ledger.management.invariants.canaries import suspects
from ledger.management.verification import checks, further_checks
from ledger.models import Claim
from tests.ledger.mirror import claim_made, ended, started, tell
from tests.ledger.test_ingest_mirror import D14, DECIDED_BY_FACTS, SAID_BOTH, TWO_EFFECTS
from tests.ledger.test_verify_ledger import claim, verify
from tests.support.clock import PRODUCTION

pytestmark = pytest.mark.django_db

LARGE = "1" * 3_000
CARD = "4111 1111 1111 1111"


@pytest.fixture(autouse=True)
def _productions_clock(db: None) -> None:
    """A test that commits may have left a clock of its own to this worker's database."""
    with connection.cursor() as cursor:
        cursor.execute(PRODUCTION)


@pytest.fixture
def record(shop, refund, person):
    """One claim of each kind that the forgeries below need."""

    def made(turn):
        return claim(shop, turn_index=turn, call_id=None, arguments=f'{{"n": {turn}}}')

    def again(turn):
        assert made(turn) == claims[turn]

    def decided(turn, verdict):
        append.decide(
            shop.pk,
            claims[turn],
            NewDecision(
                verdict=verdict,
                claim_version=queries.claim(shop.pk, claims[turn]).version,
                reason="seen",
                user_id=person.pk,
                hold_seconds=0,
            ),
        )

    claims = {turn: made(turn) for turn in range(1, 8)}
    append.report(shop.pk, claims[1], Outcome.COMPLETED, Complete(fence=1, result=LARGE))
    append.report(shop.pk, claims[2], Outcome.UNKNOWN, Unknown(fence=1))
    append.report(shop.pk, claims[3], Outcome.NOT_SENT, Fail(fence=1, proof=Outcome.NOT_SENT))
    again(3)
    append.report(shop.pk, claims[4], Outcome.UNKNOWN, Unknown(fence=1))
    decided(4, Verdict.RELEASE_SAME)
    again(4)
    append.report(
        shop.pk,
        claims[5],
        Outcome.REFUSED_STORED,
        Fail(fence=1, proof=Outcome.REFUSED_STORED),
    )
    again(5)
    append.report(shop.pk, claims[6], Outcome.UNKNOWN, Unknown(fence=1))
    append.observe(
        shop.pk,
        claims[6],
        Observation(word=SightingWord.ABSENT, fence=1, counts=True, raw=b"{}"),
    )
    append.sweep(10)
    return {name: claims[turn] for turn, name in enumerate(NAMES, start=1)}


NAMES = ("done", "lost", "twice", "released", "burnt", "absent", "running")


def test_what_the_forgeries_begin_with_is_sound(record):
    assert verify("--all") == (True, {})


FORGED: dict[str, tuple[str, str, str]] = {
    "a grant of what is unknown": (
        (
            "INSERT INTO ledger_event (claim_id, seq, at, kind, fence, generation)"
            " VALUES (%(lost)s, 3, now() + interval '1 min', 'granted', 2, 1)"
        ),
        "I11",
        "event 3 (granted, attempt 2) led from unknown to in_flight, which the table does not know",
    ),
    "an attempt that was granted after itself": (
        (
            "UPDATE ledger_event SET kind = 'granted', word = null"
            " WHERE claim_id = %(lost)s AND seq = 2"
        ),
        "I8",
        "attempt 1 was granted after attempt 1",
    ),
    "an absence that counts while the newest attempt is in flight": (
        (
            "INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, counts)"
            " VALUES (%(twice)s, 4, now() + interval '1 min', 'sighting', 'absent', 1, 1, true)"
        ),
        "I9",
        "event 4: an absence counts although attempt 2 is not covered",
    ),
    "a release without its decision": (
        (
            "UPDATE ledger_event SET decision_id = null"
            " WHERE claim_id = %(released)s AND kind = 'decided'"
        ),
        "I9",
        "there is no such decision of this claim",
    ),
    "a release whose decision says something else": (
        "UPDATE ledger_decision SET verdict = 'not_happened' WHERE claim_id = %(released)s",
        "I9",
        "its decision says not_happened",
    ),
    "a release of an attempt that nobody decided about": (
        "UPDATE ledger_decision SET fence = 7 WHERE claim_id = %(released)s",
        "I9",
        "its decision was about attempt 7",
    ),
    "a release before its decision was in force": (
        (
            "UPDATE ledger_decision SET effective_at = effective_at + interval '1 h'"
            " WHERE claim_id = %(released)s"
        ),
        "I9",
        "it was in force before its decision was",
    ),
    "an act about an older attempt": (
        (
            "INSERT INTO ledger_event (claim_id, seq, at, kind, fence, generation)"
            " VALUES (%(twice)s, 4, now() + interval '1 min', 'lapsed', 1, 1)"
        ),
        "I8",
        "event 4 (lapsed) speaks of attempt 1, not the newest",
    ),
    "a new key that nothing permits": (
        (
            "UPDATE ledger_event SET generation = 2"
            " WHERE claim_id = %(released)s AND kind = 'granted' AND fence = 2"
        ),
        "I14",
        "granted with key 2 after key 1, without a stored refusal, a decision or a firm absence",
    ),
    "a key that was burnt": (
        "UPDATE ledger_event SET generation = 1 WHERE claim_id = %(burnt)s",
        "I14",
        "attempt 2 was granted with key 1, which is burnt or was given up",
    ),
    "a key that was left out": (
        "UPDATE ledger_event SET generation = 3 WHERE claim_id = %(burnt)s AND fence = 2",
        "I14",
        "attempt 2 was granted with key 3 after key 1",
    ),
    "a result that was changed": (
        "UPDATE ledger_payload SET body = overlay(body placing '2' from 1) WHERE name = 'result'",
        "I2",
        "result of event 2: the digest does not fit the body",
    ),
    "a result that was cut": (
        "UPDATE ledger_payload SET body = substr(body, 1, 10) WHERE name = 'result'",
        "I2",
        "10 bytes, and 3000 were recorded",
    ),
    "a result that was emptied by nobody": (
        "UPDATE ledger_payload SET body = null WHERE name = 'result'",
        "I2",
        "the body is gone, and nothing says who emptied it",
    ),
    "a result that is gone": (
        "DELETE FROM ledger_payload WHERE name = 'result'",
        "I2",
        "a result was stored, and it is not there",
    ),
    "an unknown call that no person would see": (
        "DELETE FROM ledger_due WHERE claim_id = %(lost)s AND why = 'person'",
        "I20",
        "the claim is unknown, its attempts are 1 of 3, and no person's list has it",
    ),
    "attempts used up, and no person would see it": (
        "UPDATE ledger_claim SET budget = 1 WHERE id = %(absent)s",
        "I20",
        "the claim is not_executed, its attempts are 1 of 1",
    ),
    "an open truth that nobody asks about": (
        "DELETE FROM ledger_due WHERE claim_id = %(lost)s AND why = 'lookup'",
        "I20",
        "the claim is unknown with an open truth, and no look-up is filed",
    ),
    "a lease that nobody watches": (
        "DELETE FROM ledger_due WHERE claim_id = %(twice)s AND why = 'clock'",
        "I20",
        "the claim is in_flight, and nothing watches its lease",
    ),
    "a first lease behind the watermark": (
        "UPDATE ledger_watermark SET claim_id = uuidv7(interval '1 h')",
        "I20",
        "the claim is in_flight, and nothing watches its lease",
    ),
    "a held decision that nobody watches": (
        "UPDATE ledger_claim SET pending_at = now() + interval '1 min' WHERE id = %(lost)s",
        "I20",
        "a decision or a permission has an end, and nothing watches it",
    ),
    "an event from before the one that it follows": (
        "UPDATE ledger_event SET at = at - interval '6 s' WHERE claim_id = %(done)s AND seq = 2",
        "I17",
        "event 2 (reported) lies 6 s before an earlier one",
    ),
    "a card number that an event shows": (
        "UPDATE ledger_event SET data = jsonb_build_object('note', 'paid with " + CARD + "')"
        " WHERE claim_id = %(done)s AND seq = 2",
        "I22",
        "event 2 holds what looks like a card number",
    ),
    "a key in the reason of a decision": (
        "UPDATE ledger_decision SET reason = 'asked with sk_live_4eC39HqLyjWDarjt'",
        "I22",
        "a reason holds what looks like a provider's live key",
    ),
    "a role that could empty the record": (
        "GRANT TRUNCATE ON ledger_event TO PUBLIC",
        "I12",
        "everybody may truncate it",
    ),
    "a guard with a condition": (
        (
            "DROP TRIGGER ledger_event_append_only ON ledger_event;"
            "CREATE TRIGGER ledger_event_append_only BEFORE UPDATE OR DELETE ON ledger_event"
            " FOR EACH ROW WHEN (false) EXECUTE FUNCTION ledger_refuse_change()"
        ),
        "I12",
        "no enabled trigger refuses a change",
    ),
    "a session without triggers": (
        "SET LOCAL session_replication_role = replica",
        "I12",
        "it is a replica",
    ),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_record_is_found_by_what_it_breaks(record, kind):
    sql, check, says = FORGED[kind]
    with connection.cursor() as cursor:
        for table in ("ledger_event", "ledger_decision"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(sql, record)
        assert cursor.rowcount != 0, "the forgery found nothing to forge"
        for table in ("ledger_event", "ledger_decision"):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    sound, found = verify("--all")

    assert not sound
    assert any(says in difference["says"] for difference in found.get(check, ())), found
    assert CARD not in str(found), "what is found is not repeated"
    assert "4eC39" not in str(found), "what is found is not repeated"


MIRRORED = (D14, DECIDED_BY_FACTS, TWO_EFFECTS, SAID_BOTH)


@pytest.mark.parametrize("story", MIRRORED, ids=["completed", "nothing", "two effects", "both"])
def test_what_ledgers_kept_elsewhere_sent_is_sound_in_any_order(shop, refund, pass_time, story):
    for seed in range(6):
        sent = random.Random(seed).sample(story, len(story))
        with transaction.atomic():
            for number, item in enumerate(sent):
                tell(shop.pk, item)
                if number % 2 == seed % 2:
                    pass_time(seconds=refund.lease_seconds + 1)
                    append.sweep(10)
            assert verify("--all", "--clock-may-move") == (True, {})
            transaction.set_rollback(True)


def test_an_attempt_learned_of_after_a_persons_word_is_sound(shop, refund, person, pass_time):
    tell(shop.pk, claim_made(), started(attempt="a1", second=1))
    pass_time(seconds=refund.lease_seconds + 1)
    append.sweep(10)
    claim_id = Claim.objects.get().pk
    append.decide(
        shop.pk,
        claim_id,
        NewDecision(
            verdict=Verdict.HAPPENED,
            claim_version=queries.claim(shop.pk, claim_id).version,
            reason="seen",
            user_id=person.pk,
            hold_seconds=0,
        ),
    )
    tell(shop.pk, ended("failed", attempt="a1", second=2, proof="refused"))
    assert queries.claim(shop.pk, claim_id).state == ClaimState.CONFLICTED
    tell(shop.pk, started(attempt="a2", second=3))
    assert queries.claim(shop.pk, claim_id).state == ClaimState.COMPLETED

    assert verify("--all", "--clock-may-move") == (True, {})


def test_what_was_forgotten_is_filed_again_by_touching_it(shop, record):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_due WHERE claim_id = %s", [record["lost"]])
        assert verify("--all")[1].keys() == {"I20"}
        cursor.execute("SELECT ledger_touch_v1(%s, %s)", [shop.pk, record["lost"]])

    assert verify("--all") == (True, {})


def test_the_handbook_says_what_each_finding_means():
    handbook = (settings.BASE_DIR / "docs" / "verification.md").read_text(encoding="utf-8")
    always, further = checks(clock_may_move=False), further_checks()

    for check in (*always, *further):
        assert f"\n| {check.id} " in handbook
    assert {check.id for check in always} == set(re.findall(r"\n\| (\w+) \*always", handbook))


SUSPECT = {
    "4111111111111111": "a card number",
    "no. 4111-1111-1111-1111, please": "a card number",
    "amex 3782 822463 10005": "a card number",
    '{"card": "5555555555554444"}': "a card number",
    "rk_live_51Habc": "a provider's live key",
    "Authorization: Bearer abcdefghijklmnop": "a bearer token",
    "whsec_abcdefgh": "a webhook's secret",
    "cf_0a1b2c3d_" + "0f" * 32: "a token of this ledger",
}


@pytest.mark.parametrize("text", SUSPECT)
def test_what_looks_like_a_secret_is_one(text):
    assert suspects(text) == [SUSPECT[text]]


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",  # the check digit is another
        "94111111111111111",  # part of a longer run
        "41111111111111110000",  # more digits than a card has
        "a4111111111111111f",  # inside a digest
        "0.4111111111111111",  # a fraction
        "1796083200000",  # milliseconds since 1970
        "cf_" + "0a" * 16 + "_1",  # a marker
        "sk_test_4eC39HqLyjWDarjt",  # opens nothing
        "the bearer of bad news",
    ],
)
def test_what_is_no_secret_is_none(text):
    assert suspects(text) == []
