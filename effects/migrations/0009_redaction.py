import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0008_registry"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RedactionState",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="effects.workspace",
                    ),
                ),
                ("version", models.IntegerField(default=0)),
                ("holds_sealed", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="RedactionRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("where", models.CharField(max_length=10)),
                ("path", models.CharField(max_length=300)),
                (
                    "mode",
                    models.CharField(choices=[("hide", "hide"), ("drop", "drop")], max_length=4),
                ),
                ("reason", models.CharField(max_length=500)),
                ("made_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(null=True)),
                ("retired_reason", models.CharField(blank=True, default="", max_length=500)),
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
                    "retired_by",
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
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("retired_at", None)),
                        fields=["workspace"],
                        name="redaction_in_force",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("where__in", ["arguments", "results", "bodies", "events", "all"])
                        ),
                        name="redaction_where",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mode__in", ["hide", "drop"])), name="redaction_mode"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SecretSwitchedOff",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("secret", models.CharField(max_length=10)),
                ("reason", models.CharField(max_length=500)),
                ("at", models.DateTimeField()),
                (
                    "by",
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
                    models.UniqueConstraint(fields=("workspace", "secret"), name="secret_off_once"),
                    models.CheckConstraint(
                        condition=models.Q(("secret__in", ["name", "address", "words", "card"])),
                        name="secret_off_kind",
                    ),
                ],
            },
        ),
    ]
