"""Agents that speak to PostgreSQL themselves: their roles, and the functions that those may call."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"
FILES = (
    "agent_session_v1.sql",
    "agent_claim_v1.sql",
    "agent_report_v1.sql",
    "reported_v1.sql",
    "agent_rights_v1.sql",
)


class Migration(migrations.Migration):
    dependencies = [
        ("effects", "0002_people"),
        ("ledger", "0005_second_person"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentRole",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.CharField(max_length=63, unique=True)),
                ("name", models.CharField(max_length=100)),
                ("part", models.BinaryField()),
                ("desk_url", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="effects.workspace"
                    ),
                ),
            ],
        ),
        *(run_sql_file(SQL, name) for name in FILES),
    ]
