"""Who uses the product, and what the tools promise."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.core.vocabulary import EffectClass, Role
from effects.fields import WordField
from effects.models_audit import AuditEntry
from effects.models_people import DeskSession, MemberChange
from effects.models_registry import MeasureMark, ToolHour, ToolMeasured
from effects.redaction.models import RedactionRule, RedactionState, SecretSwitchedOff

__all__ = [
    "AuditEntry",
    "Connection",
    "ConnectionChange",
    "DeskSession",
    "LookupTrial",
    "MeasureMark",
    "MemberChange",
    "Membership",
    "RedactionRule",
    "RedactionState",
    "SecretSwitchedOff",
    "Tool",
    "ToolChange",
    "ToolHour",
    "ToolMeasured",
    "Workspace",
]


class Workspace(models.Model):
    """The wall between customers, and between live and test: every query names one.

    `trace_url` is the address of a trace in a viewer of the workspace's own, with the fields of
    `effects.trace_links`; empty where there is none.
    """

    class Mode(models.TextChoices):
        LIVE = "live"
        TEST = "test"

    name = models.CharField(max_length=100)
    slug = models.SlugField(unique=True)
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.TEST)
    trace_url = models.CharField(max_length=500, blank=True, default="", db_default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="workspace_mode", condition=Q(mode__in=["live", "test"]))
        ]

    @override
    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="memberships"
    )
    role = WordField(enum_name="effects_role", words=Role)
    last_seen_at = models.DateTimeField(null=True, blank=True)  # to the minute, not to the second

    class Meta:
        constraints = [
            models.UniqueConstraint(name="membership_once", fields=["workspace", "user"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user} is {self.role} in {self.workspace}"


class Connection(models.Model):
    """One account at one provider, asked read-only. `kind` says whose dialect it speaks.

    Its secret was sealed here at `secret_entered_at`, for the place "connection:<id>"; or
    `secret_name` names the environment variable of the workers that holds it, and `secret_seen_at`
    is when a worker last had that. Only the host of `base_url` is ever asked.
    """

    class Kind(models.TextChoices):
        STRIPE = "stripe"
        HTTP = "http"
        GRAPHQL = "graphql"
        SQL = "sql"
        PAYPAL = "paypal"
        GOCARDLESS = "gocardless"
        CHECKOUT = "checkout"
        SALESFORCE = "salesforce"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="connections")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=Kind)
    base_url = models.CharField(max_length=500)  # https://… or, for a database, postgresql://…
    account = models.CharField(max_length=100, blank=True, default="")
    secret_name = models.CharField(max_length=100, blank=True, default="")
    secret_seen_at = models.DateTimeField(null=True, blank=True)
    secret_sealed = models.BinaryField(null=True)
    secret_entered_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1, db_default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="connection_name", fields=["workspace", "name"]),
            models.CheckConstraint(
                name="connection_kind",
                condition=Q(
                    kind__in=[
                        *("stripe", "http", "graphql", "sql"),
                        *("paypal", "gocardless", "checkout", "salesforce"),
                    ]
                ),
            ),
            models.CheckConstraint(
                name="connection_one_secret",
                condition=Q(secret_sealed=None, secret_entered_at=None)
                | Q(secret_sealed__isnull=False, secret_entered_at__isnull=False, secret_name=""),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class ConnectionChange(models.Model):
    """One version of a connection as it was saved, by whom and why. Never changed afterwards."""

    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="changes")
    version = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True
    )
    reason = models.CharField(max_length=500, blank=True, default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="connection_change_version", fields=["connection", "version"]
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.connection} version {self.version}"


class Tool(models.Model):
    """What one tool may do, what its provider promises, and how it is asked afterwards.

    `contract` names one of `effects.contracts.CONTRACTS`. The figures here are those in force:
    where the admin gave none, the contract's own were written into the row when it was saved.
    `window_seconds` is how long the provider honours a key, counted from its first receipt; null
    says "not published" for a keyed write, and "no key" for an unkeyed one.
    `key_name` is the header or member in which the agents' code sends the key, empty where it is
    the contract's. `server_working_seconds_max` is the longest that the provider may still work on
    a request whose answer was lost; null means that nobody published it, and 900 s is assumed and
    shown as ours.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="tools")
    name = models.CharField(max_length=255)
    effect_class = WordField(
        enum_name="effects_effect_class", words=EffectClass, default=EffectClass.UNKEYED_WRITE
    )
    registered = models.BooleanField(default=True)  # false: seen in a claim, entered by nobody
    note = models.TextField(blank=True, default="", max_length=2000)
    owner = models.CharField(max_length=200, blank=True, default="")

    # The contract.
    contract = models.CharField(max_length=30, default="generic")
    key_name = models.CharField(max_length=100, blank=True, default="", db_default="")
    window_seconds = models.PositiveIntegerField(null=True, blank=True)
    margin_seconds = models.PositiveIntegerField(default=140)
    lease_seconds = models.PositiveIntegerField(default=90)
    attempt_seconds_max = models.PositiveIntegerField(default=600)
    attempts_max = models.PositiveSmallIntegerField(default=3)
    release_lapse_minutes = models.FloatField(default=30)
    server_working_seconds_max = models.PositiveIntegerField(null=True, blank=True)
    horizon_days = models.PositiveSmallIntegerField(default=30)
    hold_in_turn = models.BooleanField(default=False)
    agent_may_repeat = models.BooleanField(default=False)
    sends_offline = models.BooleanField(default=False, db_default=False)  # ADR 16

    # The look-up. `lookup` holds what the adapter needs (URL template, status map, ...).
    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, null=True, blank=True)
    lookup_kind = models.CharField(max_length=40, blank=True, default="")  # "" | stripe.* | http
    lookup = models.JSONField(default=dict, blank=True)
    lookups_max = models.PositiveIntegerField(default=50)

    # How arguments are compared, and what people read instead of JSON.
    argument_rules = models.JSONField(default=dict, blank=True)
    summary = models.CharField(max_length=300, blank=True, default="")
    amount_field = models.CharField(max_length=200, blank=True, default="")
    amount_is_minor = models.BooleanField(default=True)  # 14900 is 149.00
    currency_field = models.CharField(max_length=200, blank=True, default="")
    customer_field = models.CharField(max_length=200, blank=True, default="")
    # What to do when a call of it is undecided, as people wrote it: the Markdown of notes.
    runbook = models.TextField(blank=True, default="", db_default="", max_length=10_000)

    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="tool_name", fields=["workspace", "name"]),
            models.CheckConstraint(
                name="tool_window_outlasts_margin",
                condition=Q(window_seconds=None) | Q(window_seconds__gt=models.F("margin_seconds")),
            ),
            models.CheckConstraint(name="tool_lease", condition=Q(lease_seconds__gt=0)),
            models.CheckConstraint(name="tool_attempts", condition=Q(attempts_max__gt=0)),
            models.CheckConstraint(
                name="tool_offline_has_window",
                condition=Q(sends_offline=False)
                | Q(effect_class=EffectClass.KEYED_WRITE, window_seconds__isnull=False),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class ToolChange(models.Model):
    """One version of a tool as it was saved, by whom and why. Never changed afterwards."""

    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="changes")
    version = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True
    )
    reason = models.CharField(max_length=500, blank=True, default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="tool_change_version", fields=["tool", "version"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.tool} version {self.version}"


class LookupTrial(models.Model):
    """A look-up that somebody tries on a past call: what is asked, and then what was found.

    `entry` (the settings that are tried) and `answer` are JSON texts; `answer` is empty until a
    worker has asked. No part of the record: it is forgotten after an hour.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    claim_id = models.UUIDField()
    entry = models.TextField()
    asked_at = models.DateTimeField()
    answer = models.TextField(blank=True, default="")

    @override
    def __str__(self) -> str:
        return f"look-up of {self.tool} on {self.claim_id}"
