"""What ledgers kept elsewhere send: every item as it came, and what the items speak of.

Only `ledger.ingest` and the SQL functions that it calls write here.
"""

from __future__ import annotations

from typing import override

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.core.vocabulary import ItemState, Terminal
from effects.models import Workspace

STATES = [str(state) for state in ItemState]
TERMINALS = [str(terminal) for terminal in Terminal]


class IngestItem(models.Model):
    """One item as it was received. The first readable content under a source and id holds that id;
    other content under it is a row of its own that names the first in `conflicts_with`.

    `digest` is of the content (type, time, data), not of its bytes: the same item may come as JSON
    and as a CloudEvent. `raw` holds the bytes; retention may empty it. `waits_for` is the reference
    of the parent that a parked item waits for. `said_at` is the sender's own time: evidence.
    `exact` is set where `raw` was redacted: digests of the exact values, by which it is applied.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    token_id = models.BigIntegerField(null=True)
    door = models.CharField(max_length=10)  # events | streams | traces
    source = models.CharField(max_length=255)  # empty: it could not be read
    event_id = models.CharField(max_length=255)
    type = models.CharField(max_length=100, null=True)
    digest = models.BinaryField()
    holds_id = models.BooleanField()
    conflicts_with = models.BigIntegerField(null=True)
    state = models.CharField(max_length=12)
    reason = models.CharField(max_length=60, null=True)  # a stable word
    says = models.TextField(null=True)  # a sentence for people: what is wrong, and where
    mended = ArrayField(models.TextField(), db_default=[])
    raw = models.BinaryField(null=True)
    raw_bytes = models.IntegerField()
    emptied_at = models.DateTimeField(null=True)
    exact = models.JSONField(null=True)
    said_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    times_seen = models.IntegerField(db_default=1)
    tries = models.IntegerField(db_default=0)
    waits_for = models.BinaryField(null=True)
    waits_words = models.CharField(max_length=600, null=True)
    applied_at = models.DateTimeField(null=True)
    claim = models.ForeignKey(
        "ledger.Claim",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="items",
    )
    stream = models.ForeignKey(
        "ledger.Stream",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="items",
    )

    class Meta:
        indexes = [
            models.Index(name="item_list", fields=["workspace", "state", "id"]),
            models.Index(
                name="item_retry", fields=["id"], condition=Q(state__in=["received", "failed"])
            ),
            models.Index(
                name="item_waits", fields=["waits_for"], condition=Q(waits_for__isnull=False)
            ),
            # What told of a response, for the page of its turn.
            models.Index(
                name="item_stream", fields=["stream", "id"], condition=Q(stream__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                name="item_id",
                fields=["workspace", "source", "event_id"],
                condition=Q(holds_id=True),
            ),
            models.UniqueConstraint(
                name="item_content", fields=["workspace", "source", "event_id", "digest"]
            ),
            models.CheckConstraint(name="item_state", condition=Q(state__in=STATES)),
            # Both contents of a conflict are kept, and the second says so.
            models.CheckConstraint(
                name="item_conflict",
                condition=Q(state=ItemState.CONFLICT, conflicts_with__isnull=False, holds_id=False)
                | (~Q(state=ItemState.CONFLICT) & Q(conflicts_with__isnull=True)),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.source} {self.event_id} {self.state}"


class ForeignName(models.Model):
    """What a name of a ledger kept elsewhere stands for here. `ref` is the digest of workspace,
    source, kind (claim, attempt, stream) and names. A claim of a read has no claim here."""

    ref = models.BinaryField(primary_key=True)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=10)
    claim = models.ForeignKey(
        "ledger.Claim",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    fence = models.IntegerField(null=True)
    stream = models.ForeignKey(
        "ledger.Stream",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"{self.kind} {bytes(self.ref).hex()}"


class Stream(models.Model):
    """One response of a model as somebody received it.

    `cursor` counts the stream's events from 1: everything up to it is applied. `beyond` are applied
    ones after a gap. `terminal` is the strongest end that was reported; none: nobody saw an end.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    source = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    scope = models.BinaryField(null=True)
    conversation = models.CharField(max_length=255)
    turn_index = models.IntegerField()
    response_id = models.CharField(max_length=255, null=True)
    model = models.CharField(max_length=255, null=True)
    opened_at = models.DateTimeField(null=True)  # by its source's clock
    received_at = models.DateTimeField()
    terminal = models.CharField(max_length=12, null=True)
    closed_at = models.DateTimeField(null=True)  # by its source's clock
    error = models.TextField(null=True)
    cursor = models.IntegerField(db_default=0)
    beyond = ArrayField(models.IntegerField(), db_default=[])
    last_sequence = models.IntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(name="stream_scope", fields=["scope"]),
            models.Index(name="stream_newest", fields=["workspace", "received_at"]),
            models.Index(
                name="stream_broken",
                fields=["workspace", "received_at"],
                condition=Q(terminal__in=["cut", "error_event", "cancelled"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(name="stream_name", fields=["workspace", "source", "name"]),
            models.CheckConstraint(
                name="stream_terminal", condition=Q(terminal=None) | Q(terminal__in=TERMINALS)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.source} {self.name} {self.terminal or 'open'}"


class Call(models.Model):
    """One tool call that a stream announced. `complete`: its arguments ended. The arguments
    themselves stay in their item."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    stream = models.ForeignKey(
        Stream, on_delete=models.DO_NOTHING, db_constraint=False, related_name="calls"
    )
    position = models.SmallIntegerField()
    ordinal = models.SmallIntegerField(null=True)
    tool = models.CharField(max_length=255, null=True)
    call_id = models.CharField(max_length=255, null=True)
    complete = models.BooleanField()
    arguments_bytes = models.IntegerField()
    arguments_digest = models.BinaryField()
    said_at = models.DateTimeField(null=True)
    at = models.DateTimeField()
    item = models.ForeignKey(
        IngestItem, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )

    class Meta:
        constraints = [models.UniqueConstraint(name="call_place", fields=["stream", "position"])]

    @override
    def __str__(self) -> str:
        return f"call {self.position} of stream {self.stream_id}"
