from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reconcile", "0015_call")]

    operations = []
