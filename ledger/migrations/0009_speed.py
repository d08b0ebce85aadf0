from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0008_turns")]

    operations = []
