"""What people say about a group of duplicates: each act is kept, and none sends anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from django.db import transaction

from ledger import queries
from reconcile.duplicates.models import REASON_CHARACTERS_MAX
from reconcile.models import DuplicateAct, DuplicateGroup

LINK_CHARACTERS_MAX: Final = 500
ACTS_MAX: Final = 200
"""Most acts of one group."""

_Act, _State = DuplicateAct.Act, DuplicateGroup.State
BECOMES: Final[Mapping[DuplicateAct.Act, DuplicateGroup.State | None]] = {
    _Act.CONFIRM: _State.CONFIRMED,
    _Act.NOT_A_DUPLICATE: _State.NOT_A_DUPLICATE,
    _Act.REFUND_REQUESTED: _State.REFUND_REQUESTED,
    _Act.REOPEN: _State.NEW,
    _Act.OWN: None,
}
OFFERED: Final[Mapping[DuplicateGroup.State, tuple[DuplicateAct.Act, ...]]] = {
    _State.NEW: (_Act.CONFIRM, _Act.NOT_A_DUPLICATE, _Act.REFUND_REQUESTED, _Act.OWN),
    _State.CONFIRMED: (_Act.REFUND_REQUESTED, _Act.NOT_A_DUPLICATE, _Act.OWN),
    _State.REFUND_REQUESTED: (_Act.REOPEN, _Act.OWN),
    _State.NOT_A_DUPLICATE: (_Act.REOPEN,),
}
"""What may be said about a group in each state: shown and enforced from here."""


class CannotSay(Exception):
    """Why nothing was kept, in a sentence for the person."""


def offered(group: DuplicateGroup) -> tuple[DuplicateAct.Act, ...]:
    return OFFERED[_State(group.state)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the person had before them: the group's version, and `shown_digest` of it in hex."""

    version: int
    shown: str

    @classmethod
    def of(cls, group: DuplicateGroup) -> Self:
        return cls(version=group.version, shown=shown_digest(group).hex())


def say(
    group: DuplicateGroup, act: str, *, user_id: int, reason: str, link: str = "", seen: Seen
) -> DuplicateGroup:
    """Keeps an act and moves the group. Raises `CannotSay`, also where the group or its evidence
    is not what the person saw."""
    reason, link = reason.replace("\x00", "").strip(), link.strip()
    if act not in BECOMES:
        raise CannotSay("Nothing was kept: choose what it is.")
    chosen = _Act(act)
    _check(chosen, reason, link)
    with transaction.atomic():
        kept = DuplicateGroup.objects.select_for_update().get(pk=group.pk)
        if seen != Seen.of(kept):
            raise CannotSay("Nothing was kept: the group changed meanwhile. Look at it again.")
        if chosen not in offered(kept):
            raise CannotSay(f"Nothing was kept: it is {kept.get_state_display().lower()} already.")
        if kept.acts.count() >= ACTS_MAX:
            raise CannotSay(f"Nothing was kept: a group has at most {ACTS_MAX} acts (ACTS_MAX).")
        DuplicateAct.objects.create(
            group=kept,
            act=chosen,
            at=queries.clock(),
            by_id=user_id,
            reason=reason,
            link=link if chosen is _Act.REFUND_REQUESTED else "",
            version=kept.version,
            shown=shown_digest(kept),
        )
        kept.version += 1
        kept.state = BECOMES[chosen] or kept.state
        if chosen is _Act.OWN:
            kept.owner_id = user_id
        kept.save(update_fields=["version", "state", "owner"])
    return kept


def _check(act: DuplicateAct.Act, reason: str, link: str) -> None:
    if not reason and act is not _Act.OWN:
        raise CannotSay("Nothing was kept: give a reason.")
    if len(reason) > REASON_CHARACTERS_MAX:
        raise CannotSay(f"A reason has at most {REASON_CHARACTERS_MAX} characters.")
    if act is _Act.REFUND_REQUESTED and not _is_link(link):
        says = (
            "Give the address (https://) where the refund was requested: nothing is refunded here."
        )
        raise CannotSay(says)


def _is_link(link: str) -> bool:
    if len(link) > LINK_CHARACTERS_MAX or not link.isprintable() or " " in link:
        return False
    try:
        parts = urlsplit(link)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)


def shown_digest(group: DuplicateGroup) -> bytes:
    """A digest of what a person sees of the group when they act."""
    shown = {
        "claims": list(map(str, group.claim_ids)),
        "objects": group.objects_seen,
        "numbers": [group.operations, group.app_attempts, group.provider_requests],
        "possible": group.possible,
        "layers": group.layers,
        "certain": group.certain,
    }
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).digest()
