"""What only pages about calls need: texts made visible, words for answers and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import template
from django.contrib.auth.models import User
from django.template.context import Context

from effects.access import ROLE_WORDS
from effects.core.vocabulary import AnswerCode, Outcome, Role, SightingWord, Verdict
from effects.templatetags.desk import STATE_PARTS
from effects.times import MINUTE_SECONDS, duration_words
from reconcile import reading
from reconcile.actions import ActionName
from reconcile.judge_words import judgement_words
from reconcile.queries import rests_on

if TYPE_CHECKING:
    from ledger.models import Attempt, Event

register = template.Library()

SIGHTING_WORDS: Final = {
    SightingWord.FOUND: "Found",
    SightingWord.FOUND_MANY: "Found more than once",
    SightingWord.FOUND_DIFFERENT: "Found, differs",
    SightingWord.PENDING: "Pending",
    SightingWord.ABSENT: "Absent",
    SightingWord.LOOKUP_FAILED: "Look-up failed",
    SightingWord.MISCONFIGURED: "Look-up set up wrongly",
    SightingWord.RATE_LIMITED: "Asked to wait",
    SightingWord.UNMAPPED: "Answer not understood",
}
OTHER_REQUEST_WORDS: Final = {
    AnswerCode.HELD: "Held back: it asks for the same thing while this call is not settled",
    AnswerCode.ALREADY_DONE: "Told that this call has done it already",
    AnswerCode.REISSUED_DIFFERENTLY: "The turn was asked again and says something else here",
    AnswerCode.MISMATCH: "Refused: the same call, with other arguments",
    AnswerCode.IDENTITIES_DISAGREE: "Refused: it names this call and another one",
    AnswerCode.ATTEMPTS_EXHAUSTED: "Refused: no attempt is left, a person may release it",
}
DELAY_WORDS: Final = {
    "none": "Answers without delay.",
    "eventual": "May show an effect late.",
    "unknown": "Nobody says how late it may be.",
}
VERDICT_WORDS: Final = {
    **{str(name.verdict): name.label for name in ActionName if name.verdict is not None},
    str(Verdict.ALLOW): "A held request may run",
    str(Verdict.WITHDRAW): "Taken back",
}


@register.filter
def visible(text: object) -> str:
    """A text with bidirectional controls and other unseen characters written out."""
    return reading.visible(str(text))


@register.filter
def sighting_words(word: str) -> str:
    return SIGHTING_WORDS.get(SightingWord(word), word)


@register.filter
def judged_words(event: Event) -> str:
    """What was known once this sighting had come, by which rule, and what that rested on."""
    data = event.data or {}
    return judgement_words(str(data.get("meaning")), str(data.get("rule")), rests_on(event))


@register.filter
def other_request_words(code: str) -> str:
    """What a request that met a call was told, and why."""
    return OTHER_REQUEST_WORDS.get(AnswerCode(code), str(code))


@register.filter
def delay_words(delay_class: str) -> str:
    return DELAY_WORDS.get(delay_class, "")


@register.filter
def verdict_words(verdict: str) -> str:
    return VERDICT_WORDS.get(str(verdict), str(verdict))


@register.filter
def action_words(name: str) -> str:
    """An action as its button reads."""
    return ActionName(name).label if name in list(ActionName) else str(name)


@register.filter
def short_id(claim_id: UUID | str) -> str:
    """The end of a claim's id: its beginning is the time, which neighbours share."""
    return f"call_…{str(claim_id)[-8:]}"


@register.filter
def short_hash(digest: bytes) -> str:
    text = bytes(digest).hex()
    return f"{text[:4]}…{text[-4:]}"


@register.filter(name="hex")
def hex_words(digest: bytes) -> str:
    """A digest in full."""
    return bytes(digest).hex()


@register.filter
def took(attempt: Attempt) -> str:
    """How long an attempt lasted, from its grant to its end: "220 ms", "30.2 s", "12 m"."""
    if attempt.ended_at is None:
        return ""
    seconds = (attempt.ended_at - attempt.granted_at).total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < MINUTE_SECONDS else duration_words(seconds)


@register.simple_tag(takes_context=True)
def evidence_address(context: Context, number: int) -> str:
    """Where a piece of evidence stands: on this page, or on the page of older ones that has it."""
    here = {card.event.seq for card in context.get("cards") or ()}
    here |= {note["number"] for note in context.get("notes") or ()}
    if number in here:
        return f"#ev{number}"
    noted = number in {note.seq for note in context["call"].notes}
    return f"?{'notes' if noted else 'evidence'}_before={number + 1}#ev{number}"


@register.filter
def of(things: Mapping[Any, Any], key: Any) -> Any:
    """What belongs to a key, or None: `{{ takes|of:row.claim_id }}`."""
    return things.get(key)


@register.filter
def person(user: User | None) -> str:
    """A person's name; a decision without one was made by a rule."""
    if user is None:
        return ""
    return user.get_full_name() or user.get_username()


@register.filter
def role_words(role: str | None) -> str:
    """The role as people read it; empty for none."""
    return ROLE_WORDS[Role(role)] if role else ""


@register.filter
def bytes_words(size: int) -> str:
    """214 B, 1.9 kB, 3.2 MB: powers of ten, as they are read."""
    if size < 1000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"


@register.filter
def instant(text: Any) -> datetime | None:
    """An instant that travelled as ISO 8601 text in a sighting's data, or None."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


@register.filter
def words(word: str) -> str:
    """One of the product's words as people read it: `in_force` is "in force"."""
    return str(word).replace("_", " ")


OUTCOME_WORDS: Final = {
    Outcome.COMPLETED: "it happened",
    Outcome.NOT_SENT: "not sent",
    Outcome.REFUSED: "refused",
    Outcome.REFUSED_STORED: "refused, stored under the key",
    Outcome.UNKNOWN: "unknown: the answer was lost",
}


@register.filter
def outcome_words(outcome: str) -> str:
    return OUTCOME_WORDS[Outcome(outcome)]


@register.filter
def state_style(state: str) -> str:
    """The class that gives a part the colour of a claim's state."""
    return STATE_PARTS[state][2]
