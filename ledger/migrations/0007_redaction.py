from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0009_redaction"),
        ("ledger", "0006_agent_roles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RetentionPass",
            fields=[
                ("kind", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("after", models.CharField(max_length=40)),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="agentrole",
            name="redaction_version",
            field=models.IntegerField(default=0),
        ),
        migrations.AddField(
            model_name="ingestitem",
            name="exact",
            field=models.JSONField(null=True),
        ),
        migrations.CreateModel(
            name="RetentionFigure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("kept", models.BigIntegerField()),
                ("kept_bytes", models.BigIntegerField()),
                ("oldest_at", models.DateTimeField(null=True)),
                ("due", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "kind"), name="retention_figure_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("days", models.PositiveIntegerField()),
                ("changed_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=500)),
                (
                    "changed_by",
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
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "kind"), name="retention_once"),
                    models.CheckConstraint(
                        condition=models.Q(("days__gte", 1)), name="retention_days"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("began_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("emptied", models.IntegerField(default=0)),
                ("emptied_bytes", models.BigIntegerField(default=0)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "kind", "began_at"), name="retention_run_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SealedText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.UUIDField(null=True)),
                ("item_id", models.BigIntegerField(null=True)),
                ("name", models.CharField(max_length=10)),
                ("text_digest", models.BinaryField()),
                ("places", models.JSONField()),
                ("body", models.BinaryField(null=True)),
                ("sealed_at", models.DateTimeField()),
                ("emptied_at", models.DateTimeField(null=True)),
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
            options={
                "indexes": [
                    models.Index(fields=["claim_id"], name="sealed_claim"),
                    models.Index(
                        condition=models.Q(("item_id__isnull", False)),
                        fields=["item_id"],
                        name="sealed_item",
                    ),
                ],
            },
        ),
        run_sql_file(SQL, "redaction_v1.sql"),
    ]
