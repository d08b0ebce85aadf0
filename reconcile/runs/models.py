"""A run and its calls, and the calls about which asking has ended."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.models import Connection, Workspace


class Run(models.Model):
    """One round of questions to a provider: who wanted it, about which calls, and how far it is.

    `scope` is what was chosen as it was chosen, `words` the same for people. `dry`: the provider is
    asked and its answers are kept as evidence, and nothing is decided by them. `due_at` is when the
    run is handed to a worker if none is at it: while one works it lies ahead by the worker's lease,
    so a worker that died leaves a run that becomes due. `deaths` counts the workers that died at it
    without finishing a call. Null `connection`: of several accounts.
    """

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule", "Schedule"
        PERSON = "person", "Person"
        BEFORE_DEADLINE = "before_deadline", "Before deadline"
        BULK = "bulk", "Bulk"
        WEBHOOK = "webhook", "Webhook"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        STOPPED = "stopped", "Stopped"
        INTERRUPTED = "interrupted", "Interrupted"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    connection = models.ForeignKey(
        Connection, on_delete=models.SET_NULL, null=True, blank=True, db_index=False
    )
    trigger = models.CharField(max_length=15, choices=Trigger)
    scope = models.JSONField(default=dict)
    words = models.CharField(max_length=200)
    dry = models.BooleanField(default=False)
    state = models.CharField(max_length=11, choices=State, default=State.WAITING)
    note = models.CharField(max_length=300, blank=True, default="")
    # As in the record, whoever asked is named by a number that nothing has to answer to.
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_constraint=False,
    )
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    again_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    stop_asked_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    deaths = models.PositiveSmallIntegerField(default=0)
    reads = models.PositiveIntegerField(default=0)  # requests that it took, not calls

    class Meta:
        indexes = [
            models.Index(name="run_list", fields=["workspace", "-id"]),
            models.Index(name="run_due", fields=["due_at"], condition=Q(due_at__isnull=False)),
            models.Index(name="run_ended", fields=["ended_at"]),
        ]
        constraints = [
            models.CheckConstraint(
                name="run_trigger",
                condition=Q(
                    trigger__in=["schedule", "person", "before_deadline", "bulk", "webhook"]
                ),
            ),
            models.CheckConstraint(
                name="run_state",
                condition=Q(state__in=["waiting", "running", "done", "stopped", "interrupted"]),
            ),
            # A run that is open is due at some time; one that has ended is never taken again.
            models.CheckConstraint(
                name="run_open_is_due",
                condition=Q(state__in=["waiting", "running"], due_at__isnull=False)
                | (~Q(state__in=["waiting", "running"]) & Q(due_at=None, ended_at__isnull=False)),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"run {self.pk}: {self.words}"

    @property
    def is_open(self) -> bool:
        return self.state in {self.State.WAITING, self.State.RUNNING}


class RunItem(models.Model):
    """One call of a run and what became of it.

    `result` sorts it for the counts; of a dry run it is what would have become of the call. `word`
    is the provider's answer, `evidence` the number of the event that keeps it, `rule` the rule that
    settled the call, or would have, and `followed` says in words what was done.
    """

    class Result(models.TextChoices):
        WAITING = "waiting", "Waiting"
        HAPPENED = "happened", "Happened"
        NOT_HAPPENED = "not_happened", "Did not happen"
        LEFT = "left", "Still unknown"
        ERROR = "error", "Error"
        LIMITED = "limited", "Rate-limited"
        SKIPPED = "skipped", "Not asked"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="items")
    claim_id = models.UUIDField()
    result = models.CharField(max_length=12, choices=Result, default=Result.WAITING)
    word = models.CharField(max_length=20, blank=True, default="")
    meaning = models.CharField(max_length=20, blank=True, default="")
    strength = models.CharField(max_length=20, blank=True, default="")
    route = models.CharField(max_length=200, blank=True, default="")
    rule = models.CharField(max_length=60, blank=True, default="")
    evidence = models.PositiveIntegerField(null=True)
    followed = models.CharField(max_length=500, blank=True, default="")
    next_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="run_item_once", fields=["run", "claim_id"]),
        ]
        indexes = [
            models.Index(name="run_item_result", fields=["run", "result", "id"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} in run {self.run_id}: {self.result}"


class AskingEnded(models.Model):
    """A call that nobody is asked about any more although it is not settled. It concludes nothing.

    `open`: asking rests at present. `why` says what ended it. `told_at`: people were mailed about
    this end. `restarted_at`: a person had it asked about again, and the schedule began anew then.
    """

    claim_id = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    open = models.BooleanField(default=True)
    ended_at = models.DateTimeField()
    why = models.CharField(max_length=200)
    told_at = models.DateTimeField(null=True)
    restarted_at = models.DateTimeField(null=True)
    restarted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        indexes = [
            models.Index(
                name="asking_ended_list",
                fields=["workspace", "-ended_at"],
                condition=Q(open=True),
            )
        ]

    @override
    def __str__(self) -> str:
        return f"asking about {self.claim_id} ended"


class Backlog(models.Model):
    """How many calls of a workspace waited to be decided at the beginning of an hour."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    at = models.DateTimeField()
    calls = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(name="backlog_once", fields=["workspace", "at"])]

    @override
    def __str__(self) -> str:
        return f"{self.calls} at {self.at}"
