from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ledger", "0006_agent_roles")]

    operations = []
