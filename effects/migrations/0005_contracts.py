from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0004_connection_kinds"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="key_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
    ]
