import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0012_views"),
        ("effects", "0001_initial"),
        ("ledger", "0004_ingest"),
    ]

    operations = [
        migrations.CreateModel(
            name="RolledDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("rolled_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["rolled_at"], name="rolled_day_oldest")],
            },
        ),
        migrations.CreateModel(
            name="ExposureLevel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("bucket", models.CharField(max_length=8)),
                ("calls", models.PositiveIntegerField()),
                ("amount", models.DecimalField(decimal_places=10, max_digits=40, null=True)),
                ("places", models.PositiveSmallIntegerField(default=2)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "at", "currency", "bucket"), name="exposure_level_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StreamDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("success", models.PositiveIntegerField(default=0)),
                ("incomplete", models.PositiveIntegerField(default=0)),
                ("error_event", models.PositiveIntegerField(default=0)),
                ("cut", models.PositiveIntegerField(default=0)),
                ("cancelled", models.PositiveIntegerField(default=0)),
                ("without_end", models.PositiveIntegerField(default=0)),
                ("in_window", models.PositiveIntegerField(default=0)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.workspace",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="stream_day_day")],
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "day"), name="stream_day_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("responses", models.PositiveIntegerField(default=0)),
                ("in_window", models.PositiveIntegerField(default=0)),
                ("latency", models.JSONField(default=dict)),
                ("gap", models.JSONField(default=dict)),
                ("wire_same", models.PositiveIntegerField(default=0)),
                ("wire_other", models.PositiveIntegerField(default=0)),
                ("wire_missing", models.PositiveIntegerField(default=0)),
                (
                    "tool",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.tool",
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
            options={
                "indexes": [models.Index(fields=["day"], name="tool_day_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "day", "tool"), name="tool_day_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolSlot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("at", models.DateTimeField()),
                ("calls", models.PositiveIntegerField()),
                ("unknown", models.PositiveIntegerField()),
                (
                    "tool",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.tool",
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
            options={
                "indexes": [models.Index(fields=["day"], name="tool_slot_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "at", "tool", "day"), name="tool_slot_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UnsureCall",
            fields=[
                ("claim_id", models.UUIDField(primary_key=True, serialize=False)),
                ("day", models.DateField()),
                ("unknown_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "A person"),
                            ("rule", "A rule, from the provider's answer"),
                            ("agent", "The agent's own late report"),
                        ],
                        default="",
                        max_length=6,
                    ),
                ),
                ("window_until", models.DateTimeField(null=True)),
                ("race_at", models.DateTimeField(null=True)),
                ("contradicted_at", models.DateTimeField(null=True)),
                (
                    "tool",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="effects.tool",
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
            options={
                "indexes": [
                    models.Index(fields=["day"], name="unsure_call_day"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["workspace", "ended_at"],
                        name="unsure_call_ended",
                    ),
                    models.Index(
                        condition=models.Q(("race_at__isnull", False)),
                        fields=["workspace", "race_at"],
                        name="unsure_call_race",
                    ),
                    models.Index(
                        condition=models.Q(("contradicted_at__isnull", False)),
                        fields=["workspace", "contradicted_at"],
                        name="unsure_call_contradicted",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), ("ended_at", None)),
                            models.Q(
                                ("ended_at__isnull", False), models.Q(("by", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="unsure_call_by_somebody",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="duplicateact",
            index=models.Index(fields=["at"], name="duplicate_act_at"),
        ),
        migrations.AddIndex(
            model_name="duplicategroup",
            index=models.Index(fields=["workspace", "found_at"], name="duplicate_group_found"),
        ),
        # The roll reads a day's responses by when they were received; the table is another floor's
        # and the way of reading it is this one's.
        migrations.RunSQL(
            sql="CREATE INDEX reconcile_stream_received ON ledger_stream (received_at)",
            reverse_sql="DROP INDEX reconcile_stream_received",
        ),
    ]
