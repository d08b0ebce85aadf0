from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reconcile", "0013_exposure")]

    operations = []
