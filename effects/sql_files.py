"""Migrations that run SQL from files: functions are read as SQL, not as Python strings."""

from __future__ import annotations

from pathlib import Path

from django.db.migrations import RunSQL


def run_sql_file(folder: Path, name: str) -> RunSQL:
    """The whole file as it stands. It is never undone: a later migration replaces it."""
    return RunSQL(
        # In a list, the text has no parameters: a percent sign in it is no placeholder.
        sql=[(folder / name).read_text(encoding="utf-8")],
        reverse_sql=RunSQL.noop,
    )
