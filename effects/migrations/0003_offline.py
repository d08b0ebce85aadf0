from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("effects", "0002_people")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="sends_offline",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("sends_offline", False),
                    models.Q(("effect_class", "keyed_write"), ("window_seconds__isnull", False)),
                    _connector="OR",
                ),
                name="tool_offline_has_window",
            ),
        ),
    ]
