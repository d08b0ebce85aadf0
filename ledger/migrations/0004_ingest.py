"""Items of ledgers kept elsewhere, and the functions that mirror them into claims."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import effects.core.vocabulary
from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0001_initial"),
        ("ledger", "0003_claim_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="sent_key",
            field=models.CharField(max_length=255, null=True),
        ),
        migrations.CreateModel(
            name="Stream",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(max_length=255)),
                ("name", models.CharField(max_length=255)),
                ("scope", models.BinaryField(null=True)),
                ("conversation", models.CharField(max_length=255)),
                ("turn_index", models.IntegerField()),
                ("response_id", models.CharField(max_length=255, null=True)),
                ("model", models.CharField(max_length=255, null=True)),
                ("opened_at", models.DateTimeField(null=True)),
                ("received_at", models.DateTimeField()),
                ("terminal", models.CharField(max_length=12, null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                ("error", models.TextField(null=True)),
                ("cursor", models.IntegerField(db_default=0)),
                (
                    "beyond",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), db_default=[]
                    ),
                ),
                ("last_sequence", models.IntegerField(null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="IngestItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_id", models.BigIntegerField(null=True)),
                ("door", models.CharField(max_length=10)),
                ("source", models.CharField(max_length=255)),
                ("event_id", models.CharField(max_length=255)),
                ("type", models.CharField(max_length=100, null=True)),
                ("digest", models.BinaryField()),
                ("holds_id", models.BooleanField()),
                ("conflicts_with", models.BigIntegerField(null=True)),
                ("state", models.CharField(max_length=12)),
                ("reason", models.CharField(max_length=60, null=True)),
                ("says", models.TextField(null=True)),
                (
                    "mended",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), db_default=[]
                    ),
                ),
                ("raw", models.BinaryField(null=True)),
                ("raw_bytes", models.IntegerField()),
                ("emptied_at", models.DateTimeField(null=True)),
                ("said_at", models.DateTimeField(null=True)),
                ("received_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("times_seen", models.IntegerField(db_default=1)),
                ("tries", models.IntegerField(db_default=0)),
                ("waits_for", models.BinaryField(null=True)),
                ("waits_words", models.CharField(max_length=600, null=True)),
                ("applied_at", models.DateTimeField(null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="items",
                        to="ledger.claim",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="effects.workspace",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="items",
                        to="ledger.stream",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ForeignName",
            fields=[
                ("ref", models.BinaryField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=10)),
                ("fence", models.IntegerField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "claim",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="ledger.claim",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="effects.workspace",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="ledger.stream",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Call",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.SmallIntegerField()),
                ("ordinal", models.SmallIntegerField(null=True)),
                ("tool", models.CharField(max_length=255, null=True)),
                ("call_id", models.CharField(max_length=255, null=True)),
                ("complete", models.BooleanField()),
                ("arguments_bytes", models.IntegerField()),
                ("arguments_digest", models.BinaryField()),
                ("said_at", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="effects.workspace",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="ledger.ingestitem",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="calls",
                        to="ledger.stream",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(fields=["scope"], name="stream_scope"),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(
                fields=("workspace", "source", "name"), name="stream_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("terminal", None),
                    ("terminal__in", ["success", "incomplete", "error_event", "cancelled", "cut"]),
                    _connector="OR",
                ),
                name="stream_terminal",
            ),
        ),
        migrations.AddIndex(
            model_name="ingestitem",
            index=models.Index(
                condition=models.Q(("state__in", ["received", "failed"])),
                fields=["id"],
                name="item_retry",
            ),
        ),
        migrations.AddIndex(
            model_name="ingestitem",
            index=models.Index(fields=["workspace", "state", "id"], name="item_list"),
        ),
        migrations.AddIndex(
            model_name="ingestitem",
            index=models.Index(
                condition=models.Q(("waits_for__isnull", False)),
                fields=["waits_for"],
                name="item_waits",
            ),
        ),
        migrations.AddConstraint(
            model_name="ingestitem",
            constraint=models.UniqueConstraint(
                condition=models.Q(("holds_id", True)),
                fields=("workspace", "source", "event_id"),
                name="item_id",
            ),
        ),
        migrations.AddConstraint(
            model_name="ingestitem",
            constraint=models.UniqueConstraint(
                fields=("workspace", "source", "event_id", "digest"), name="item_content"
            ),
        ),
        migrations.AddConstraint(
            model_name="ingestitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "received",
                            "applied",
                            "recorded",
                            "parked",
                            "failed",
                            "conflict",
                            "unreadable",
                        ],
                    )
                ),
                name="item_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="ingestitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("conflicts_with__isnull", False),
                        ("holds_id", False),
                        ("state", effects.core.vocabulary.ItemState["CONFLICT"]),
                    ),
                    models.Q(
                        models.Q(
                            ("state", effects.core.vocabulary.ItemState["CONFLICT"]), _negated=True
                        ),
                        ("conflicts_with__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="item_conflict",
            ),
        ),
        migrations.AddConstraint(
            model_name="call",
            constraint=models.UniqueConstraint(fields=("stream", "position"), name="call_place"),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False), ("turn_index__isnull", True)),
                fields=["workspace", "conversation"],
                name="claim_turnless",
            ),
        ),
        run_sql_file(SQL, "mirror_v1.sql"),
    ]
