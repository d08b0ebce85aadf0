from datetime import timedelta

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0007_audit"),
        ("reconcile", "0013_exposure"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Notification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("made_at", models.DateTimeField()),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("true", "Told as it became true"),
                            ("wakes", "In quiet hours, because the window is that short"),
                            (
                                "closes_first",
                                "In quiet hours, because the window closes before their end",
                            ),
                            ("test", "Somebody tried a channel"),
                        ],
                        max_length=15,
                    ),
                ),
                ("said", models.JSONField()),
                ("of_all", models.PositiveIntegerField(default=0)),
                ("total", models.DecimalField(decimal_places=10, max_digits=40, null=True)),
                ("total_currency", models.CharField(blank=True, default="", max_length=3)),
                ("total_places", models.PositiveSmallIntegerField(default=2)),
                ("of_use_until", models.DateTimeField(null=True)),
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
            name="NotificationChannel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("email", "Email"),
                            ("slack", "Slack-compatible webhook"),
                            ("webhook", "Signed webhook"),
                        ],
                        max_length=10,
                    ),
                ),
                ("public_id", models.CharField(max_length=40, unique=True)),
                (
                    "people",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list
                    ),
                ),
                ("address", models.EmailField(blank=True, default="", max_length=254)),
                ("origin", models.CharField(blank=True, default="", max_length=300)),
                ("sealed", models.BinaryField(null=True)),
                ("names_calls", models.BooleanField(default=True)),
                ("made_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("failing_why", models.CharField(blank=True, default="", max_length=300)),
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
                        related_name="+",
                        to="effects.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NotificationDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("to", models.CharField(blank=True, default="", max_length=254)),
                ("public_id", models.CharField(max_length=40, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("too_late", "Too late"),
                            ("settled", "Settled meanwhile"),
                            ("given_up", "Given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("last_status", models.PositiveSmallIntegerField(null=True)),
                ("last_said", models.CharField(blank=True, default="", max_length=300)),
                ("log", models.JSONField(default=list)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="reconcile.notificationchannel",
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="reconcile.notification",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NotificationItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rule_id", models.BigIntegerField()),
                ("subject", models.CharField(max_length=60)),
                ("situation", models.CharField(max_length=100)),
                ("at", models.DateTimeField()),
                ("place", models.PositiveIntegerField()),
                ("claim_id", models.UUIDField(null=True)),
                ("state", models.CharField(blank=True, default="", max_length=20)),
                ("summary", models.CharField(blank=True, default="", max_length=200)),
                ("amount", models.DecimalField(decimal_places=10, max_digits=40, null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("places", models.PositiveSmallIntegerField(default=2)),
                ("deadline", models.DateTimeField(null=True)),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="reconcile.notification",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NotificationRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "condition",
                    models.CharField(
                        choices=[
                            ("closing", "The window closes soon"),
                            ("untaken", "Nobody has the call"),
                            ("exposure", "Exposure is above an amount"),
                            ("otherwise", "Contradiction, or told otherwise"),
                            ("lookups", "Look-ups ended, or a connection is left alone"),
                            ("second_person", "A request waits for a second person"),
                        ],
                        max_length=15,
                    ),
                ),
                ("within_seconds", models.PositiveIntegerField(null=True)),
                ("amount", models.DecimalField(decimal_places=10, max_digits=30, null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("effect_class", models.CharField(blank=True, default="", max_length=20)),
                ("amount_from", models.DecimalField(decimal_places=10, max_digits=30, null=True)),
                ("repeat_seconds", models.PositiveIntegerField()),
                ("zone", models.CharField(default="UTC", max_length=64)),
                ("quiet_from", models.TimeField(null=True)),
                ("quiet_until", models.TimeField(null=True)),
                ("wake_seconds", models.PositiveIntegerField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
                ("made_at", models.DateTimeField()),
                (
                    "channels",
                    models.ManyToManyField(
                        related_name="rules", to="reconcile.notificationchannel"
                    ),
                ),
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
            ],
        ),
        migrations.CreateModel(
            name="NotificationAck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("subject", models.CharField(max_length=60)),
                ("situation", models.CharField(max_length=100)),
                ("claim_id", models.UUIDField(null=True)),
                ("summary", models.CharField(blank=True, default="", max_length=200)),
                ("at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="acks",
                        to="reconcile.notification",
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
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reconcile.notificationrule",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="notification",
            name="rule",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="notifications",
                to="reconcile.notificationrule",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationchannel",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retired_at__isnull", True)),
                fields=("workspace", "name"),
                name="notification_channel_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationchannel",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["email", "slack", "webhook"])),
                name="notification_channel_kind",
            ),
        ),
        migrations.AddIndex(
            model_name="notificationdelivery",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)),
                fields=["due_at"],
                name="notification_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationdelivery",
            constraint=models.UniqueConstraint(
                fields=("notification", "channel", "to"), name="notification_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["waiting", "delivered", "too_late", "settled", "given_up"])
                ),
                name="notification_delivery_state",
            ),
        ),
        migrations.AddIndex(
            model_name="notificationitem",
            index=models.Index(
                fields=["rule_id", "subject", "situation", "-at"], name="notification_told"
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationrule",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retired_at__isnull", True)),
                fields=("workspace", "name"),
                name="notification_rule_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("condition__in", ["closing", "untaken"]), ("within_seconds__isnull", False)
                    ),
                    models.Q(
                        ("amount__isnull", False),
                        ("condition", "exposure"),
                        models.Q(("currency", ""), _negated=True),
                    ),
                    ("condition__in", ["otherwise", "lookups", "second_person"]),
                    _connector="OR",
                ),
                name="notification_rule_condition",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("quiet_from", None), ("quiet_until", None)),
                    models.Q(("quiet_from__isnull", False), ("quiet_until__isnull", False)),
                    _connector="OR",
                ),
                name="notification_rule_quiet",
            ),
        ),
        migrations.AddIndex(
            model_name="notificationack",
            index=models.Index(fields=["workspace", "until"], name="notification_ack_open"),
        ),
        migrations.AddConstraint(
            model_name="notificationack",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("until__gt", models.F("at")),
                    (
                        "until__lte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("at"), "+", models.Value(timedelta(days=1))
                        ),
                    ),
                ),
                name="notification_ack_ends",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["workspace", "-id"], name="notification_newest"),
        ),
    ]
