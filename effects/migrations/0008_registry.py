import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("effects", "0007_audit")]

    operations = [
        migrations.CreateModel(
            name="MeasureMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("call_id", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name="tool",
            name="runbook",
            field=models.TextField(blank=True, db_default="", default="", max_length=10000),
        ),
        migrations.CreateModel(
            name="ToolHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("hour", models.DateTimeField()),
                ("calls", models.PositiveIntegerField(db_default=0, default=0)),
                ("written", models.PositiveIntegerField(db_default=0, default=0)),
                ("unknown", models.PositiveIntegerField(db_default=0, default=0)),
                ("announced", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "recent",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), db_default=[], default=list
                    ),
                ),
                (
                    "recent_unknown",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), db_default=[], default=list
                    ),
                ),
                ("first_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["hour"], name="tool_hour_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name", "hour"), name="tool_hour_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolMeasured",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("measured_at", models.DateTimeField()),
                ("facts", models.JSONField()),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "name"), name="tool_measured_once")
                ],
            },
        ),
    ]
