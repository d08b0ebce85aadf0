import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0006_adapters"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("act", models.CharField(max_length=60)),
                ("target", models.CharField(max_length=200)),
                ("target_address", models.CharField(blank=True, default="", max_length=500)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                (
                    "user",
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
                    models.Index(fields=["workspace", "-at", "-id"], name="audit_entry_newest")
                ],
            },
        ),
        migrations.AddField(
            model_name="connection",
            name="secret_sealed",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="secret_entered_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.CheckConstraint(
                condition=models.Q(("secret_entered_at", None), ("secret_sealed", None))
                | models.Q(
                    ("secret_entered_at__isnull", False),
                    ("secret_name", ""),
                    ("secret_sealed__isnull", False),
                ),
                name="connection_one_secret",
            ),
        ),
        migrations.RunSQL(
            sql=[
                """CREATE FUNCTION effects_auditentry_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'The audit log is append-only: % is refused.', TG_OP;
END $$""",
                """CREATE TRIGGER effects_auditentry_append_only
BEFORE UPDATE OR DELETE ON effects_auditentry
FOR EACH STATEMENT EXECUTE FUNCTION effects_auditentry_refuse_change()""",
            ],
            reverse_sql=[
                "DROP TRIGGER effects_auditentry_append_only ON effects_auditentry",
                "DROP FUNCTION effects_auditentry_refuse_change()",
            ],
        ),
    ]
