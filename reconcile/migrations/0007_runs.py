import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0006_adapters"),
        ("reconcile", "0006_connection_reads"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AskingEnded",
            fields=[
                ("claim_id", models.UUIDField(primary_key=True, serialize=False)),
                ("open", models.BooleanField(default=True)),
                ("ended_at", models.DateTimeField()),
                ("why", models.CharField(max_length=200)),
                ("told_at", models.DateTimeField(null=True)),
                ("restarted_at", models.DateTimeField(null=True)),
                (
                    "restarted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Backlog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("calls", models.PositiveIntegerField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Ghost",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("object_id", models.CharField(max_length=255)),
                ("noun", models.CharField(max_length=60)),
                ("status", models.CharField(blank=True, default="", max_length=60)),
                ("marker", models.CharField(blank=True, default="", max_length=60)),
                ("amount", models.CharField(blank=True, default="", max_length=60)),
                ("made_at", models.DateTimeField(null=True)),
                ("first_seen_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("times_seen", models.PositiveIntegerField(default=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("explained", "Explained"),
                            ("linked", "Its call is known"),
                        ],
                        default="new",
                        max_length=9,
                    ),
                ),
                ("claim_id", models.UUIDField(null=True)),
                ("look_at", models.DateTimeField(null=True)),
                (
                    "connection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.connection",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GhostSaid",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("said_at", models.DateTimeField()),
                ("dismissed", models.BooleanField()),
                ("reason", models.CharField(max_length=500)),
                (
                    "ghost",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="said",
                        to="reconcile.ghost",
                    ),
                ),
                (
                    "said_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("schedule", "Schedule"),
                            ("person", "Person"),
                            ("before_deadline", "Before deadline"),
                            ("bulk", "Bulk"),
                            ("webhook", "Webhook"),
                        ],
                        max_length=15,
                    ),
                ),
                ("scope", models.JSONField(default=dict)),
                ("words", models.CharField(max_length=200)),
                ("dry", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("stopped", "Stopped"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="waiting",
                        max_length=11,
                    ),
                ),
                ("note", models.CharField(blank=True, default="", max_length=300)),
                ("made_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("stop_asked_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("reads", models.PositiveIntegerField(default=0)),
                (
                    "again_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="reconcile.run",
                    ),
                ),
                (
                    "connection",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="effects.connection",
                    ),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "stopped_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.UUIDField()),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("happened", "Happened"),
                            ("not_happened", "Did not happen"),
                            ("left", "Still unknown"),
                            ("error", "Error"),
                            ("limited", "Rate-limited"),
                            ("skipped", "Not asked"),
                        ],
                        default="waiting",
                        max_length=12,
                    ),
                ),
                ("word", models.CharField(blank=True, default="", max_length=20)),
                ("meaning", models.CharField(blank=True, default="", max_length=20)),
                ("strength", models.CharField(blank=True, default="", max_length=20)),
                ("route", models.CharField(blank=True, default="", max_length=200)),
                ("rule", models.CharField(blank=True, default="", max_length=60)),
                ("evidence", models.PositiveIntegerField(null=True)),
                ("followed", models.CharField(blank=True, default="", max_length=500)),
                ("next_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="reconcile.run",
                    ),
                ),
            ],
        ),
        migrations.DeleteModel(
            name="ConnectionPace",
        ),
        migrations.AddIndex(
            model_name="askingended",
            index=models.Index(
                condition=models.Q(("open", True)),
                fields=["workspace", "-ended_at"],
                name="asking_ended_list",
            ),
        ),
        migrations.AddConstraint(
            model_name="backlog",
            constraint=models.UniqueConstraint(fields=("workspace", "at"), name="backlog_once"),
        ),
        migrations.AddIndex(
            model_name="ghost",
            index=models.Index(fields=["connection", "state", "-id"], name="ghost_list"),
        ),
        migrations.AddIndex(
            model_name="ghost",
            index=models.Index(
                condition=models.Q(("look_at", None), _negated=True),
                fields=["look_at"],
                name="ghost_look",
            ),
        ),
        migrations.AddConstraint(
            model_name="ghost",
            constraint=models.UniqueConstraint(
                fields=("connection", "object_id"), name="ghost_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="ghost",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["new", "explained", "linked"])),
                name="ghost_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="ghost",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("claim_id__isnull", False), ("state", "linked")),
                    models.Q(models.Q(("state", "linked"), _negated=True), ("claim_id", None)),
                    _connector="OR",
                ),
                name="ghost_linked_names_its_call",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["workspace", "-id"], name="run_list"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="run_due"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["ended_at"], name="run_ended"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("trigger__in", ["schedule", "person", "before_deadline", "bulk", "webhook"])
                ),
                name="run_trigger",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["waiting", "running", "done", "stopped", "interrupted"])
                ),
                name="run_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("due_at__isnull", False), ("state__in", ["waiting", "running"])),
                    models.Q(
                        models.Q(("state__in", ["waiting", "running"]), _negated=True),
                        ("due_at", None),
                        ("ended_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="run_open_is_due",
            ),
        ),
        migrations.AddIndex(
            model_name="runitem",
            index=models.Index(fields=["run", "result", "id"], name="run_item_result"),
        ),
        migrations.AddConstraint(
            model_name="runitem",
            constraint=models.UniqueConstraint(fields=("run", "claim_id"), name="run_item_once"),
        ),
    ]
