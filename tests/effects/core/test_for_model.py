"""What the model reads, word by word: it acts on these sentences."""

from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import pytest

from effects.core.for_model import exact_value, for_model, status_unavailable, unavailable
from effects.core.messages import ClaimAnswer, DecisionShown
from effects.core.vocabulary import AnswerCode, ClaimState, Verdict

CLAIM = UUID("0192f3a4-0000-7000-8000-000000000001")
BLOCKER = UUID("0192f3a4-0000-7000-8000-000000000002")


def answer(**what) -> ClaimAnswer:
    return ClaimAnswer(claim_id=CLAIM, tool="send_payment", **what)


def test_an_unknown_outcome_is_told_as_unknown_with_the_next_step():
    assert for_model(answer(code=AnswerCode.UNKNOWN, state=ClaimState.UNKNOWN)) == {
        "status": "unknown",
        "detail": "It is not known whether send_payment happened: it may have.",
        "next_step": "Do not call this tool again for this; ask the status tool with claim"
        f" {CLAIM}.",
        "claim": str(CLAIM),
    }


def test_a_repeat_gets_the_stored_result():
    told = for_model(
        answer(
            code=AnswerCode.REPLAYED,
            state=ClaimState.COMPLETED,
            result='{"id": "pi_1", "amount": 1200}',
            provider_object="pi_1",
        )
    )
    assert told["status"] == "completed"
    assert told["result"] == {"id": "pi_1", "amount": 1200}
    assert told["provider_object"] == "pi_1"


def test_a_result_that_could_not_be_kept_is_said_so_and_not_invented():
    told = for_model(answer(state=ClaimState.COMPLETED, result_stored=False))
    assert told["detail"] == "send_payment happened, once. Its result could not be kept."
    assert "result" not in told


def test_a_stopped_call_says_that_its_outcome_is_unknown_and_not_to_retry():
    told = for_model(answer(state=ClaimState.CLOSED))
    assert told["next_step"].startswith("Outcome unknown, do not retry.")


def test_a_held_call_points_at_the_claim_that_holds_it():
    told = for_model(answer(code=AnswerCode.HELD, blocker=BLOCKER))
    assert told["held_by"] == str(BLOCKER)
    assert str(BLOCKER) in told["next_step"]


def test_what_was_done_before_is_told_with_its_result():
    told = for_model(
        answer(code=AnswerCode.ALREADY_DONE, blocker=BLOCKER, result="[1]", provider_object="pi_1")
    )
    assert (told["status"], told["done_by"], told["result"]) == ("already_done", str(BLOCKER), [1])


def test_a_persons_decision_is_named_once_it_is_in_force():
    at = datetime(2026, 11, 30, tzinfo=UTC)
    shown = DecisionShown(
        decision_id=7,
        verdict=Verdict.HAPPENED,
        reason="Seen in the bank's list.",
        decided_at=at,
        effective_at=at,
        pending=False,
    )
    assert for_model(answer(state=ClaimState.COMPLETED, decision=shown))["decided"] == "happened"
    held = shown.model_copy(update={"pending": True})
    told = for_model(answer(state=ClaimState.UNKNOWN, decision=held, decision_pending=True))
    assert "decided" not in told
    assert "takes effect soon" in told["detail"]


EVERY = [
    *(answer(code=code) for code in AnswerCode),
    *(answer(state=state) for state in ClaimState),
    ClaimAnswer(),
]
MAY_REPEAT = {"not_executed", "released"}


@pytest.mark.parametrize("given", EVERY, ids=lambda a: f"code {a.code}, state {a.state}")
def test_every_word_is_told_and_only_a_proof_or_a_release_allows_a_repeat(given):
    told = for_model(given)
    assert {"status", "detail", "next_step"} <= told.keys()
    allows = told["next_step"].startswith(("The call may be made again", "Make the same call"))
    assert allows == (told["status"] in MAY_REPEAT)
    if not allows:
        assert any(
            no in told["next_step"] for no in ("Do not", "do not", "Only a person can allow")
        )


def test_states_and_codes_that_mean_the_same_are_told_the_same():
    for code, state in product((AnswerCode.UNKNOWN,), (ClaimState.UNKNOWN,)):
        assert for_model(answer(code=code)) == for_model(answer(state=state))
    assert for_model(answer(code=AnswerCode.CLOSED)) == for_model(answer(state=ClaimState.CLOSED))


def test_a_ledger_that_is_away_is_told_as_nothing_sent_but_never_for_a_status_question():
    assert unavailable("send_payment")["next_step"] == (
        "Nothing happened. The call may be made again later."
    )
    asked = status_unavailable(str(CLAIM))
    assert "Nothing happened" not in asked["next_step"]
    assert "Do not repeat" in asked["next_step"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12345678901234567890", 12345678901234567890),
        ("0.1", 0.1),
        ("1.10", 1.1),
        ("0.30000000000000000001", "0.30000000000000000001"),
        ("1e400", "1e400"),
        ("[1.0]", [1.0]),
        ("9" * 5000, "9" * 5000),
        ("[" * 100_000, "[" * 100_000),
        ("not JSON", "not JSON"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_no_amount_changes_on_its_way_to_the_model(text, value):
    assert exact_value(text) == value
