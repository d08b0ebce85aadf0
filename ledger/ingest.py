"""Ingest: what ledgers kept elsewhere send is kept first, and then applied item by item.

Every item is kept before anything is done with it, so a failure loses nothing and the same item
sent again is simply tried again: only an item that was applied is a duplicate. Each item is applied
in a transaction of its own, and together with the orphans that waited for it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import InterfaceError, OperationalError, transaction

from effects.core.events import IngestAnswer, ItemAnswer, StreamCursor
from effects.core.vocabulary import ItemState
from ledger import ingest_redacting, redacting
from ledger.functions import call
from ledger.ingest_apply import apply_message
from ledger.ingest_json import digest
from ledger.ingest_parts import Parked
from ledger.ingest_reading import DOORS, Door, Item, read_item
from ledger.models import IngestItem, Stream

logger = logging.getLogger(__name__)

OPEN: Final = frozenset({ItemState.RECEIVED, ItemState.PARKED, ItemState.FAILED})
"""States in which an item may still be applied."""
DONE: Final = frozenset({ItemState.APPLIED, ItemState.RECORDED})
TRIES_MAX: Final = 20
"""How often an item is tried by itself; afterwards only its sender or a person tries it again."""
RETRY_AFTER_SECONDS: Final = 30
ORPHANS_MAX: Final = 1000
"""Most orphans of one parent that are applied with it; the others follow by themselves."""

# In the order in which one batch is applied: parents first, so that it needs no parking.
_RANK: Final = {
    "stream.opened": 0,
    "stream.recorded": 0,
    "call.announced": 1,
    "stream.closed": 1,
    "claim.made": 2,
    "attempt.started": 3,
}
_LAST: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item as the database keeps it: `word` is new, again, conflict or unreadable; `was` its
    state until this request."""

    index: int
    item: Item
    id: int
    word: str
    was: ItemState


def ingest(
    workspace_id: int,
    token_id: int | None,
    door: Door,
    raws: Sequence[bytes],
    *,
    is_cloudevent: bool = False,
) -> IngestAnswer:
    """Keeps and applies the items of one request; each gets its own answer.

    Raises Django's OperationalError where the database is lost: what was kept is tried again, and
    the same request sent again finds out.
    """
    read = [read_item(raw, door, is_cloudevent=is_cloudevent) for raw in raws]
    kept = keep(workspace_id, token_id, door, read)
    for one in sorted(kept, key=_order):
        if one.item.message is not None and one.word in {"new", "again"}:
            apply(one.id)
    return _answer(workspace_id, kept)


def keep(workspace_id: int, token_id: int | None, door: Door, items: Iterable[Item]) -> list[Kept]:
    """Keeps every item, in one transaction. Rows are taken in the order of their ids, so that two
    senders of the same items do not wait for each other in a circle."""
    numbered = sorted(
        enumerate(ingest_redacting.hidden(workspace_id, door, list(items))),
        key=lambda pair: (pair[1].item.source, pair[1].item.event_id),
    )
    with transaction.atomic():
        kept = [
            _keep(workspace_id, token_id, door, index=index, hidden=hidden)
            for index, hidden in numbered
        ]
    return sorted(kept, key=lambda one: one.index)


def _keep(
    workspace_id: int,
    token_id: int | None,
    door: Door,
    *,
    index: int,
    hidden: ingest_redacting.Kept,
) -> Kept:
    item = hidden.item
    ((item_id, word, state),) = call(
        "SELECT item, word, state FROM ledger_keep_item_v1("
        "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            workspace_id,
            token_id,
            door.name,
            item.source,
            item.event_id,
            item.type,
            item.digest,
            item.message is not None,
            item.reason,
            item.says,
            list(item.mended),
            item.raw,
            item.said_at,
        ),
    )
    if word == "new" and hidden.exact is not None:
        IngestItem.objects.filter(pk=item_id).update(exact=hidden.exact)
        for name, text in hidden.sealed:
            redacting.seal(workspace_id, name, text, item_id=item_id)
    return Kept(index=index, item=item, id=item_id, word=word, was=ItemState(state))


def keep_unread(workspace_id: int, token_id: int | None, door: Door, raw: bytes, says: str) -> int:
    """Keeps a whole body that could not be taken apart; answers the number of its item."""
    item = Item(raw=raw, digest=digest("raw", raw.hex()), reason="body_unreadable", says=says)
    (kept,) = keep(workspace_id, token_id, door, [item])
    return kept.id


def _order(kept: Kept) -> tuple[int, bool, str, str, str]:
    item = kept.item
    moment = item.said_at.timestamp() if item.said_at else 0.0
    return (
        _RANK.get(item.type or "", _LAST),
        item.said_at is None,
        f"{moment:020.6f}",
        item.source,
        item.event_id,
    )


# Applying


def apply(item_id: int) -> ItemState:
    """Applies one kept item, and what waited for it, in one transaction. An item that is applied
    already stays as it is. A failure is written on the item, and the item is tried again."""
    for left in reversed(range(3)):
        try:
            with transaction.atomic():
                return _apply_tree(item_id)
        except (OperationalError, InterfaceError) as error:
            # A lost race is tried again; a lost database is the sender's to try again.
            if not _lost_race(error) or not left:
                raise
        except Exception as error:  # noqa: BLE001 - whatever failed, the item is kept and says so
            return _failed(item_id, error)
    raise AssertionError("the last try either answers or raises")


def _lost_race(error: Exception) -> bool:
    state = getattr(error.__cause__ or error, "sqlstate", None)
    return state in {"40001", "40P01"}


def _failed(item_id: int, error: Exception) -> ItemState:
    logger.error("item %s could not be applied", item_id, exc_info=error)
    says = f"Applying it failed ({type(error).__name__}). It is kept and is tried again."
    _became(item_id, ItemState.FAILED, reason="apply_failed", says=says)
    return ItemState.FAILED


def _apply_tree(item_id: int) -> ItemState:
    """The item, then breadth first the orphans of every name that became known."""
    state, refs = _apply_one(item_id)
    while refs:
        waiting = IngestItem.objects.filter(waits_for=refs.pop(0), state=ItemState.PARKED)
        ids = waiting.order_by("said_at", "source", "event_id").values_list("pk", flat=True)
        for orphan_id in list(ids[:ORPHANS_MAX]):
            refs += _apply_orphan(orphan_id)
    return state


def _apply_orphan(item_id: int) -> list[bytes]:
    """An orphan that fails must not take its parent with it."""
    try:
        with transaction.atomic():
            _, refs = _apply_one(item_id)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001 - as in `apply`
        _failed(item_id, error)
        return []
    return refs


def _apply_one(item_id: int) -> tuple[ItemState, list[bytes]]:
    """What the item became, and the references that are known because of it."""
    row = IngestItem.objects.select_for_update().get(pk=item_id)
    if row.state not in OPEN:
        return ItemState(row.state), []
    item = read_item(bytes(row.raw or b""), DOORS[row.door], is_cloudevent=False)
    if item.message is None:  # Readable when it was kept; a newer version of ours reads otherwise.
        _became(item_id, ItemState.FAILED, reason=item.reason, says=item.says)
        return ItemState.FAILED, []
    outcome = apply_message(row.workspace_id, row.pk, item, row.exact)
    if isinstance(outcome, Parked):
        _became(
            item_id,
            ItemState.PARKED,
            reason="waits",
            says=f"It waits for {outcome.words}.",
            waits_for=outcome.ref,
            waits_words=outcome.words,
        )
        return ItemState.PARKED, []
    _became(
        item_id,
        outcome.state,
        reason=outcome.reason,
        says=outcome.says,
        claim_id=outcome.claim_id,
        stream_id=outcome.stream_id,
    )
    return outcome.state, list(outcome.refs)


def _became(item_id: int, state: ItemState, **what: Any) -> None:
    call(
        "SELECT ledger_item_became_v1(%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            item_id,
            str(state),
            what.get("reason"),
            what.get("says"),
            what.get("waits_for"),
            what.get("waits_words"),
            what.get("claim_id"),
            what.get("stream_id"),
        ),
    )


def retry(limit: int) -> int:
    """Tries again what was kept and not applied; answers how many were tried.

    For a worker's tick: items that failed, and those whose request died between keeping and
    applying.
    """
    rows = call(
        "SELECT id FROM ledger_ingestitem WHERE state IN ('received', 'failed') AND tries < %s"
        " AND last_seen_at + make_interval(secs => %s * power(2, least(tries, 10)))"
        " < ledger_clock() ORDER BY id LIMIT %s",
        (TRIES_MAX, RETRY_AFTER_SECONDS, limit),
    )
    for (item_id,) in rows:
        apply(item_id)
    return len(rows)


def apply_again(workspace_id: int, item_id: int) -> ItemState | None:
    """A person wants the item tried again. None: there is no such item in the workspace."""
    found = IngestItem.objects.filter(workspace_id=workspace_id, pk=item_id).exists()
    return apply(item_id) if found else None


# The answer


def _answer(workspace_id: int, kept: Sequence[Kept]) -> IngestAnswer:
    """What each item is now: its row is read again, because a later item may have applied it."""
    rows = {
        row.pk: row
        for row in IngestItem.objects.filter(pk__in=[one.id for one in kept]).defer("raw")
    }
    seen: set[int] = set()
    answers = []
    for one in kept:
        # The second copy in one request is a duplicate of the first.
        repeated = one.id in seen or (one.word == "again" and one.was in DONE)
        answers.append(_item_answer(one, rows[one.id], repeated=repeated))
        seen.add(one.id)
    stream_ids = {row.stream_id for row in rows.values() if row.stream_id is not None}
    streams = Stream.objects.filter(workspace_id=workspace_id, pk__in=stream_ids)
    return IngestAnswer(
        items=tuple(answers),
        counts=dict(Counter(answer.word for answer in answers)),
        streams=tuple(
            StreamCursor(source=stream.source, stream=stream.name, cursor=stream.cursor)
            for stream in streams.order_by("source", "name")
        ),
    )


def _item_answer(kept: Kept, row: IngestItem, *, repeated: bool) -> ItemAnswer:
    state = ItemState(row.state)
    return ItemAnswer(
        index=kept.index,
        source=kept.item.source,
        id=kept.item.event_id,
        word="duplicate" if repeated and state in DONE else state,
        state=state,
        item=row.pk,
        reason=row.reason,
        says=row.says,
        at=kept.item.at,
        mended=tuple(row.mended),
        waits_for=row.waits_words,
        claim_id=str(row.claim_id) if row.claim_id else None,
    )
