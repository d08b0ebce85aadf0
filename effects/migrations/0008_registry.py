from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("effects", "0007_audit")]

    operations = []
