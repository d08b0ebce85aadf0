from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_redaction")]

    operations = [
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("scope__isnull", False)),
                fields=["workspace", "id"],
                name="claim_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="due",
            index=models.Index(fields=["workspace", "why", "claim"], name="due_newest"),
        ),
        migrations.AddIndex(
            model_name="ingestitem",
            index=models.Index(
                condition=models.Q(("stream__isnull", False)),
                fields=["stream", "id"],
                name="item_stream",
            ),
        ),
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(fields=["workspace", "received_at"], name="stream_newest"),
        ),
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(
                condition=models.Q(("terminal__in", ["cut", "error_event", "cancelled"])),
                fields=["workspace", "received_at"],
                name="stream_broken",
            ),
        ),
    ]
