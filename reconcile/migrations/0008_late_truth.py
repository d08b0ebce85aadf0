from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "late"


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0006_agent_roles"),
        ("reconcile", "0007_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Contradiction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.IntegerField()),
                ("told", models.CharField(max_length=20)),
                ("became", models.CharField(max_length=20)),
                ("at", models.DateTimeField()),
                ("raised_at", models.DateTimeField(null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
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
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("agent", models.CharField(blank=True, default="", max_length=255)),
                ("decision_id", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField()),
                ("mailed_at", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "seen_by",
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
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="effects.workspace",
                    ),
                ),
                (
                    "contradiction",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="reconcile.contradiction",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="contradiction",
            index=models.Index(
                condition=models.Q(("raised_at__isnull", True)),
                fields=["id"],
                name="contradiction_to_raise",
            ),
        ),
        migrations.AddConstraint(
            model_name="contradiction",
            constraint=models.UniqueConstraint(
                fields=("claim", "version"), name="contradiction_once"
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("seen_at__isnull", True)),
                fields=["workspace", "id"],
                name="alert_open",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["workspace", "-id"], name="alert_list"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.UniqueConstraint(
                fields=("contradiction", "person", "agent"), name="alert_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("seen_at", None), ("seen_by", None)),
                    models.Q(("seen_at__isnull", False), ("seen_by__isnull", False)),
                    _connector="OR",
                ),
                name="alert_seen_by_somebody",
            ),
        ),
        run_sql_file(SQL, "contradictions_v1.sql"),
    ]
