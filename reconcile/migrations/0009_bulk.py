import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0008_late_truth"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Bulk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.CharField(max_length=20)),
                ("view", models.CharField(blank=True, default="", max_length=1000)),
                ("form", models.BinaryField()),
                ("session", models.BinaryField()),
                ("options", models.JSONField(default=dict)),
                ("reason", models.CharField(blank=True, default="", max_length=1000)),
                ("made_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "made_by",
                    models.ForeignKey(
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("claim_id", models.UUIDField()),
                ("seen_version", models.IntegerField()),
                ("seen_state", models.CharField(max_length=20)),
                ("screen_hash", models.BinaryField(null=True)),
                (
                    "evidence",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("done", "Done"),
                            ("refused", "Refused"),
                            ("changed", "Changed"),
                            ("stopped", "Stopped"),
                            ("undone", "Undone"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("said", models.CharField(blank=True, default="", max_length=500)),
                ("decision_id", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(null=True)),
                (
                    "bulk",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="reconcile.bulk",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ChainCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("decisions", models.BigIntegerField()),
                ("head", models.BinaryField(null=True)),
                ("fault", models.CharField(blank=True, default="", max_length=500)),
                (
                    "asked_by",
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
        ),
        migrations.CreateModel(
            name="CustomerText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=30)),
                ("text", models.CharField(blank=True, default="", max_length=1000)),
                ("written_at", models.DateTimeField()),
                (
                    "tool",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="effects.tool",
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
                (
                    "written_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Mention",
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
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
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
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.UUIDField()),
                ("action", models.CharField(max_length=20)),
                ("version", models.IntegerField()),
                ("screen_hash", models.BinaryField()),
                ("form", models.BinaryField()),
                ("session", models.BinaryField()),
                ("sent_at", models.DateTimeField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("made", "Made"),
                            ("asked", "Asked"),
                            ("overtaken", "Overtaken"),
                            ("unavailable", "Unavailable"),
                        ],
                        max_length=12,
                    ),
                ),
                ("said", models.CharField(blank=True, default="", max_length=500)),
                ("decision_id", models.BigIntegerField(null=True)),
                (
                    "sent_by",
                    models.ForeignKey(
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
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "assigned_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "assigned_to",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "ended_by",
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
                "indexes": [
                    models.Index(fields=["claim_id"], name="assignment_claim"),
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["workspace", "assigned_to"],
                        name="assignment_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("claim_id",),
                        name="assignment_once",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="bulk",
            index=models.Index(
                condition=models.Q(("ended_at", None), ("started_at__isnull", False)),
                fields=["started_at"],
                name="bulk_at_work",
            ),
        ),
        migrations.AddIndex(
            model_name="bulk",
            index=models.Index(fields=["workspace", "-id"], name="bulk_newest"),
        ),
        migrations.AddConstraint(
            model_name="bulk",
            constraint=models.UniqueConstraint(fields=("made_by", "form"), name="bulk_form_once"),
        ),
        migrations.AddConstraint(
            model_name="bulk",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at", None), ("started_at__isnull", False), _connector="OR"
                ),
                name="bulk_ends_once_started",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(fields=("bulk", "claim_id"), name="bulk_item_once"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(fields=("bulk", "number"), name="bulk_item_number"),
        ),
        migrations.AddIndex(
            model_name="chaincheck",
            index=models.Index(fields=["workspace", "-id"], name="chain_check_newest"),
        ),
        migrations.AddIndex(
            model_name="customertext",
            index=models.Index(fields=["workspace", "kind", "-id"], name="customer_text_newest"),
        ),
        migrations.AddIndex(
            model_name="mention",
            index=models.Index(fields=["workspace", "user", "at"], name="mention_of"),
        ),
        migrations.AddConstraint(
            model_name="mention",
            constraint=models.UniqueConstraint(
                fields=("claim_id", "seq", "user"), name="mention_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.UniqueConstraint(
                fields=("claim_id", "form", "action"), name="submission_once"
            ),
        ),
    ]
