from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("effects", "0009_redaction")]

    operations = []
