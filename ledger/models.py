"""The record. Only `ledger.append` and `ledger.claiming` write it; `ledger.queries` reads it.

Claims and events name their parents without a database foreign key: a foreign key to a tool that
every claim shares would make all claims queue for one row's lock. `verify_ledger` checks them.
"""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Func, Q

from effects.core.vocabulary import ClaimState, EffectClass, EventKind
from effects.fields import WordField
from effects.models import Tool, Workspace
from ledger.models_agents import AgentRole
from ledger.models_decisions import Case, Decision, HeldRequest
from ledger.models_ingest import Call, ForeignName, IngestItem, Stream
from ledger.models_sealed import SealedText
from ledger.retention.models import RetentionFigure, RetentionPass, RetentionRule, RetentionRun

__all__ = [
    "AgentRole",
    "ApiToken",
    "Attempt",
    "Call",
    "Case",
    "Claim",
    "Decision",
    "Due",
    "Event",
    "ForeignName",
    "HeldRequest",
    "IngestItem",
    "Payload",
    "RetentionFigure",
    "RetentionPass",
    "RetentionRule",
    "RetentionRun",
    "SealedText",
    "Stream",
    "Watermark",
]


class Claim(models.Model):
    """One logical operation with one intended effect; made before the tool runs.

    `state` is the fold of the claim's events; `version` is the number of the newest event.
    `lease_until`, `window_until`, `grant_until` (of a release or a conditional absence) and
    `pending_at` (of a held decision) are instants of the database's clock.
    """

    id = models.UUIDField(primary_key=True, db_default=Func(function="uuidv7"))
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    tool = models.ForeignKey(Tool, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    effect_class = WordField(enum_name="effects_effect_class", words=EffectClass)
    state = WordField(
        enum_name="ledger_claim_state", words=ClaimState, db_default=ClaimState.IN_FLIGHT
    )
    reason = models.CharField(max_length=40, null=True)
    version = models.IntegerField(db_default=1)
    fence = models.IntegerField(db_default=1)
    generation = models.SmallIntegerField(db_default=1)
    budget = models.IntegerField()
    fresh_key = models.BooleanField(db_default=False)
    open_truth = models.BooleanField(db_default=True)

    granted_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)  # when the last decision took effect
    lease_until = models.DateTimeField()
    window_until = models.DateTimeField(null=True)
    grant_until = models.DateTimeField(null=True)
    pending_at = models.DateTimeField(null=True)
    pending_decision_id = models.BigIntegerField(null=True)

    key = models.CharField(max_length=300)  # without the generation
    # The key that a ledger kept elsewhere sent: generation 1 means this one then.
    sent_key = models.CharField(max_length=255, null=True)
    conversation = models.CharField(max_length=255, null=True)
    turn_index = models.IntegerField(null=True)
    position = models.SmallIntegerField()
    ordinal = models.SmallIntegerField()
    response_id = models.CharField(max_length=255, null=True)
    call_id = models.CharField(max_length=255, null=True)
    nonce = models.BinaryField(null=True)
    flags = ArrayField(models.TextField(), db_default=[])

    scope = models.BinaryField(null=True)
    turn = models.BinaryField(null=True)
    local = models.BinaryField(null=True)
    call = models.BinaryField(null=True)
    caller = models.BinaryField(null=True)
    repeat = models.BinaryField(null=True)
    business = models.BinaryField(null=True)
    arguments_digest = models.BinaryField()

    # Small texts stay in the row; larger ones are a Payload named "arguments" or "result".
    arguments = models.TextField(null=True)
    object = models.CharField(max_length=255, null=True)
    result = models.TextField(null=True)
    result_stored = models.BooleanField(null=True)

    class Meta:
        # No index names a column that changes: every settle stays a heap-only update.
        indexes = [
            # An agent may hold nothing but the key that it sent: the status question by key.
            models.Index(name="claim_key", fields=["key"]),
            models.Index(name="claim_repeat", fields=["repeat"], condition=Q(repeat__isnull=False)),
            models.Index(
                name="claim_business", fields=["business"], condition=Q(business__isnull=False)
            ),
            # Calls that were only seen from outside name a conversation, and no turn of it.
            models.Index(
                name="claim_turnless",
                fields=["workspace", "conversation"],
                condition=Q(turn_index__isnull=True, conversation__isnull=False),
            ),
            # The newest turns of a workspace; ids are in the order of time.
            models.Index(
                name="claim_newest",
                fields=["workspace", "id"],
                condition=Q(scope__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(name="claim_turn", fields=["scope", "turn"]),
            models.UniqueConstraint(
                name="claim_call", fields=["call"], condition=Q(call__isnull=False)
            ),
            models.UniqueConstraint(
                name="claim_caller", fields=["caller"], condition=Q(caller__isnull=False)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.id} {self.state}"

    def key_sent(self, generation: int) -> str:
        """The key under which the provider knows an attempt of this generation: ours, or the one
        that a ledger kept elsewhere has sent."""
        return (generation == 1 and self.sent_key) or f"{self.key}-{generation}"


class Event(models.Model):
    """One thing that was observed or done. Append-only: a trigger refuses anything else.

    `fence` is the attempt that it speaks of, or the newest attempt that it covers. `counts` is set
    on a sighting that may settle the claim by rule; `conditional` on an absence that holds only
    while the provider still honours the key. `data` holds what is shown but never folded.
    """

    pk = models.CompositePrimaryKey("claim_id", "seq")
    claim = models.ForeignKey(
        Claim,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="events",
    )
    seq = models.IntegerField()
    at = models.DateTimeField()
    kind = WordField(enum_name="ledger_event_kind", words=EventKind)
    word = WordField(enum_name="ledger_event_word", null=True)  # type: ignore[misc] # see WordField
    fence = models.IntegerField()
    generation = models.SmallIntegerField()
    object = models.CharField(max_length=255, null=True)
    objects_seen = ArrayField(models.TextField(), null=True)
    replayed = models.BooleanField(null=True)
    marker_sent = models.BooleanField(null=True)
    counts = models.BooleanField(null=True)
    conditional = models.BooleanField(null=True)
    decision_id = models.BigIntegerField(null=True)
    data = models.JSONField(null=True)

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} #{self.seq} {self.kind} {self.word or ''}"


class Payload(models.Model):
    """A body that may be large and may be emptied: arguments, a result, a raw provider answer.

    `seq` is the event that brought it (0: the claim itself). Emptying keeps digest and size.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    claim = models.ForeignKey(
        Claim,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="payloads",
    )
    seq = models.IntegerField()
    name = models.CharField(max_length=40)
    body = models.BinaryField(null=True)
    digest = models.BinaryField()
    size_bytes = models.IntegerField()
    emptied_at = models.DateTimeField(null=True)
    emptied_reason = models.CharField(max_length=200, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="payload_once", fields=["claim", "seq", "name"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.name} of {self.claim_id} #{self.seq}"


class Due(models.Model):
    """The work lists: what the clock, a look-up or a person has to see to.

    Written on the rare path only, in the transaction that changes the claim, so that no list of
    undecided calls reads every claim that ever was.
    """

    class Why(models.TextChoices):
        CLOCK = "clock"  # a lease, a held decision, a release: `sweep` looks at the claim
        LOOKUP = "lookup"  # an attempt's truth is open: reconcile asks the provider
        PERSON = "person"  # nobody can account for it, or it was stopped: the queue lists it
        SETTLED = "settled"  # it was listed, and is settled since: "resolved today"

    pk = models.CompositePrimaryKey("claim_id", "why")
    claim = models.ForeignKey(
        Claim, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="due"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    why = models.CharField(max_length=10)
    at = models.DateTimeField(null=True)  # null: nothing happens by itself
    since = models.DateTimeField()
    tries = models.IntegerField(db_default=0)

    class Meta:
        indexes = [
            models.Index(name="due_at", fields=["why", "at"]),
            models.Index(name="due_list", fields=["workspace", "why"]),
            models.Index(name="due_newest", fields=["workspace", "why", "claim"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.why} of {self.claim_id} at {self.at}"


class Watermark(models.Model):
    """First-attempt leases are swept in the order of their claims' ids, from here on."""

    name = models.CharField(primary_key=True, max_length=40)
    claim_id = models.UUIDField()

    @override
    def __str__(self) -> str:
        return f"{self.name} {self.claim_id}"


class ApiToken(models.Model):
    """An agent's key to one workspace: shown once, kept as a hash."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    hash = models.BinaryField(unique=True)
    scopes = ArrayField(models.TextField())
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    @override
    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


class Attempt(models.Model):
    """A view: one execution of a claim, from its `granted` and its reports."""

    pk = models.CompositePrimaryKey("claim_id", "fence")
    claim = models.ForeignKey(Claim, on_delete=models.DO_NOTHING, related_name="attempts")
    fence = models.IntegerField()
    generation = models.SmallIntegerField()
    granted_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = WordField(enum_name="ledger_event_word", null=True)  # type: ignore[misc] # see WordField
    object = models.CharField(max_length=255, null=True)
    replayed = models.BooleanField(null=True)
    marker_sent = models.BooleanField(null=True)
    granted_data = models.JSONField(null=True)
    data = models.JSONField(null=True)

    class Meta:
        managed = False
        db_table = "ledger_attempt"

    @override
    def __str__(self) -> str:
        return f"attempt {self.fence} of {self.claim_id}"
