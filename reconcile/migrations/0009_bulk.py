from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0008_late_truth"),
    ]

    operations = []
