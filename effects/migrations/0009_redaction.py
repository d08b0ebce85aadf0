from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("effects", "0008_registry")]

    operations = []
