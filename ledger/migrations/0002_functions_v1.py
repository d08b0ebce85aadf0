"""Clock, append-only triggers, views, and the functions through which every claim is written."""

from pathlib import Path

from django.db import migrations

from effects.sql_files import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"
FILES = (
    "types_v1.sql",
    "record_v1.sql",
    "fold_v1.sql",
    "advance_v1.sql",
    "claim_v1.sql",
    "claim_batch_v1.sql",
    "report_v1.sql",
    "observe_v1.sql",
    "decide_v1.sql",
    "sweep_v1.sql",
)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]
    operations = [run_sql_file(SQL, name) for name in FILES]
