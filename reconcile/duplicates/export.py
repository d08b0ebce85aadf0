"""The list of duplicates as a file: what its columns are."""

from __future__ import annotations

from typing import Final

from effects.exporting import Column, Kind
from reconcile.duplicates import listing
from reconcile.models import DuplicateGroup

type _Group = Column[DuplicateGroup]

COLUMNS: Final[tuple[_Group, ...]] = (
    Column(name="group", kind=Kind.NUMBER, read=lambda group: group.pk),
    Column(name="rule", read=lambda group: group.get_rule_display()),
    Column(name="tool"),
    Column(name="calls", read=lambda group: " ".join(map(str, group.claim_ids))),
    Column(name="provider_objects", read=lambda group: " ".join(group.objects_seen)),
    Column(
        name="amount_at_stake",
        kind=Kind.NUMBER,
        read=lambda group: None if group.at_stake is None else group.at_stake.amount,
    ),
    Column(name="currency"),
    Column(name="customer"),
    Column(name="layers", read=listing.layer_words),
    Column(name="confidence", read=listing.confidence),
    Column(name="operations", kind=Kind.NUMBER),
    Column(name="attempts", kind=Kind.NUMBER, read=lambda group: group.app_attempts),
    Column(name="requests", kind=Kind.NUMBER, read=lambda group: group.provider_requests),
    Column(name="stopped", kind=Kind.NUMBER),
    Column(name="found_at", kind=Kind.TIME),
    Column(name="state", read=lambda group: group.get_state_display()),
    Column(name="owner", read=lambda group: group.owner.get_username() if group.owner else ""),
)
