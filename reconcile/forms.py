"""What a person sends: the screen that they had before them, and the form that they filled in."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.core import signing

from effects.core.vocabulary import ClaimState, EventKind, Verdict
from ledger import append
from reconcile import queries
from reconcile.action_names import ActionName
from reconcile.actions import Action
from reconcile.queries import Call

REASON_CHARACTERS_MAX: Final = append.REASON_CHARACTERS_MAX
NOTE_CHARACTERS_MAX: Final = append.NOTE_CHARACTERS_MAX
OBJECT_CHARACTERS_MAX: Final = 255
LINK_CHARACTERS_MAX: Final = 500

_SALT: Final = "counterfoil.screen"

# What the clock writes when it gets round to it; a page shows it before it is written.
_CLOCKS_OWN: Final = frozenset(
    {EventKind.LAPSED, EventKind.RELEASE_LAPSED, EventKind.ABSENCE_LAPSED, EventKind.DECIDED}
)
# Stopping a call and declaring a worker lost say nothing about the world, so they rest on nothing;
# a reopening and an allowance rest on their reason.
_NEEDS_NO_BASIS: Final = frozenset(
    {ActionName.CLOSE, ActionName.LOST, ActionName.REOPEN, ActionName.ALLOW}
)

REFUNDED: Final = "refunded"
ABOUT_THE_REST: Final = {
    REFUNDED: "Refunded or cancelled",
    "not_a_duplicate": "Not a duplicate: both were meant",
    "accepted": "Left as it is",
}
"""What was done about the effects that do not stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the author of a form had before them."""

    claim_id: UUID
    version: int
    state: ClaimState
    digest: bytes
    user_id: int
    form: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a person sent. `evidence` are event numbers; texts may be empty.

    `typed` confirms an act that can happen twice. `about` and `link` belong to a settling: what was
    done about the effects other than `provider_object`, which stands. `held_request` belongs to an
    allowance. `ask_second`: nothing is to be decided before another person agrees. `effects` and
    `reason_is_whole` come from a stored request, never from a browser. `session`: a digest of the
    session that it was sent from.
    """

    action: ActionName
    screen: Screen
    evidence: tuple[int, ...] = ()
    note: str = ""
    reason: str = ""
    provider_object: str = ""
    typed: str = ""
    about: str = ""
    link: str = ""
    held_request: int | None = None
    ask_second: bool = False
    effects: tuple[str, ...] = ()
    reason_is_whole: bool = False
    session: bytes = b""

    @property
    def full_reason(self) -> str:
        """The reason as it is kept: a settling says first what was done about the rest."""
        if self.action is not ActionName.SETTLE or self.reason_is_whole:
            return self.reason
        done = ABOUT_THE_REST.get(self.about, self.about)
        where = f" ({self.link})" if self.link else ""
        return f"The rest: {done.lower()}{where}. {self.reason}"


def session_digest(session_key: str | None) -> bytes:
    """What is kept of a session: enough to tell two apart, nothing that lets anybody in."""
    return hashlib.sha256(f"{_SALT} {session_key or ''}".encode()).digest()[:16]


def token_for(call: Call, user_id: int) -> str:
    """The signed token of the screen that shows this call."""
    situation = call.situation
    said = {
        "claim": str(situation.claim_id),
        "version": situation.version,
        "state": str(situation.state),
        "digest": queries.screen_hash(situation).hex(),
        "user": user_id,
        # Each form is one of its own: sent twice it asks once, and a later one asks again.
        "form": secrets.token_hex(8),
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
        form=hashlib.sha256(token.encode()).digest(),
    )


def picture_holds(call: Call, screen: Screen, *, note: str = "") -> bool:
    """Whether what the author saw is still what there is.

    What the clock wrote since is not news if the page showed it as done already. The author's own
    note counts as part of this form: an earlier copy of it got as far as the note.
    """
    if call.situation.state is not screen.state:
        return False
    since = [event for event in call.events if event.seq > screen.version]
    if call.claim.version - screen.version != len(since):
        return False
    # A reopening in force rejects evidence that the page still showed as standing.
    if any(event.kind == EventKind.DECIDED and event.word == Verdict.REOPEN for event in since):
        return False
    return all(
        event.kind in _CLOCKS_OWN or is_own_note(event, note, screen.user_id) for event in since
    )


def is_own_note(event: Any, note: str, user_id: int) -> bool:
    said = event.data or {}
    return (
        event.kind == EventKind.NOTED and bool(note) and said == {"text": note, "user_id": user_id}
    )


def faults(form: Form, call: Call, action: Action) -> dict[str, str]:
    """What is missing from the form, by field."""
    errors = _faults_of_texts(form, action)
    if action.typed and form.typed != action.typed:
        errors["typed"] = f"Type {action.typed} exactly as it is shown."
    if form.action is ActionName.SETTLE:
        errors |= _faults_of_settling(form, call)
    wrong = _fault_of_evidence(form, call)
    if wrong is not None:
        errors["evidence"] = wrong
    return errors


def _faults_of_texts(form: Form, action: Action) -> dict[str, str]:
    errors: dict[str, str] = {}
    if not form.reason:
        errors["reason"] = "Say why, in a few words: it is kept with the decision."
    elif len(form.full_reason) > REASON_CHARACTERS_MAX:
        errors["reason"] = f"At most {REASON_CHARACTERS_MAX} characters."
    if len(form.note) > NOTE_CHARACTERS_MAX:
        errors["note"] = f"At most {NOTE_CHARACTERS_MAX} characters."
    elif action.note_required and not form.note:
        errors["note"] = "Write how you know: no answer of the provider shows it."
    if action.object_required and not form.provider_object:
        errors["provider_object"] = "The evidence says otherwise: name the provider's object."
    elif len(form.provider_object) > OBJECT_CHARACTERS_MAX:
        errors["provider_object"] = f"At most {OBJECT_CHARACTERS_MAX} characters."
    return errors


def _faults_of_settling(form: Form, call: Call) -> dict[str, str]:
    errors: dict[str, str] = {}
    if form.provider_object not in call.situation.effects:
        errors["provider_object"] = "Say which of the effects stands."
    if form.about not in ABOUT_THE_REST:
        errors["about"] = "Say what was done about the rest."
    if form.about == REFUNDED and not form.link:
        errors["link"] = "Name the refund: its id or its address at the provider."
    elif len(form.link) > LINK_CHARACTERS_MAX:
        errors["link"] = f"At most {LINK_CHARACTERS_MAX} characters."
    return errors


def _fault_of_evidence(form: Form, call: Call) -> str | None:
    known = {item.number for item in call.situation.evidence}
    known |= {note.seq for note in call.notes}
    if not set(form.evidence) <= known:
        return "Choose from the evidence that is shown."
    absences = {item.number for item in call.situation.strong_absence}
    if form.action is ActionName.NOT_HAPPENED and absences and not absences & set(form.evidence):
        return "Name the strong absence that this rests on."
    settles = form.action is ActionName.SETTLE  # It rests on the effects that it names.
    if not form.evidence and not form.note and not settles and form.action not in _NEEDS_NO_BASIS:
        return "Choose at least one piece of evidence, or write a note."
    return None
