from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "outbox"


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0006_agent_roles"),
        ("reconcile", "0009_bulk"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="OutboxMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("windows_until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="AgentAddress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("url", models.URLField(max_length=500)),
                ("secret_name", models.CharField(max_length=100)),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), blank=True, default=list
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(null=True)),
                ("gone_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                (
                    "made_by",
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agent_addresses",
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OutboxCue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.UUIDField()),
                ("seq", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("tries", models.PositiveIntegerField(db_default=0)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(max_length=40, unique=True)),
                ("claim_id", models.UUIDField(null=True)),
                ("version", models.IntegerField(default=0)),
                ("type", models.CharField(max_length=40)),
                ("said", models.JSONField(default=list)),
                ("body", models.BinaryField()),
                ("made_at", models.DateTimeField()),
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
            name="OutboxDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("superseded", "Superseded"),
                            ("given_up", "Given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("last_status", models.PositiveSmallIntegerField(null=True)),
                ("last_said", models.CharField(blank=True, default="", max_length=300)),
                ("log", models.JSONField(default=list)),
                (
                    "address",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="reconcile.agentaddress",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="reconcile.outboxmessage",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="agentaddress",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retired_at__isnull", True)),
                fields=("workspace", "name"),
                name="agent_address_name",
            ),
        ),
        migrations.AddIndex(
            model_name="outboxcue",
            index=models.Index(fields=["due_at"], name="cue_due"),
        ),
        migrations.AddIndex(
            model_name="outboxmessage",
            index=models.Index(fields=["claim_id", "-id"], name="outbox_claim"),
        ),
        migrations.AddIndex(
            model_name="outboxmessage",
            index=models.Index(fields=["workspace", "-id"], name="outbox_made"),
        ),
        migrations.AddIndex(
            model_name="outboxdelivery",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="outbox_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="outboxdelivery",
            constraint=models.UniqueConstraint(fields=("message", "address"), name="outbox_once"),
        ),
        migrations.AddConstraint(
            model_name="outboxdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["waiting", "delivered", "superseded", "given_up"])
                ),
                name="outbox_state",
            ),
        ),
        run_sql_file(SQL, "cues_v1.sql"),
    ]
