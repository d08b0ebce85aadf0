"""A person's decision: checked again where it counts, written once, held for a minute.

A form carries a signed token of the screen that its author had before them. The decision is made
only if that picture still holds; the record then compares the version once more as it writes. The
same form sent twice (a double click, Enter and a click, Back and again) finds the decision that it
made the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.db import connection

from effects.core.problems import NotOffered, Stale
from effects.core.vocabulary import ClaimState, EventKind, Role
from ledger import append
from ledger.append import NewDecision
from reconcile import queries
from reconcile.actions import Action, ActionName, find, safe_actions
from reconcile.queries import Call

REASON_CHARACTERS_MAX: Final = append.REASON_CHARACTERS_MAX
NOTE_CHARACTERS_MAX: Final = append.NOTE_CHARACTERS_MAX
OBJECT_CHARACTERS_MAX: Final = 255
TRIES_MAX: Final = 3
"""How often a decision is offered to the record while only the clock moves the claim under it."""

_SALT: Final = "counterfoil.screen"
_LOCK_CLASS: Final = 1667657328  # with the claim: one form at a time

# What the clock writes when it gets round to it; a page shows it before it is written.
_CLOCKS_OWN: Final = frozenset(
    {EventKind.LAPSED, EventKind.RELEASE_LAPSED, EventKind.ABSENCE_LAPSED}
)
# Stopping a call and declaring a worker lost say nothing about the world, so they rest on nothing.
_NEEDS_NO_BASIS: Final = frozenset({ActionName.CLOSE, ActionName.LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the author of a form had before them."""

    claim_id: UUID
    version: int
    state: ClaimState
    digest: bytes
    user_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a person sent. `evidence` are event numbers; texts may be empty."""

    action: ActionName
    screen: Screen
    evidence: tuple[int, ...] = ()
    note: str = ""
    reason: str = ""
    provider_object: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The decision that the form made; `again` where an earlier copy of the form had made it."""

    decision_id: int
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """The picture no longer holds. Nothing was recorded."""

    call: Call
    screen: Screen


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """The picture holds, and the action is not offered. Nothing was recorded."""

    call: Call
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """Something has to be put right: one sentence for each field."""

    call: Call
    errors: dict[str, str]


Result = Made | Overtaken | Unavailable | Incomplete


def token_for(call: Call, user_id: int) -> str:
    """The signed token of the screen that shows this call."""
    situation = call.situation
    said = {
        "claim": str(situation.claim_id),
        "version": situation.version,
        "state": str(situation.state),
        "digest": queries.screen_hash(situation).hex(),
        "user": user_id,
    }
    return signing.dumps(said, salt=_SALT)


def read_token(token: str, *, claim_id: UUID, user_id: int) -> Screen | None:
    """The screen in a token; None for one that is not ours, or is of another call or person."""
    try:
        said: dict[str, Any] = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    if said["claim"] != str(claim_id) or said["user"] != user_id:
        return None
    return Screen(
        claim_id=claim_id,
        version=said["version"],
        state=ClaimState(said["state"]),
        digest=bytes.fromhex(said["digest"]),
        user_id=user_id,
    )


def decide(workspace_id: int, form: Form, *, role: Role) -> Result:
    """Makes the form's decision, or says why not. Raises `ClaimNotFound`."""
    with _one_form_at_a_time(form.screen.claim_id):
        for _ in range(TRIES_MAX):
            call = queries.call(workspace_id, form.screen.claim_id)
            result = _try(workspace_id, form, call, role)
            if result is not None:
                return result
    return Overtaken(call=queries.call(workspace_id, form.screen.claim_id), screen=form.screen)


def undo(workspace_id: int, claim_id: UUID, decision_id: int, user_id: int) -> bool:
    """Takes a held decision back. False: it is in force already, or it is held no more."""
    return append.withdraw(workspace_id, claim_id, decision_id, user_id)


def _try(workspace_id: int, form: Form, call: Call, role: Role) -> Result | None:
    """One attempt; None where the record moved in between and should be read again."""
    made = _made_already(form, call)
    if made is not None:
        same = made.verdict == form.action.verdict
        return (
            Made(decision_id=made.pk, again=True)
            if same
            else Overtaken(call=call, screen=form.screen)
        )
    if not picture_holds(call, form):
        return Overtaken(call=call, screen=form.screen)
    action = find(safe_actions(call.situation, role=role), form.action)
    if not action.offered:
        return Unavailable(call=call, action=action)
    errors = faults(form, call, action)
    if errors:
        return Incomplete(call=call, errors=errors)
    return _write(workspace_id, form, call)


def _made_already(form: Form, call: Call) -> Any:
    for decision in call.decisions:
        author = decision.decided_by_id == form.screen.user_id
        if author and bytes(decision.screen_hash or b"") == form.screen.digest:
            return decision
    return None


def picture_holds(call: Call, form: Form) -> bool:
    """Whether what the author saw is still what there is.

    What the clock wrote since is not news if the page showed it as done already. The author's own
    note counts as part of this form: an earlier copy of it got as far as the note.
    """
    if call.situation.state is not form.screen.state:
        return False
    since = [event for event in call.events if event.seq > form.screen.version]
    if call.claim.version - form.screen.version != len(since):
        return False
    return all(event.kind in _CLOCKS_OWN or _is_own_note(event, form) for event in since)


def _is_own_note(event: Any, form: Form) -> bool:
    said = event.data or {}
    own = {"text": form.note, "user_id": form.screen.user_id}
    return event.kind == EventKind.NOTED and bool(form.note) and said == own


def faults(form: Form, call: Call, action: Action) -> dict[str, str]:
    """What is missing from the form, by field."""
    errors: dict[str, str] = {}
    if not form.reason:
        errors["reason"] = "Say why, in a few words: it is kept with the decision."
    elif len(form.reason) > REASON_CHARACTERS_MAX:
        errors["reason"] = f"At most {REASON_CHARACTERS_MAX} characters."
    if len(form.note) > NOTE_CHARACTERS_MAX:
        errors["note"] = f"At most {NOTE_CHARACTERS_MAX} characters."
    elif action.note_required and not form.note:
        errors["note"] = "Write how you know: no answer of the provider shows it."
    if action.object_required and not form.provider_object:
        errors["provider_object"] = "The evidence says otherwise: name the provider's object."
    elif len(form.provider_object) > OBJECT_CHARACTERS_MAX:
        errors["provider_object"] = f"At most {OBJECT_CHARACTERS_MAX} characters."
    wrong = _fault_of_evidence(form, call)
    if wrong is not None:
        errors["evidence"] = wrong
    return errors


def _fault_of_evidence(form: Form, call: Call) -> str | None:
    known = {item.number for item in call.situation.evidence}
    known |= {note.seq for note in call.notes}
    if not set(form.evidence) <= known:
        return "Choose from the evidence that is shown."
    if form.action is ActionName.NOT_HAPPENED:
        absences = {item.number for item in call.situation.strong_absence}
        if not absences & set(form.evidence):
            return "Name the strong absence that this rests on."
    if not form.evidence and not form.note and form.action not in _NEEDS_NO_BASIS:
        return "Choose at least one piece of evidence, or write a note."
    return None


def _write(workspace_id: int, form: Form, call: Call) -> Result | None:
    verdict = form.action.verdict
    assert verdict is not None, "only verdicts are offered to this function"
    claim_id, version, evidence = form.screen.claim_id, call.claim.version, form.evidence
    if form.note:
        number = _note_number(workspace_id, form, call)
        if number > version + 1:
            return None  # Something was written in between: look again before deciding.
        version, evidence = max(version, number), (*evidence, number)
    decision = NewDecision(
        verdict=verdict,
        claim_version=version,
        reason=form.reason,
        evidence=evidence,
        provider_object=form.provider_object or None,
        screen_hash=form.screen.digest,
        user_id=form.screen.user_id,
        hold_seconds=call.situation.hold_seconds,
    )
    try:
        held = append.decide(workspace_id, claim_id, decision)
    except Stale:
        return None
    except NotOffered as refused:
        action = Action(name=form.action, offered=False, reason=_record_says(refused))
        return Unavailable(call=queries.call(workspace_id, claim_id), action=action)
    return Made(decision_id=held.decision_id)


def _note_number(workspace_id: int, form: Form, call: Call) -> int:
    """The event number of the form's note, which an earlier copy of the form may have written."""
    for event in call.events:
        if event.seq > form.screen.version and _is_own_note(event, form):
            return event.seq
    return append.note(workspace_id, form.screen.claim_id, form.screen.user_id, form.note)


_RECORD_SAYS: Final = {
    "state": "The claim is in another state by now.",
    "no_window": "No window is known, so nobody can say that a second send is safe.",
    "window_closed": "The window, less its margin, has closed.",
    "key_burnt": "The provider has stored a refusal under this key.",
    "sibling": "Another call for the same thing is open or was done later.",
    "effects_not_named": "Not every known effect was named.",
}


def _record_says(refused: NotOffered) -> str:
    return _RECORD_SAYS.get(str(refused.facts.get("why")), refused.detail)


@contextmanager
def _one_form_at_a_time(claim_id: UUID) -> Iterator[None]:
    """Two copies of one form wait for each other, so the second finds what the first has done."""
    name: tuple[int, str] = (_LOCK_CLASS, str(claim_id))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", name)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", name)
