from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_redaction")]

    operations = []
