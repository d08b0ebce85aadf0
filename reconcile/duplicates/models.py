"""What is kept about duplicates: groups of calls, what people said of them, imported evidence."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.models import Workspace
from effects.money import Money

REASON_CHARACTERS_MAX = 500


class DuplicateGroup(models.Model):
    """Calls that may be one thing done more than once.

    `identity` is what they have in common, as a digest under `rule`; `claim_ids` are the calls in
    the order of time. `stopped` counts the requests that were not granted, `possible` the effects
    that happened or may have. `amount` is one call's, in whole units. `layers` are the answers for
    its pairs, `certain` is whether every one of them rests on fingerprints. A read model, apart
    from `state`, which follows the acts.
    """

    class Rule(models.TextChoices):
        SAME_CALL = "same_call", "Same key twice"
        SAME_THING = "same_thing", "Same business id, new key"
        SAME_AMOUNT = "same_amount", "Same customer and amount"

    class State(models.TextChoices):
        NEW = "new", "New"
        CONFIRMED = "confirmed", "Confirmed"
        NOT_A_DUPLICATE = "not_a_duplicate", "Not a duplicate"
        REFUND_REQUESTED = "refund_requested", "Refund requested"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    rule = models.CharField(max_length=11, choices=Rule)
    identity = models.BinaryField()
    tool = models.CharField(max_length=255)
    claim_ids = ArrayField(models.UUIDField())
    objects_seen = ArrayField(models.TextField(), default=list)
    operations = models.PositiveIntegerField(default=1)
    app_attempts = models.PositiveIntegerField(default=0)
    provider_requests = models.PositiveIntegerField(default=0)
    stopped = models.PositiveIntegerField(default=0)
    possible = models.PositiveIntegerField(default=0)
    amount = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    places = models.PositiveSmallIntegerField(default=2)
    customer = models.CharField(max_length=255, blank=True, default="")
    layers = ArrayField(models.CharField(max_length=20), default=list)
    certain = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State, default=State.NEW)
    version = models.PositiveIntegerField(default=1)
    found_at = models.DateTimeField()
    last_at = models.DateTimeField()
    diagnosed_at = models.DateTimeField()
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="duplicate_group_once", fields=["workspace", "rule", "identity"]
            ),
            models.CheckConstraint(
                name="duplicate_group_amount", condition=Q(amount=None) | ~Q(currency="")
            ),
        ]
        indexes = [
            models.Index(name="duplicate_group_list", fields=["workspace", "state", "-id"]),
            models.Index(name="duplicate_group_found", fields=["workspace", "found_at"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.get_rule_display()}: {len(self.claim_ids)} calls of {self.tool}"

    @property
    def at_stake(self) -> Money | None:
        """The amount of every effect beyond the first, as far as such effects are possible."""
        if self.amount is None or self.possible < 2:
            return None
        whole = (self.amount * (self.possible - 1)).normalize()
        return Money(amount=whole, currency=self.currency, places=self.places)


class DuplicateAct(models.Model):
    """What a person said about a group. Never changed, never deleted: a trigger refuses it.

    `version` is the group's that its author had before them, `shown` the digest of the evidence.
    """

    class Act(models.TextChoices):
        CONFIRM = "confirm", "Confirmed as a duplicate"
        NOT_A_DUPLICATE = "not_a_duplicate", "Not a duplicate"
        REFUND_REQUESTED = "refund_requested", "Refund requested"
        REOPEN = "reopen", "Looked at again"
        OWN = "own", "Taken over"

    group = models.ForeignKey(DuplicateGroup, on_delete=models.PROTECT, related_name="acts")
    act = models.CharField(max_length=16, choices=Act)
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=REASON_CHARACTERS_MAX)
    link = models.URLField(max_length=500, blank=True, default="")
    version = models.PositiveIntegerField()
    shown = models.BinaryField()

    class Meta:
        indexes = [models.Index(name="duplicate_act_at", fields=["at"])]

    @override
    def __str__(self) -> str:
        return f"{self.act} by {self.by_id}"


class RetryConstants(models.Model):
    """One version of the tenant's own figures about who repeats when. Never changed afterwards."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    version = models.PositiveIntegerField()
    figures = models.JSONField()
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.CharField(max_length=REASON_CHARACTERS_MAX)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="retry_constants_version", fields=["workspace", "version"])
        ]

    @override
    def __str__(self) -> str:
        return f"version {self.version}"


class ImportedEvidence(models.Model):
    """One line of somebody else's record: a provider's request, a gateway's, a checkpoint, a
    delivery. `name` is the source's own for it; the same line comes in once. `claim_id` is null
    where it names no call of ours. `facts` are in our own words: see `duplicates.evidence`.
    """

    class Source(models.TextChoices):
        PROVIDER = "provider", "Provider's request log"
        STRIPE = "stripe", "Stripe's events"
        GATEWAY = "gateway", "Gateway's log"
        CHECKPOINTS = "checkpoints", "LangGraph's checkpoints"
        DELIVERIES = "deliveries", "Queue's deliveries"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=11, choices=Source)
    name = models.CharField(max_length=300)
    at = models.DateTimeField()
    claim_id = models.UUIDField(null=True)
    conversation = models.CharField(max_length=255, blank=True, default="")
    facts = models.JSONField()
    imported_at = models.DateTimeField()
    run = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="imported_evidence_once", fields=["workspace", "source", "name"]
            )
        ]
        indexes = [
            models.Index(
                name="imported_evidence_claim",
                fields=["claim_id"],
                condition=Q(claim_id__isnull=False),
            ),
            models.Index(
                name="imported_evidence_talk",
                fields=["workspace", "conversation"],
                condition=~Q(conversation=""),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.source} {self.name}"


class FindingMark(models.Model):
    """Up to where a workspace's record was searched for duplicates."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, primary_key=True, related_name="+"
    )
    claim_id = models.UUIDField()
    asked_id = models.BigIntegerField(default=0)

    @override
    def __str__(self) -> str:
        return f"{self.workspace_id} up to {self.claim_id}"
