"""Hiding before storing: every door asks here for the text that it may store.

Digests and identities are made of the exact text before. What was hidden to be revealed later is
sealed with the installation's key in the transaction that stores the text, and bound to the claim,
to the kind of text and to the very text that it was taken from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from psycopg import errors
from psycopg.types.json import Jsonb

from effects import sealing
from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, Complete, Settle
from effects.core.redaction import Found, Mode, Redacted, Redaction, Where, redact, restored
from effects.core.storable import NUL_SHOWN
from effects.redaction import rules
from ledger.functions import TRIES_MAX, call
from ledger.models_sealed import SealedText

KNOWN_MAX: Final = 200
"""Most hidden values of one claim that are looked for in what is told about it later."""


class Unrevealable(Exception):
    """A hidden value that cannot be shown: it was dropped, emptied, or its key is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """One hidden value of a claim as the desk lists it; `number` is its place in its text."""

    sealed_id: int
    number: int
    name: str
    path: str
    shown: str
    reason: str = ""

    @property
    def can_be_revealed(self) -> bool:
        return not self.reason


# Texts as they may be stored


def arguments(workspace_id: int, tool: str, text: str) -> Redacted:
    return redact(text, rules.in_force(workspace_id).redaction(Where.ARGUMENTS, tool))


def body(workspace_id: int, raw: bytes, *, known: tuple[str, ...] = ()) -> tuple[bytes, Redacted]:
    """A provider's bytes as they may be stored. Bytes that are no UTF-8 stay where nothing in them
    is hidden, and are written anew where something is."""
    redaction = rules.in_force(workspace_id).redaction(Where.BODIES, None)
    redacted = redact(raw.decode("utf-8", "surrogateescape"), replace(redaction, known=known))
    if not redacted.found:
        return raw, redacted
    return redacted.text.encode("utf-8", "surrogateescape"), redacted


def report(workspace_id: int, claim_id: UUID, settle: Settle) -> tuple[Settle, Redacted | None]:
    """A report as it may be stored, and what was hidden of its result.

    What an error quotes of the claim's hidden arguments is hidden in it too.
    """
    result = settle.result if isinstance(settle, Complete) else None
    if result is None and settle.error is None:
        return settle, None
    in_force = rules.in_force(workspace_id)
    tool = _tool_of(workspace_id, claim_id) if in_force.names_tools(Where.RESULTS) else None
    known = known_values_if_any(workspace_id, claim_id)
    redaction = replace(in_force.redaction(Where.RESULTS, tool), known=known)
    kept = None if result is None else redact(result, redaction)
    error = None if settle.error is None else redact(settle.error, redaction).text
    changes: dict[str, Any] = {} if error == settle.error else {"error": error}
    if kept is not None and kept.found:
        changes["result"] = kept.text
    return (settle.model_copy(update=changes) if changes else settle), kept


def said(workspace_id: int, value: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """What people are shown beside an answer of a provider, with the claim's hidden values and
    everything that is secret by its name hidden in it. `value` is JSON as Python holds it."""
    redaction = Redaction(secrets=rules.in_force(workspace_id).secrets, known=known)
    text = json.dumps(value, ensure_ascii=False)
    redacted = redact(text, redaction)
    told = json.loads(redacted.text) if redacted.found else value
    return dict(told) if isinstance(told, Mapping) else {"hidden": told}


def _tool_of(workspace_id: int, claim_id: UUID) -> str | None:
    rows = call(
        "SELECT t.name FROM ledger_claim c JOIN effects_tool t ON t.id = c.tool_id"
        " WHERE c.id = %s AND c.workspace_id = %s",
        (claim_id, workspace_id),
    )
    return rows[0][0] if rows else None


# Sealing


def in_one[Answer](work: Callable[[], Answer]) -> Answer:
    """Runs `work` in one transaction; the loser of a race tries again, unless it is part of a
    greater transaction."""
    for left in reversed(range(TRIES_MAX)):
        outermost = not transaction.get_connection().in_atomic_block
        try:
            with transaction.atomic():
                return work()
        except (errors.SerializationFailure, errors.DeadlockDetected):
            if not outermost or not left:
                raise
    raise AssertionError("the last try either answers or raises")


SEAL: Final = (
    "INSERT INTO ledger_sealedtext (workspace_id, claim_id, item_id, name, text_digest, places,"
    " body, sealed_at) VALUES (%s, %s, %s, %s, %s, %s, %s, ledger_clock()) RETURNING id"
)


def seal(
    workspace_id: int,
    name: SealedText.Name,
    redacted: Redacted | None,
    *,
    claim_id: UUID | None = None,
    item_id: int | None = None,
) -> None:
    """Keeps what was hidden in a text, in the transaction that stores the text."""
    if redacted is None or not redacted.found:
        return
    rules.note_sealed(workspace_id)
    digest = _digest(redacted.text)
    values = json.dumps([asdict(one) for one in redacted.found])
    places = [
        [storable(one.path), redacted.text[one.at : one.at + one.length], str(one.mode)]
        for one in redacted.found
    ]
    call(
        SEAL,
        (
            workspace_id,
            claim_id,
            item_id,
            str(name),
            digest,
            Jsonb(places),
            sealing.seal(values, place=_place(workspace_id, name, digest)),
        ),
    )


def storable(path: str) -> str:
    """A name in evidence may hold what PostgreSQL keeps in no text."""
    return path.replace("\x00", NUL_SHOWN).encode("utf-8", "replace").decode()


def belongs_to(item_id: int, claim_id: UUID) -> None:
    """What an item hid is its claim's from now on."""
    SealedText.objects.filter(item_id=item_id).update(claim_id=claim_id, item_id=None)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _place(workspace_id: int, name: str, digest: bytes) -> str:
    """A sealed text opens as this text of this workspace and as no other."""
    return f"sealed:{workspace_id}:{name}:{digest.hex()}"


# Opening


def exact(workspace_id: int, claim_id: UUID, name: SealedText.Name, text: str | None) -> str | None:
    """The text as it was before anything was hidden, for a look-up's question and for the agent
    that reported it; what was dropped, emptied or cannot be opened stays as it is shown."""
    if text is None or "...." not in text:
        return text
    for row in _rows_of(workspace_id, claim_id, name=name, digest=_digest(text)):
        found = _open(row)
        if found is not None:
            return restored(text, found)
    return text


def known_values(workspace_id: int, claim_id: UUID) -> tuple[str, ...]:
    """Every value of the claim that is hidden and can be opened."""
    found = [_open(row) or () for row in _rows_of(workspace_id, claim_id)]
    values = (one.value for some in found for one in some if one.value)
    return tuple(dict.fromkeys(values))[:KNOWN_MAX]


def known_values_if_any(workspace_id: int, claim_id: UUID) -> tuple[str, ...]:
    """The same, without a question where the workspace has never sealed anything."""
    return known_values(workspace_id, claim_id) if rules.in_force(workspace_id).seals else ()


_HIDDEN: Final = """
SELECT s.* FROM ledger_sealedtext s JOIN ledger_claim c ON c.id = s.claim_id
 WHERE s.claim_id = %s AND s.workspace_id = %s AND c.workspace_id = s.workspace_id
   AND (s.text_digest = sha256(convert_to(c.arguments, 'UTF8'))
     OR s.text_digest = sha256(convert_to(c.result, 'UTF8'))
     OR EXISTS (SELECT FROM ledger_payload p
                 WHERE p.claim_id = c.id AND p.digest = s.text_digest))
 ORDER BY s.id LIMIT %s
"""
HIDDEN_TEXTS_MAX: Final = 50


def hidden_values(workspace_id: int, claim_id: UUID) -> list[Hidden]:
    """What is hidden in the texts of a claim that are stored, in the order in which they came;
    without opening any."""
    rows = SealedText.objects.raw(_HIDDEN, [claim_id, workspace_id, HIDDEN_TEXTS_MAX])
    return [one for row in rows for one in _listed(row)]


def _listed(row: SealedText) -> Iterator[Hidden]:
    for number, (path, shown, mode) in enumerate(row.places):
        reason = ""
        if mode == str(Mode.DROP):
            reason = "It was dropped before it was stored, so nobody can show it."
        elif row.body is None:
            reason = "It was emptied after the days for which such bodies are kept."
        yield Hidden(
            sealed_id=row.pk,
            number=number,
            name=row.name,
            path=path,
            shown=shown,
            reason=reason,
        )


def revealed(workspace_id: int, claim_id: UUID, sealed_id: int, number: int) -> tuple[Hidden, str]:
    """One hidden value of a claim. The caller keeps in the audit log that somebody looked.

    Raises `Unrevealable` with the reason.
    """
    row = SealedText.objects.filter(
        pk=sealed_id, workspace_id=workspace_id, claim_id=claim_id
    ).first()
    listed = [] if row is None else list(_listed(row))
    if row is None or not 0 <= number < len(listed):
        raise Unrevealable("This call has no such hidden value.")
    one = listed[number]
    if one.reason:
        raise Unrevealable(one.reason)
    found = _open(row)
    if found is None:
        raise Unrevealable("The key that it was sealed with is not set in this installation.")
    return one, found[number].value


def _rows_of(
    workspace_id: int, claim_id: UUID, *, name: str | None = None, digest: bytes | None = None
) -> Iterator[SealedText]:
    rows = SealedText.objects.filter(workspace_id=workspace_id, claim_id=claim_id).order_by("pk")
    if name is not None:
        rows = rows.filter(name=name, text_digest=digest)
    yield from rows


def _open(row: SealedText) -> list[Found] | None:
    if row.body is None:
        return None
    place = _place(row.workspace_id, row.name, bytes(row.text_digest))
    try:
        values = json.loads(sealing.opened(bytes(row.body), place=place))
    except sealing.CannotOpen:
        return None
    return [Found(**(one | {"mode": Mode(one["mode"])})) for one in values]


def for_agent(workspace_id: int, answer: ClaimAnswer) -> ClaimAnswer:
    """An answer with its result as it was reported: what was hidden from those who look at the
    record was never hidden from the agent whose result it is."""
    of = answer.claim_id or answer.blocker
    if answer.result is None or of is None or "...." not in answer.result:
        return answer
    result = exact(workspace_id, of, SealedText.Name.RESULT, answer.result)
    if result == answer.result:
        return answer
    told = answer.model_copy(update={"result": result, "for_model": None})
    return told.model_copy(update={"for_model": for_model(told)})
