"""LangGraph's checkpoint tables: which checkpoint a run began from, and what its writes prove.

The table is the runtime's own record, written whether or not anybody looked. A task's id is the
same when a node runs again from a checkpoint, so an error and a success under one id prove that it
did; a resume after an interrupt leaves its own write. Messages are never read: they are packed.

Read from the tables themselves over a connection that cannot write, or from an export of `QUERY` as
JSON lines (``psql -At -c "select row_to_json(x) from (...) x"``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
from psycopg.rows import dict_row

from effects.core.delivery import delivery_of
from reconcile.duplicates.importers.jsonlines import known, objects
from reconcile.duplicates.importers.keeping import NAME_CHARACTERS_MAX, CannotImport, Line
from reconcile.models import ImportedEvidence

CONNECT_SECONDS: Final = 10
STATEMENT_SECONDS: Final = 60
FETCHED_AT_ONCE: Final = 500
ERROR: Final = "__error__"
RESUME: Final = "__resume__"
COUNTS: Final = ("delivery_count", "sqs_receive_count", "x_delivery_count")
"""Members of an invocation's metadata under which a worker passes its queue's count on."""

QUERY: Final[LiteralString] = """
SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id,
       c.checkpoint->>'ts' AS ts, c.metadata,
       (SELECT jsonb_agg(jsonb_build_object('task_id', w.task_id, 'idx', w.idx,
                                            'channel', w.channel))
          FROM checkpoint_writes w
         WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
           AND w.checkpoint_id = c.checkpoint_id) AS writes
  FROM checkpoints c
"""
_OF_THREAD: Final[LiteralString] = " WHERE c.thread_id = %s"
_IN_ORDER: Final[LiteralString] = " ORDER BY c.thread_id, c.checkpoint_ns, c.checkpoint_id"


def read_tables(url: str, *, thread: str | None = None) -> Iterator[Line]:
    """The checkpoints of one thread, or of all. Raises `CannotImport`."""
    options = f"-c default_transaction_read_only=on -c statement_timeout={STATEMENT_SECONDS}s"
    try:
        with (
            psycopg.connect(url, connect_timeout=CONNECT_SECONDS, options=options) as connection,
            connection.cursor(name="checkpoints", row_factory=dict_row) as cursor,
        ):
            cursor.itersize = FETCHED_AT_ONCE
            query = QUERY + (_OF_THREAD if thread else "") + _IN_ORDER
            cursor.execute(query, (thread,) if thread else ())
            for row in cursor:
                yield line_of(row)
    except psycopg.Error as error:
        raise CannotImport(f"The checkpoint tables cannot be read: {_first_line(error)}") from None


def read_export(path: Path) -> Iterator[Line]:
    """The same from JSON lines. Raises `CannotImport` with the number of the line."""
    for number, row in objects(path):
        try:
            yield line_of(row)
        except CannotImport as error:
            raise CannotImport(f"Line {number}: {error}") from None


def line_of(row: Mapping[str, Any]) -> Line:
    """One checkpoint in our own words. Raises `CannotImport`."""
    thread, checkpoint = row.get("thread_id"), row.get("checkpoint_id")
    if not isinstance(thread, str) or not isinstance(checkpoint, str) or not checkpoint:
        raise CannotImport("thread_id or checkpoint_id is missing.")
    name = f"{thread}/{row.get('checkpoint_ns') or ''}/{checkpoint}"
    if len(name) > NAME_CHARACTERS_MAX:
        raise CannotImport(f"the checkpoint's name exceeds {NAME_CHARACTERS_MAX} characters.")
    metadata = row.get("metadata") if isinstance(row.get("metadata"), Mapping) else {}
    assert isinstance(metadata, Mapping)
    writes = [one for one in row.get("writes") or () if isinstance(one, Mapping)]
    count = next((metadata[word] for word in COUNTS if word in metadata), None)
    delivered = delivery_of({**metadata, "delivery_count": count})
    facts = {
        "checkpoint": checkpoint,
        "parent": row.get("parent_checkpoint_id"),
        "step": metadata.get("step"),
        "origin": metadata.get("source"),
        "rerun_after_error": _ran_again(writes) or None,
        "resumed": any(one.get("channel") == RESUME for one in writes) or None,
        "delivery_count": delivered.delivery_count,
        "worker": delivered.worker,
    }
    return Line(
        source=ImportedEvidence.Source.CHECKPOINTS,
        name=name,
        at=_moment(row.get("ts")),
        facts=known(facts),
        conversation=thread,
    )


def _ran_again(writes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one task left an error, and in another invocation what it was to write."""
    failed = {one.get("task_id") for one in writes if one.get("channel") == ERROR}
    wrote = {
        one.get("task_id")
        for one in writes
        if isinstance(one.get("idx"), int) and one["idx"] >= 0 and one.get("channel") != ERROR
    }
    return bool(failed & wrote)


def _moment(said: Any) -> datetime:
    try:
        at = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        raise CannotImport("ts names no moment.") from None
    if at.tzinfo is None:
        raise CannotImport("ts has no offset.")
    return at


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
