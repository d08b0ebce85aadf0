from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0010_workspace"),
        ("ledger", "0008_turns"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # The audit log reads the newest decisions of a workspace, however many rules have made.
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["workspace", "-decided_at", "-id"], name="decision_newest"),
        ),
    ]
