import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0011_duplicates"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PersonKeys",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("keys", models.JSONField(default=dict)),
                ("on", models.BooleanField(default=True)),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=2000)),
                ("shared", models.BooleanField(default=False)),
                ("made_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "owner",
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
            name="DefaultView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                (
                    "view",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="reconcile.savedview",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="savedview",
            index=models.Index(
                condition=models.Q(("shared", True)), fields=["workspace"], name="view_shared"
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                models.F("workspace"),
                models.F("owner"),
                django.db.models.functions.text.Lower("name"),
                name="view_name_once_a_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="defaultview",
            constraint=models.UniqueConstraint(
                fields=("workspace", "user"), name="default_view_once"
            ),
        ),
    ]
