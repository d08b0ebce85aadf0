"""What is said about a call, and what may be told to a customer."""

import pytest

from effects.core.vocabulary import ClaimState, Outcome, Reason, SightingWord
from reconcile.customer.kinds import Tell
from reconcile.situation import AttemptSeen, Strength
from reconcile.verdict import verdict
from tests.support.situations import (
    FOUND,
    LOST_ANSWER,
    NOW,
    SENT_AT,
    STRONG_ABSENCE,
    WEAK_ABSENCE,
    a_situation,
    evidence,
    in_flight,
)

S = ClaimState


def attempt(outcome, fence=1, **more):
    return AttemptSeen(fence=fence, granted_at=SENT_AT, ended_at=NOW, outcome=outcome, **more)


@pytest.mark.parametrize(
    ("situation", "says", "kind"),
    [
        pytest.param(
            in_flight(),
            "A worker has held this call for 10 s",
            Tell.IN_FLIGHT,
            id="in flight",
        ),
        pytest.param(
            a_situation(),
            "its answer was lost. Nobody has asked the provider yet.",
            Tell.UNKNOWN,
            id="unknown, nobody asked",
        ),
        pytest.param(
            a_situation(can_look_up=False),
            "This tool has no look-up, so only a person can find out.",
            Tell.UNKNOWN,
            id="unknown, nobody to ask",
        ),
        pytest.param(
            a_situation(evidence=(WEAK_ABSENCE,)),
            "no record of it, asked through List PaymentIntents, which does not prove",
            Tell.UNKNOWN,
            id="unknown, weak absence",
        ),
        pytest.param(
            a_situation(evidence=(STRONG_ABSENCE,)),
            "Stripe has no record of it, asked through List PaymentIntents. A person still",
            Tell.UNKNOWN,
            id="unknown, strong absence, a worker may still send",
        ),
        pytest.param(
            a_situation(evidence=(evidence(SightingWord.PENDING), WEAK_ABSENCE)),
            "The answers of Stripe do not agree.",
            Tell.UNKNOWN,
            id="unknown, answers disagree",
        ),
        pytest.param(
            a_situation(
                evidence=(evidence(SightingWord.LOOKUP_FAILED, 4), evidence(SightingWord.PENDING))
            ),
            "Stripe: it is still working on it.",
            Tell.UNKNOWN,
            id="unknown, a failed look-up hides no older answer",
        ),
        pytest.param(
            a_situation(attempts=(attempt(None),)),
            "The worker never said how it ended, and its lease is over.",
            Tell.UNKNOWN,
            id="unknown, lease over",
        ),
        pytest.param(
            a_situation(attempts=(attempt(Outcome.UNKNOWN, http_status=500),)),
            "answered with HTTP 500, which proves nothing",
            Tell.UNKNOWN,
            id="unknown, a 500 proves nothing",
        ),
        pytest.param(
            a_situation(state=S.COMPLETED, object="pi_1", evidence=(FOUND,)),
            "It happened as pi_1: Stripe shows it.",
            Tell.COMPLETED,
            id="happened, found",
        ),
        pytest.param(
            a_situation(state=S.COMPLETED, attempts=(attempt(Outcome.COMPLETED),)),
            "the worker reported the result",
            Tell.COMPLETED,
            id="happened, reported",
        ),
        pytest.param(
            a_situation(state=S.COMPLETED, attempts=(attempt(Outcome.COMPLETED, watched=True),)),
            "the tool's code returned, as a span of it says. Stripe was not asked.",
            Tell.WATCHED,
            id="happened, as far as a span can say",
        ),
        pytest.param(
            a_situation(
                state=S.COMPLETED,
                attempts=(
                    attempt(Outcome.COMPLETED, 2, watched=True),
                    attempt(Outcome.COMPLETED),
                ),
            ),
            "the worker reported the result",
            Tell.COMPLETED,
            id="happened, told by its worker as well",
        ),
        pytest.param(
            a_situation(state=S.COMPLETED, reason=Reason.TOLD_OTHERWISE, evidence=(FOUND,)),
            "had been told otherwise",
            Tell.COMPLETED,
            id="happened, told otherwise",
        ),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED, attempts=(attempt(Outcome.NOT_SENT),)),
            "never left the worker",
            Tell.NOT_EXECUTED,
            id="not sent",
        ),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED, attempts=(attempt(Outcome.REFUSED),)),
            "Stripe refused the request",
            Tell.NOT_EXECUTED,
            id="refused",
        ),
        pytest.param(
            a_situation(
                state=S.NOT_EXECUTED,
                evidence=(
                    evidence(
                        SightingWord.ABSENT, strength=Strength.FAIR, counts=True, conditional=True
                    ),
                ),
            ),
            "only while the key is honoured",
            Tell.NOT_EXECUTED_FOR_NOW,
            id="absent for as long as the key is honoured",
        ),
        pytest.param(
            a_situation(
                state=S.NOT_EXECUTED, evidence=(evidence(SightingWord.ABSENT, counts=True),)
            ),
            "no record of it, asked through List PaymentIntents.",
            Tell.NOT_EXECUTED,
            id="absent",
        ),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED, fence=3, evidence=(STRONG_ABSENCE,)),
            "every attempt is proven not sent, refused or absent. All attempts are used up",
            Tell.NOT_EXECUTED,
            id="an absence older than the newest attempt is not cited",
        ),
        pytest.param(
            a_situation(state=S.RELEASED), "with the same key", Tell.RELEASED, id="released"
        ),
        pytest.param(
            a_situation(state=S.RELEASED, fresh_key=True),
            "with a new key",
            Tell.RELEASED_NEW_KEY,
            id="released with a new key",
        ),
        pytest.param(
            a_situation(
                state=S.CONFLICTED,
                evidence=(evidence(SightingWord.FOUND_MANY, objects=("pi_1", "pi_2")),),
            ),
            "More than one effect is recorded for one intent: pi_1, pi_2.",
            Tell.DUPLICATE,
            id="two effects",
        ),
        pytest.param(
            a_situation(state=S.CONFLICTED, evidence=(STRONG_ABSENCE,)),
            "contradict each other",
            Tell.CONTRADICTION,
            id="contradiction",
        ),
        pytest.param(
            a_situation(state=S.CLOSED),
            "A person stopped this call",
            Tell.CLOSED,
            id="closed",
        ),
    ],
)
def test_one_plain_sentence_and_one_for_the_customer(situation, says, kind):
    box = verdict(situation)
    assert says in box.says
    assert box.kind is kind


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("word", SightingWord)
@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_every_state_answer_and_outcome_has_its_words(state, word, outcome):
    box = verdict(
        a_situation(state=state, evidence=(evidence(word),), attempts=(attempt(outcome),))
    )
    assert box.says
    assert box.says.endswith(".")
    assert box.rests_on


@pytest.mark.parametrize("word", SightingWord)
@pytest.mark.parametrize("strength", Strength)
def test_an_unknown_outcome_is_never_told_as_anything_else(word, strength):
    box = verdict(a_situation(evidence=(evidence(word, strength=strength),)))
    assert box.kind is Tell.UNKNOWN
    assert "It happened" not in box.says
    assert "did not happen" not in box.says


def test_two_attempts_are_told_apart():
    box = verdict(a_situation(fence=2, attempts=(attempt(Outcome.NOT_SENT, 2), LOST_ANSWER)))
    assert box.says.startswith("Attempt 2 was not sent, but an earlier one may have been.")


def test_the_verdict_cites_the_evidence_that_it_rests_on():
    box = verdict(a_situation(evidence=(WEAK_ABSENCE,)))
    assert box.rests_on == "evidence 3"
    assert box.cites == (3,)
    assert box.strength is Strength.WEAK
