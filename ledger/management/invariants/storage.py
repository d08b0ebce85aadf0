"""What guards the record: the triggers, the functions of the migrations, and every row's parent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db import connection

from ledger.management.invariants.base import Check, Difference, rows_of

SQL_FOLDER: Final = Path(__file__).resolve().parent.parent.parent / "sql"
CLOCK: Final = "ledger_clock"

UNGUARDED_TABLES: Final = """
SELECT t.name, 'no enabled trigger refuses a change'
  FROM (VALUES ('ledger_event'), ('ledger_decision')) AS t (name)
 WHERE NOT EXISTS (
   SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
    WHERE g.tgrelid = t.name::regclass AND p.proname = 'ledger_refuse_change'
      AND g.tgenabled IN ('O', 'A')
      -- whatever changes, in whichever column
      AND g.tgqual IS NULL AND cardinality(g.tgattr::int2[]) = 0
      AND g.tgtype & 2 = 2      -- before
      AND g.tgtype & 8 = 8      -- delete
      AND g.tgtype & 16 = 16)   -- update
"""


# A trigger does not fire for a replica, and TRUNCATE fires none of ours: it is the owner's alone.
WAYS_AROUND_THE_GUARD: Final = """
SELECT coalesce(nullif(r.setrole, 0)::regrole::text, 'every role'),
       'its sessions are replicas, for which no trigger fires'
  FROM pg_db_role_setting r, unnest(r.setconfig) AS said
 WHERE said ~* '^session_replication_role=replica'
   AND r.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
UNION ALL
SELECT c.relname, format('%s may %s it, and owns nothing of it',
         CASE WHEN a.grantee = 0 THEN 'everybody' ELSE a.grantee::regrole::text END,
         lower(a.privilege_type))
  FROM pg_class c, aclexplode(c.relacl) a
 WHERE c.oid IN ('ledger_event'::regclass, 'ledger_decision'::regclass)
   AND a.grantee <> c.relowner AND a.privilege_type IN ('TRUNCATE', 'TRIGGER')
UNION ALL
SELECT 'this session', 'it is a replica, for which no trigger fires'
 WHERE current_setting('session_replication_role') = 'replica'
"""


# Rows without a foreign key of the database must still have their parent, in the same workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One column that names a parent, and whether child and parent carry a workspace to compare."""

    table: str
    column: str
    parent: str
    parent_key: str
    compare_workspace: bool


def links() -> list[Link]:
    """Every foreign key of the ledger's models that the database does not enforce, or that could
    cross a workspace; taken from the models, so that a new column cannot be forgotten."""
    from django.apps import apps  # noqa: PLC0415 - the registry is full only when commands run

    found = []
    for model in apps.get_app_config("ledger").get_models():
        if not model._meta.managed:  # noqa: SLF001 - Django's documented model API
            continue
        mine = {field.name for field in model._meta.concrete_fields}  # noqa: SLF001
        for field in model._meta.concrete_fields:  # noqa: SLF001
            parent: Any = field.related_model
            if parent is None or field.column is None:
                continue
            theirs = {other.name for other in parent._meta.concrete_fields}  # noqa: SLF001
            found.append(
                Link(
                    table=model._meta.db_table,  # noqa: SLF001
                    column=field.column,
                    parent=parent._meta.db_table,  # noqa: SLF001
                    parent_key=parent._meta.pk.column,  # noqa: SLF001
                    compare_workspace="workspace" in mine & theirs,
                )
            )
    return found


def unlinked() -> Iterator[Difference]:
    """Rows whose parent is missing or in another workspace."""
    for link in links():
        yield from rows_of(_unlinked_sql(link))()


def _unlinked_sql(link: Link) -> str:
    elsewhere = " OR p.workspace_id <> c.workspace_id" if link.compare_workspace else ""
    # Names come from our own models, never from outside.
    return f"""
SELECT format('{link.table}.{link.column} = %s', c.{link.column}),
       CASE WHEN p.{link.parent_key} IS NULL THEN 'there is no such row in {link.parent}'
            ELSE 'the row in {link.parent} is another workspace''s' END
  FROM {link.table} c LEFT JOIN {link.parent} p ON p.{link.parent_key} = c.{link.column}
 WHERE c.{link.column} IS NOT NULL AND (p.{link.parent_key} IS NULL{elsewhere})
 LIMIT 1000
"""  # noqa: S608 - see above


# The functions in the database against the files that made them


_FUNCTION = re.compile(
    r"create(?: or replace)? function (?P<name>ledger_\w+)\s*\(.*?as \$\$(?P<body>.*?)\$\$",
    re.DOTALL,
)


def functions_as_written() -> dict[str, str]:
    """The body of every function of the record, by name, from the files that migrations run."""
    found = {}
    for path in sorted(SQL_FOLDER.glob("*.sql")):
        for match in _FUNCTION.finditer(path.read_text()):
            found[match["name"]] = match["body"]
    return found


def changed_functions(*, clock_may_move: bool) -> Iterator[Difference]:
    """Functions that are not the ones that the migrations made.

    A replaced clock would decide leases and windows by somebody's wish; tests and demos do that on
    purpose, and say so with `clock_may_move`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, prosrc FROM pg_proc"
            " WHERE proname LIKE 'ledger\\_%' AND pronamespace = current_schema()::regnamespace"
        )
        installed = dict(cursor.fetchall())
    for name, body in functions_as_written().items():
        if clock_may_move and name == CLOCK:
            continue
        if name not in installed:
            yield Difference(of=name, says="the function is missing")
        elif installed[name] != body:
            yield Difference(of=name, says="the function is not the one that the migrations made")


GUARDS: Final = (
    Check(
        id="I12",
        sentence="Events and decisions are never changed and never removed.",
        find=rows_of(UNGUARDED_TABLES),
    ),
)
WAYS_AROUND: Final = (
    Check(
        id="I12",
        sentence="Nobody but the owner of the tables could get around what refuses a change.",
        find=rows_of(WAYS_AROUND_THE_GUARD),
    ),
)
PARENTS: Final = (
    Check(
        id="I19",
        sentence="Every row belongs to the workspace of its parent.",
        find=unlinked,
    ),
)


def functions_checked(*, clock_may_move: bool) -> Check:
    """The check of the functions; `clock_may_move` accepts a replaced clock."""
    return Check(
        id="functions",
        sentence="The ledger's functions, its clock among them, are the migrations' own.",
        find=lambda: changed_functions(clock_may_move=clock_may_move),
    )
