"""What people decided, and the requests that wait for them or met a claim without being granted."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from effects.core.vocabulary import AnswerCode, Verdict
from effects.fields import WordField
from effects.models import Workspace


class Decision(models.Model):
    """A verdict of a person or a named rule. Append-only, chained by hash within its workspace.

    What became of it (held, in force, withdrawn, cancelled) is read from the claim's events.
    A withdrawal is a decision of its own that names the one it takes back in `withdraws`.

    Where two people decided, `decided_by` asked at `proposed_at` and `approved_by` said yes at
    `decided_at`, with the role that they had then. `alone`: an act that needs two people, decided
    by the only person there was. `typed` is the amount that its author typed to confirm it.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    claim = models.ForeignKey(
        "ledger.Claim", on_delete=models.DO_NOTHING, db_constraint=False, related_name="decisions"
    )
    verdict = WordField(enum_name="ledger_verdict", words=Verdict)
    withdraws = models.BigIntegerField(null=True)
    held_request_id = models.BigIntegerField(null=True)
    claim_version = models.IntegerField()
    fence = models.IntegerField()
    object = models.CharField(max_length=255, null=True)
    objects_named = ArrayField(models.TextField(), null=True)
    reason = models.TextField()
    evidence = ArrayField(models.IntegerField(), db_default=[])  # event numbers relied on
    screen_hash = models.BinaryField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
    )
    rule = models.CharField(max_length=100, null=True)
    decided_at = models.DateTimeField()
    effective_at = models.DateTimeField()
    typed = models.CharField(max_length=100, null=True)
    alone = models.BooleanField(db_default=False)
    proposed_at = models.DateTimeField(null=True)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    approver_role = WordField(enum_name="effects_role", null=True)  # type: ignore[misc] # see WordField
    approval_reason = models.TextField(null=True)
    chain_number = models.BigIntegerField()
    previous_hash = models.BinaryField()
    hash = models.BinaryField()

    class Meta:
        indexes = [models.Index(name="decision_newest", fields=["workspace", "-decided_at", "-id"])]
        constraints = [
            models.UniqueConstraint(name="decision_chain", fields=["workspace", "chain_number"]),
            models.CheckConstraint(
                name="decision_author", condition=Q(decided_by=None) ^ Q(rule=None)
            ),
            models.CheckConstraint(
                name="decision_second_person",
                condition=Q(approved_by=None, approver_role=None, proposed_at=None)
                | Q(
                    approved_by__isnull=False,
                    approver_role__isnull=False,
                    proposed_at__isnull=False,
                    decided_by__isnull=False,
                    alone=False,
                )
                & ~Q(approved_by=F("decided_by")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"dec_{self.pk} {self.verdict}"


class HeldRequest(models.Model):
    """A claim request that another claim holds back, remembered until it is answered."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    blocker = models.ForeignKey(
        "ledger.Claim",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="held_requests",
    )
    code = WordField(enum_name="ledger_answer_code", words=AnswerCode)
    asker = models.BinaryField()  # the operation that asked: its turn or caller identity
    repeat = models.BinaryField(null=True)
    business = models.BinaryField(null=True)
    conversation = models.CharField(max_length=255, null=True)
    turn_index = models.IntegerField(null=True)
    arguments = models.TextField(null=True)
    at = models.DateTimeField()
    allowed_by = models.BigIntegerField(null=True)  # the decision that let it run
    answered_at = models.DateTimeField(null=True)  # it no longer stands in anybody's way
    used_at = models.DateTimeField(null=True)  # the allowed request was granted

    class Meta:
        indexes = [models.Index(name="held_asker", fields=["asker"])]
        constraints = [models.UniqueConstraint(name="held_once", fields=["asker", "blocker"])]

    @override
    def __str__(self) -> str:
        return f"held by {self.blocker_id}"


class Case(models.Model):
    """A request that could not be answered by rule and that somebody should look at."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    claim = models.ForeignKey(
        "ledger.Claim", on_delete=models.DO_NOTHING, db_constraint=False, related_name="cases"
    )
    code = WordField(enum_name="ledger_answer_code", words=AnswerCode)
    arguments_digest = models.BinaryField()
    arguments = models.TextField(null=True)
    data = models.JSONField(default=dict)
    seen = models.IntegerField(db_default=1)
    at = models.DateTimeField()
    # A person looked at it and said what it was; asked again since (`seen` grew), it is open again.
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    closed_note = models.TextField(null=True)
    closed_seen = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="case_once", fields=["claim", "code", "arguments_digest"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.code} at {self.claim_id}"
