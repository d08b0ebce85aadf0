from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("effects", "0009_redaction")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="trace_url",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
    ]
