"""The status question by key: an agent may hold nothing but the key that it sent."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0001_initial"),
        ("ledger", "0002_functions_v1"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["key"], name="claim_key"),
        ),
    ]
