from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("reconcile", "0006_connection_reads"),
    ]

    operations = []
