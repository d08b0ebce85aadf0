from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0004_connection_kinds"),
    ]

    operations = []
