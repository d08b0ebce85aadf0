"""What the model is told about its tool call: the exact object to hand it as the tool's result.

A model that reads "failed" tries again. So every object names a `status`, says what is known in
`detail`, and says in `next_step` whether the call may be made again. An unknown outcome is told as
unknown: only a proof is told as "did not happen".
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final, assert_never

from effects.core.messages import ClaimAnswer
from effects.core.vocabulary import AnswerCode, ClaimState, Reason, Verdict

__all__ = ["exact_value", "for_model", "status_unavailable", "unavailable"]

INT_DIGITS_MAX: Final = 1000
ASK_AGAIN: Final = "Do not call this tool again for this; ask the status tool with claim {claim}"


def for_model(answer: ClaimAnswer) -> dict[str, Any]:
    """The object for the model that stands for a claim's answer, always with a `status`.

    Total over every code and every state. The server puts it into `ClaimAnswer.for_model`; the
    client makes the same one where a report could not be delivered.
    """
    if answer.code is not None:
        return _of_code(answer, answer.code)
    if answer.state is not None:
        return _of_state(answer, answer.state)
    return _told(answer, "unknown", "The ledger gave no word on this call.", _do_not_repeat(answer))


def unavailable(tool: str) -> dict[str, Any]:
    """For a call that was not made because the ledger could not be asked first."""
    return {
        "status": "ledger_unavailable",
        "detail": f"The record of {tool} could not be opened, so nothing was sent.",
        "next_step": "Nothing happened. The call may be made again later.",
    }


def status_unavailable(claim: str) -> dict[str, Any]:
    """For a status question that nobody could answer. It says nothing about the call itself."""
    return {
        "status": "ledger_unavailable",
        "detail": "The ledger cannot be asked now, so it is still not known what happened.",
        "next_step": "Do not repeat the original call; ask the status tool again later.",
        "claim": claim,
    }


def exact_value(text: str) -> Any:
    """The value of a JSON text, no amount changed: a number that a float cannot hold exactly is
    given as its own digits in a string. A text that cannot be read is given as it is: a result must
    reach the model, whatever it looks like."""
    try:
        return json.loads(text, parse_float=_float_or_digits, parse_int=_int_or_digits)
    except (ValueError, RecursionError):
        return text


def _float_or_digits(digits: str) -> float | str:
    value = float(digits)
    finite = value - value == 0
    return value if finite and Decimal(repr(value)) == Decimal(digits) else digits


def _int_or_digits(digits: str) -> int | str:
    # Python refuses to read integers of more than a few thousand digits.
    return int(digits) if len(digits) <= INT_DIGITS_MAX else digits


def _told(answer: ClaimAnswer, status: str, detail: str, next_step: str) -> dict[str, Any]:
    told: dict[str, Any] = {"status": status, "detail": detail, "next_step": next_step}
    reference = _reference(answer)
    if reference is not None:
        told["claim"] = reference
    if answer.link is not None:
        told["link"] = answer.link
    if answer.decision is not None and not answer.decision.pending:
        told["decided"] = str(answer.decision.verdict)
    return told


def _reference(answer: ClaimAnswer) -> str | None:
    """What the status tool knows the call by: its claim, or its key where no claim was granted."""
    return answer.key if answer.claim_id is None else str(answer.claim_id)


def _do_not_repeat(answer: ClaimAnswer) -> str:
    reference = _reference(answer)
    if reference is None:
        return "Do not call this tool again for this; ask a person."
    step = ASK_AGAIN.format(claim=reference)
    if answer.retry_after_seconds is not None:
        return f"{step} in {answer.retry_after_seconds} seconds."
    return f"{step}."


def _name(answer: ClaimAnswer) -> str:
    return answer.tool or "the tool"


def _of_code(answer: ClaimAnswer, code: AnswerCode) -> dict[str, Any]:  # noqa: C901, PLR0911 - one case for each word is the point
    match code:
        case AnswerCode.GRANTED | AnswerCode.GRANTED_AGAIN | AnswerCode.IN_FLIGHT:
            return _in_flight(answer)
        case AnswerCode.REPLAYED:
            return _completed(answer)
        case AnswerCode.UNKNOWN:
            return _unknown(answer)
        case AnswerCode.CONFLICTED:
            return _conflicted(answer)
        case AnswerCode.CLOSED:
            return _closed(answer)
        case AnswerCode.ATTEMPTS_EXHAUSTED:
            detail = (
                f"{_name(answer)} did not happen, and every attempt that the tool allows was used."
            )
            return _told(answer, "attempts_exhausted", detail, _a_person(answer))
        case AnswerCode.HELD:
            return _held(answer)
        case AnswerCode.ALREADY_DONE:
            return _already_done(answer)
        case AnswerCode.REISSUED_DIFFERENTLY | AnswerCode.MISMATCH:
            detail = (
                f"An earlier request in this place asked {_name(answer)} for something else, and it"
                " may have happened. This request was not carried out."
            )
            return _told(answer, str(code), detail, _a_person(answer))
        case AnswerCode.IDENTITIES_DISAGREE:
            detail = (
                "This request looks like two earlier ones at once. It was not carried out, so that"
                " neither happens twice."
            )
            return _told(answer, str(code), detail, _a_person(answer))
    assert_never(code)


def _of_state(answer: ClaimAnswer, state: ClaimState) -> dict[str, Any]:  # noqa: PLR0911 - one case for each word is the point
    match state:
        case ClaimState.IN_FLIGHT:
            return _in_flight(answer)
        case ClaimState.UNKNOWN:
            return _unknown(answer)
        case ClaimState.COMPLETED:
            return _completed(answer)
        case ClaimState.NOT_EXECUTED:
            detail = f"It is proven that {_name(answer)} did not happen."
            return _told(answer, "not_executed", detail, "The call may be made again.")
        case ClaimState.RELEASED:
            detail = f"A person allowed {_name(answer)} one more attempt."
            step = "Make the same call once more, with the same arguments."
            return _told(answer, "released", detail, step)
        case ClaimState.CONFLICTED:
            return _conflicted(answer)
        case ClaimState.CLOSED:
            return _closed(answer)
    assert_never(state)


def _a_person(answer: ClaimAnswer) -> str:
    return f"A person decides. {_do_not_repeat(answer)}"


def _in_flight(answer: ClaimAnswer) -> dict[str, Any]:
    detail = f"{_name(answer)} is being carried out now and has not ended yet."
    return _told(answer, "in_flight", detail, _do_not_repeat(answer))


def _unknown(answer: ClaimAnswer) -> dict[str, Any]:
    if answer.reason is Reason.EXPIRED_UNANSWERED:
        detail = (
            f"It is not known whether {_name(answer)} happened: it may have. Nobody has decided, "
            "and the time in which a repeat would have been safe is over."
        )
        return _told(answer, "expired_unanswered", detail, _do_not_repeat(answer))
    detail = f"It is not known whether {_name(answer)} happened: it may have."
    if answer.decision_pending:
        detail += " A person has decided; the decision takes effect soon."
    elif answer.decision is not None and answer.decision.verdict is Verdict.REOPEN:
        detail += " A person has reopened it: what was said about it before is withdrawn."
    return _told(answer, "unknown", detail, _do_not_repeat(answer))


def _with_result(answer: ClaimAnswer, told: dict[str, Any]) -> dict[str, Any]:
    if answer.result is not None:
        told["result"] = exact_value(answer.result)
    elif answer.result_stored is False:
        told["detail"] += " Its result could not be kept."
    if answer.provider_object is not None:
        told["provider_object"] = answer.provider_object
    return told


def _completed(answer: ClaimAnswer) -> dict[str, Any]:
    detail = f"{_name(answer)} happened, once."
    step = "Go on with the result. Do not make this call again."
    return _with_result(answer, _told(answer, "completed", detail, step))


def _already_done(answer: ClaimAnswer) -> dict[str, Any]:
    detail = (
        f"{_name(answer)} was asked for earlier with the same content, and that one happened. This"
        " request was not carried out."
    )
    step = "Treat it as done. Only a person can allow a second one."
    told = _with_result(answer, _told(answer, "already_done", detail, step))
    if answer.blocker is not None:
        told["done_by"] = str(answer.blocker)
    return told


def _held(answer: ClaimAnswer) -> dict[str, Any]:
    detail = (
        f"An earlier request to {_name(answer)} with the same content is not settled. This one was"
        " not carried out, so that it does not happen twice."
    )
    told = _told(answer, "held", detail, _do_not_repeat(answer))
    if answer.blocker is not None:
        told["held_by"] = str(answer.blocker)
        told["next_step"] = ASK_AGAIN.format(claim=answer.blocker) + "."
    return told


def _conflicted(answer: ClaimAnswer) -> dict[str, Any]:
    detail = (
        f"What is known about {_name(answer)} contradicts itself: it may have happened more than"
        " once, or although it was said that it did not."
    )
    return _told(answer, "conflicted", detail, _a_person(answer))


def _closed(answer: ClaimAnswer) -> dict[str, Any]:
    detail = f"It is not known whether {_name(answer)} happened, and a person has stopped it."
    step = "Outcome unknown, do not retry. Tell the user that it could not be confirmed."
    return _told(answer, "unknown_do_not_retry", detail, step)
