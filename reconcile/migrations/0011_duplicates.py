import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0010_outbox"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FindingMark",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="effects.workspace",
                    ),
                ),
                ("claim_id", models.UUIDField()),
                ("asked_id", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="DuplicateGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "rule",
                    models.CharField(
                        choices=[
                            ("same_call", "Same key twice"),
                            ("same_thing", "Same business id, new key"),
                            ("same_amount", "Same customer and amount"),
                        ],
                        max_length=11,
                    ),
                ),
                ("identity", models.BinaryField()),
                ("tool", models.CharField(max_length=255)),
                (
                    "claim_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField()),
                ),
                (
                    "objects_seen",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list
                    ),
                ),
                ("operations", models.PositiveIntegerField(default=1)),
                ("app_attempts", models.PositiveIntegerField(default=0)),
                ("provider_requests", models.PositiveIntegerField(default=0)),
                ("stopped", models.PositiveIntegerField(default=0)),
                ("possible", models.PositiveIntegerField(default=0)),
                ("amount", models.DecimalField(decimal_places=10, max_digits=40, null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("places", models.PositiveSmallIntegerField(default=2)),
                ("customer", models.CharField(blank=True, default="", max_length=255)),
                (
                    "layers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20), default=list
                    ),
                ),
                ("certain", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("confirmed", "Confirmed"),
                            ("not_a_duplicate", "Not a duplicate"),
                            ("refund_requested", "Refund requested"),
                        ],
                        default="new",
                        max_length=16,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                ("found_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("diagnosed_at", models.DateTimeField()),
                (
                    "owner",
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
            name="DuplicateAct",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "act",
                    models.CharField(
                        choices=[
                            ("confirm", "Confirmed as a duplicate"),
                            ("not_a_duplicate", "Not a duplicate"),
                            ("refund_requested", "Refund requested"),
                            ("reopen", "Looked at again"),
                            ("own", "Taken over"),
                        ],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("reason", models.CharField(max_length=500)),
                ("link", models.URLField(blank=True, default="", max_length=500)),
                ("version", models.PositiveIntegerField()),
                ("shown", models.BinaryField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="acts",
                        to="reconcile.duplicategroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportedEvidence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("provider", "Provider's request log"),
                            ("stripe", "Stripe's events"),
                            ("gateway", "Gateway's log"),
                            ("checkpoints", "LangGraph's checkpoints"),
                            ("deliveries", "Queue's deliveries"),
                        ],
                        max_length=11,
                    ),
                ),
                ("name", models.CharField(max_length=300)),
                ("at", models.DateTimeField()),
                ("claim_id", models.UUIDField(null=True)),
                ("conversation", models.CharField(blank=True, default="", max_length=255)),
                ("facts", models.JSONField()),
                ("imported_at", models.DateTimeField()),
                ("run", models.UUIDField()),
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
            name="RetryConstants",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("figures", models.JSONField()),
                ("changed_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=500)),
                (
                    "changed_by",
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
        migrations.AddIndex(
            model_name="duplicategroup",
            index=models.Index(fields=["workspace", "state", "-id"], name="duplicate_group_list"),
        ),
        migrations.AddConstraint(
            model_name="duplicategroup",
            constraint=models.UniqueConstraint(
                fields=("workspace", "rule", "identity"), name="duplicate_group_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="duplicategroup",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount", None), models.Q(("currency", ""), _negated=True), _connector="OR"
                ),
                name="duplicate_group_amount",
            ),
        ),
        migrations.AddIndex(
            model_name="importedevidence",
            index=models.Index(
                condition=models.Q(("claim_id__isnull", False)),
                fields=["claim_id"],
                name="imported_evidence_claim",
            ),
        ),
        migrations.AddIndex(
            model_name="importedevidence",
            index=models.Index(
                condition=models.Q(("conversation", ""), _negated=True),
                fields=["workspace", "conversation"],
                name="imported_evidence_talk",
            ),
        ),
        migrations.AddConstraint(
            model_name="importedevidence",
            constraint=models.UniqueConstraint(
                fields=("workspace", "source", "name"), name="imported_evidence_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="retryconstants",
            constraint=models.UniqueConstraint(
                fields=("workspace", "version"), name="retry_constants_version"
            ),
        ),
        migrations.RunSQL(
            sql=[
                """CREATE FUNCTION reconcile_said_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION '% is append-only: % is refused.', TG_TABLE_NAME, TG_OP;
END $$""",
                """CREATE TRIGGER reconcile_duplicateact_append_only
BEFORE UPDATE OR DELETE ON reconcile_duplicateact
FOR EACH STATEMENT EXECUTE FUNCTION reconcile_said_refuse_change()""",
                """CREATE TRIGGER reconcile_retryconstants_append_only
BEFORE UPDATE OR DELETE ON reconcile_retryconstants
FOR EACH STATEMENT EXECUTE FUNCTION reconcile_said_refuse_change()""",
            ],
            reverse_sql=[
                "DROP TRIGGER reconcile_retryconstants_append_only ON reconcile_retryconstants",
                "DROP TRIGGER reconcile_duplicateact_append_only ON reconcile_duplicateact",
                "DROP FUNCTION reconcile_said_refuse_change()",
            ],
        ),
    ]
