"""What people ask of each other about a call, the rules for it, and what they put off."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from effects.core.vocabulary import Role
from effects.fields import WordField
from effects.models import Workspace


class SecondPersonRule(models.Model):
    """Which decisions need a second person. A rule is never changed: it is retired, with a reason.

    Empty words and null speak of everything; `amount_from` is in whole units of `currency`. While a
    workspace has no row here, the default rules are in force.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    effect_class = models.CharField(max_length=20, blank=True, default="")
    action = models.CharField(max_length=20, blank=True, default="")
    currency = models.CharField(max_length=3, blank=True, default="")
    amount_from = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    approver_role = WordField(enum_name="effects_role", words=Role)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500)
    retired_at = models.DateTimeField(null=True)
    retired_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_reason = models.CharField(max_length=500, blank=True, default="")

    @override
    def __str__(self) -> str:
        return f"rule {self.pk} of {self.workspace_id}"


class Proposal(models.Model):
    """A decision that one person asks another to approve, with exactly what the first relied on.

    It is bound to the claim's version, to the amount that was read then, to the evidence and to the
    screen. `figure` is the amount as it was shown, `typed` as its author typed it. An open one may
    be out of date or expired: that is seen from the claim and the clock, not stored.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        APPROVED = "approved"
        REJECTED = "rejected"
        WITHDRAWN = "withdrawn"
        REPLACED = "replaced"  # it was out of date or expired, and somebody asked anew

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField(db_index=True)
    action = models.CharField(max_length=20)
    held_request_id = models.BigIntegerField(null=True)
    claim_version = models.IntegerField()
    state = models.CharField(max_length=20)
    screen_hash = models.BinaryField()
    form = models.BinaryField()  # digest of the form's token: a form that is sent twice asks once
    amount = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    figure = models.CharField(max_length=100, blank=True, default="")
    typed = models.CharField(max_length=100, blank=True, default="")
    evidence = ArrayField(models.IntegerField(), default=list)
    objects_named = ArrayField(models.TextField(), default=list)
    provider_object = models.CharField(max_length=255, blank=True, default="")
    reason = models.TextField()
    why_second = models.CharField(max_length=300, blank=True, default="")  # empty: asked freely
    approver_roles = ArrayField(models.CharField(max_length=20))
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    proposed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    answered_at = models.DateTimeField(null=True)
    answer_reason = models.TextField(blank=True, default="")
    decision_id = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="proposal_open_once", fields=["claim_id"], condition=Q(status="open")
            ),
            models.UniqueConstraint(name="proposal_form_once", fields=["claim_id", "form"]),
            models.CheckConstraint(
                name="proposal_answered_by_another",
                condition=~Q(status__in=["approved", "rejected"])
                | Q(answered_by__isnull=False) & ~Q(answered_by=F("proposed_by")),
            ),
            models.CheckConstraint(
                name="proposal_approved_is_decided",
                condition=Q(status="approved", decision_id__isnull=False)
                | ~Q(status="approved") & Q(decision_id=None),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"proposal {self.pk}: {self.action} of {self.claim_id}"


class Snooze(models.Model):
    """A call that somebody put off until `until`; new evidence after `claim_version` brings it back
    at once."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField()
    claim_version = models.IntegerField()
    until = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True, default="")
    snoozed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # woken by a person, or replaced by a later one
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        indexes = [models.Index(name="snooze_claim", fields=["claim_id"])]
        constraints = [
            models.UniqueConstraint(
                name="snooze_once", fields=["claim_id"], condition=Q(ended_at=None)
            )
        ]

    @override
    def __str__(self) -> str:
        return f"snooze of {self.claim_id} until {self.until}"


class Take(models.Model):
    """A person's lease on a call: "I am on it, until then". It decides nothing and locks nothing.

    A row is open while `ended_at` is null, but counts only until `until`: whoever takes the call
    after that closes it. Nobody's lease is shortened without `reason`.
    """

    class End(models.TextChoices):
        GIVEN_BACK = "given_back"
        RAN_OUT = "ran_out"
        TAKEN_OVER = "taken_over"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField()
    taken_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    taken_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_how = models.CharField(max_length=12, choices=End, blank=True, default="")
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True, default="")  # why it was taken over

    class Meta:
        indexes = [
            models.Index(name="take_claim", fields=["claim_id"]),
            models.Index(
                name="take_open", fields=["workspace", "until"], condition=Q(ended_at=None)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                name="take_once", fields=["claim_id"], condition=Q(ended_at=None)
            ),
            models.CheckConstraint(
                name="take_over_has_reason",
                condition=~Q(ended_how="taken_over") | ~Q(reason=""),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} with {self.taken_by_id} until {self.until}"
