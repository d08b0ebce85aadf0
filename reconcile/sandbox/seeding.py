"""Very many believable calls, written into the record a set at a time.

This is the one place that writes the record without its own functions, so that a million calls take
minutes and not hours: for measuring, never for a workspace in which something happens. What is
made satisfies `verify_ledger`. What is not made: decisions (each is chained to the one before),
released and closed calls, calls in flight, and the names by which a ledger kept elsewhere would go
on telling of the seeded streams.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from effects.models import Tool, Workspace
from reconcile import cards
from reconcile.sandbox import seeding_sql
from reconcile.sandbox.tools import DEMO_BOUNDS, ToolName, tool_fields

CLAIMS_PER_BATCH: Final = 50_000
CLAIMS_MAX: Final = 20_000_000
LONG_SHARE: Final = 0.02
"""How much of all calls stand in a few very long conversations."""
LONG_CONVERSATIONS: Final = 4
STREAMS_SOURCE: Final = "urn:counterfoil:seed"
SEEDED_TABLES: Final = (
    *("ledger_claim", "ledger_event", "ledger_due", "ledger_payload", "ledger_stream"),
    *("ledger_call", "ledger_ingestitem", "reconcile_card", "effects_tool"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """How much is made. `undecided` of the `claims` are unknown or in conflict. One call more has
    `attempts` attempts, and one has arguments of `large_bytes`; 0 leaves them out."""

    claims: int
    undecided: int = 3000
    attempts: int = 50_000
    large_bytes: int = 5 * 1024 * 1024
    days: int = 90
    further_tools: int = 35


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """What was made. `tag` begins the names of its conversations; None where one was left out."""

    tag: str
    often: UUID | None
    large: UUID | None
    seconds: float

    @property
    def long_conversation(self) -> str:
        return f"{self.tag}-long-1"

    def conversation(self, number: int) -> str:
        """An ordinary one: eight turns of two calls. Every tenth one has its streams."""
        return f"{self.tag}-{number}"


def check(workspace: Workspace, seed: Seed) -> None:
    """Raises ValueError where it must not, or cannot, be made."""
    if workspace.mode != Workspace.Mode.TEST:
        raise ValueError(
            f"{workspace.name} is a live workspace. Made-up calls belong into one whose mode is "
            "test."
        )
    if not 1 <= seed.claims <= CLAIMS_MAX:
        raise ValueError(f"{seed.claims} calls: it takes 1 to CLAIMS_MAX, {CLAIMS_MAX}.")
    if not 0 <= seed.undecided <= seed.claims:
        raise ValueError(f"{seed.undecided} of {seed.claims} calls cannot be undecided.")


def make(workspace: Workspace, seed: Seed, *, say: Callable[[str], object]) -> Seeded:
    """Makes the calls; `say` is told how far it is. A run that is stopped leaves whole batches.

    Raises ValueError as `check` does.
    """
    check(workspace, seed)
    began = time.monotonic()
    tag = f"seed-{secrets.token_hex(3)}"
    tools = _tools(workspace, seed.further_tools)
    parameters = _parameters(workspace, seed, tag, tools)
    _execute(seeding_sql.FUNCTIONS)
    for first in range(1, seed.claims + 1, CLAIMS_PER_BATCH):
        last = min(first + CLAIMS_PER_BATCH - 1, seed.claims)
        with transaction.atomic():
            _execute(seeding_sql.CALLS, parameters | {"first": first, "last": last})
            _execute(seeding_sql.STREAMS, parameters | {"first": first, "last": last})
        say(f"{last:,} of {seed.claims:,} calls, {time.monotonic() - began:.0f} s")
    often = large = None
    if seed.attempts:
        often = _one(seeding_sql.OFTEN, parameters)
        say(f"a call with {seed.attempts:,} attempts: {often}")
    if seed.large_bytes:
        large = _one(seeding_sql.LARGE, parameters)
        say(f"a call with arguments of {seed.large_bytes:,} bytes: {large}")
    _settle(workspace, say)
    return Seeded(tag=tag, often=often, large=large, seconds=time.monotonic() - began)


def _parameters(workspace: Workspace, seed: Seed, tag: str, tools: list[Tool]) -> dict[str, Any]:
    return {
        "workspace_id": workspace.pk,
        "tag": tag,
        "source": STREAMS_SOURCE,
        "total": seed.claims,
        "days": seed.days,
        "undecided_every": seed.claims // seed.undecided if seed.undecided else 0,
        "long_until": int(seed.claims * LONG_SHARE),
        "long_conversations": LONG_CONVERSATIONS,
        "tool_ids": [tool.pk for tool in tools],
        "tool_id": tools[0].pk,
        "attempts": seed.attempts,
        "bytes": seed.large_bytes,
        "arguments": '{"amount":14901,"currency":"eur","customer":"cus_Often","order":"1"}',
    }


def _tools(workspace: Workspace, further: int) -> list[Tool]:
    """The sandbox's tools and as many further ones, those that are missing entered."""
    wanted = {str(name): tool_fields(name, DEMO_BOUNDS) for name in ToolName}
    usual = tool_fields(ToolName.CHARGE_CARD, DEMO_BOUNDS) | {"lookup_kind": "", "lookup": {}}
    wanted |= {f"charge_region_{number:02}": usual for number in range(1, further + 1)}
    known = {tool.name: tool for tool in Tool.objects.filter(workspace=workspace)}
    for name, fields in wanted.items():
        if name not in known:
            known[name] = Tool.objects.create(workspace=workspace, name=name, **fields)
    return [known[name] for name in wanted]


def _settle(workspace: Workspace, say: Callable[[str], object]) -> None:
    """What the product's own worker does later, done now: leases filed, cards read, statistics."""
    # What is in flight elsewhere is filed by the ledger's own function, which moves the watermark.
    _execute("SELECT ledger_file_leases_v1(0)")
    read = 0
    while found := cards.fill(workspace_id=workspace.pk):
        read += found
    say(f"{read:,} calls wait for a person")
    if connection.in_atomic_block:
        _execute(f"ANALYZE {', '.join(SEEDED_TABLES)}")
    else:
        # Without the map of visible rows the planner would believe in reading what it need not.
        _execute(f"VACUUM (ANALYZE) {', '.join(SEEDED_TABLES)}")


def _one(statement: str, parameters: dict[str, Any]) -> UUID:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        (claim_id,) = {row[0] for row in cursor.fetchall()}
    assert isinstance(claim_id, UUID)
    return claim_id


def _execute(statement: str, parameters: dict[str, Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
