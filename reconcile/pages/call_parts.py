"""The parts of the call page that say what is known: arguments, attempts, answers, history, notes.

Each part shows the newest and has an address for what came before. None of them grows with the
call: their rows are counted, and long texts are cut by what they would weigh on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from effects import registry
from effects.core.identity import marker
from effects.core.vocabulary import EventKind
from effects.trace_links import trace_link
from ledger import excerpts
from ledger.turn_parts.calls import traces_of
from reconcile.audit import chain, submissions
from reconcile.calls import bodies
from reconcile.calls.names import names_of
from reconcile.history import Line, Names, drawing, line_of
from reconcile.notes.markdown import rendered
from reconcile.notes.mentions import people_here
from reconcile.pages.review import number, told_shown
from reconcile.queries import Call, as_evidence
from reconcile.reading import ArgumentRow, ArgumentRows, argument_rows
from reconcile.situation import Evidence

if TYPE_CHECKING:
    from effects.access import DeskRequest
    from effects.models import Tool
    from ledger.models import Event

ATTEMPTS_SHOWN: Final = 20
EVIDENCE_SHOWN: Final = 10
LINES_SHOWN: Final = 30
NOTES_SHOWN: Final = 20
NOTES_BYTES_MAX: Final = 60_000
"""After so much markup the older notes are left for the next page; the newest is always there."""
DECISIONS_SHOWN: Final = 20


# What the agent asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One argument. `means` is what its tool says about it: money, where it is an amount."""

    row: ArgumentRow
    means: str = ""


def asked_part(seen: Call) -> dict[str, Any]:
    """The arguments as rows and as received, what identifies the call, and what the agent hears."""
    preview = bodies.arguments_preview(seen.claim)
    rows = argument_rows(preview.whole)
    keyed = seen.situation.keyed
    return {
        "arguments": None if rows is None else _with_meaning(seen, rows),
        "arguments_more": rows is not None and rows.more,
        "received": preview,
        "references": references(seen.tool, rows),
        "arguments_digest": bytes(seen.claim.arguments_digest),
        "forwarded_key": seen.claim.key_sent(seen.claim.generation) if keyed else "",
        "marker": marker(seen.claim.pk, seen.claim.generation),
        "marker_reached": [attempt.marker_sent for attempt in seen.attempts][:1],
        "told": told_shown(seen.told.for_model),
    }


def _with_meaning(seen: Call, rows: ArgumentRows) -> list[Asked]:
    amount_at = seen.tool.amount_field
    money = seen.money
    return [
        Asked(row=row, means=f"{money.figure} {money.currency}")
        if money is not None and amount_at and _dotted(row.path) == amount_at
        else Asked(row=row)
        for row in rows.rows
    ]


def references(tool: Tool, rows: ArgumentRows | None) -> list[tuple[str, str]]:
    """What the tool's own summary names beside money and customer: an order, an invoice."""
    named = dict.fromkeys(registry.field_paths(tool.summary))
    kept = {_dotted(row.path): row.text for row in rows.rows} if rows is not None else {}
    apart = {"amount", "customer", tool.amount_field, tool.customer_field, tool.currency_field}
    return [(path, kept[path]) for path in named if path in kept and path not in apart]


def _dotted(path: str) -> str:
    """The path of a row (`items[0].sku`) as the registry writes it: `items.0.sku`."""
    return re.sub(r"\[(\d+)\]", r".\1", path)


def trace_of(request: DeskRequest, seen: Call) -> str:
    """The call in the workspace's trace viewer; empty where nothing leads there."""
    claim = seen.claim
    link = partial(
        trace_link,
        request.workspace,
        conversation=claim.conversation or "",
        turn=claim.turn_index,
        call_id=claim.call_id or "",
    )
    found = (link(trace_id=trace_id) for trace_id in (*traces_of(seen.events), ""))
    return next((address for address in found if address), "")


# Attempts


def attempts_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The newest attempts, or those before `?before=`."""
    newest = seen.claim.fence
    last = min(number(request.GET.get("before"), default=newest + 1) - 1, newest)
    first = max(1, last - ATTEMPTS_SHOWN + 1)
    if last == newest:
        rows = list(seen.attempts[:ATTEMPTS_SHOWN])
    else:
        rows = excerpts.attempts(seen.claim, first=first, last=last)[::-1]
    return {
        "attempts": rows,
        "older_attempts": first if first > 1 else None,
        "attempts_are_older": last < newest,
    }


# Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceCard:
    """One answer with its details. `raw` is the beginning of the provider's own bytes."""

    event: Event
    seen: Evidence
    data: dict[str, Any]
    differences: tuple[dict[str, Any], ...]
    raw: bodies.Preview | None


def evidence_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The newest answers, or those before `?evidence_before=`."""
    before = number(request.GET.get("evidence_before"), default=0)
    if before:
        kinds = [EventKind.SIGHTING]
        found = excerpts.newest(seen.claim, kinds, limit=EVIDENCE_SHOWN + 1, before=before)
    else:
        found = list(seen.sightings[: EVIDENCE_SHOWN + 1])
    shown = found[:EVIDENCE_SHOWN]
    return {
        "cards": cards_of(seen, shown),
        "evidence_count": seen.extract.sighting_count,
        "evidence_hidden": 0 if before else seen.extract.sighting_count - len(shown),
        "evidence_older": shown[-1].seq if len(found) > len(shown) else None,
        "evidence_is_older": bool(before),
    }


def cards_of(seen: Call, events: list[Event]) -> list[EvidenceCard]:
    """These answers with the beginnings of their bodies."""
    previews = bodies.raw_previews(seen.claim, [event.seq for event in events])
    return [
        EvidenceCard(
            event=event,
            seen=as_evidence(event, reopened=seen.extract.reopened),
            data=event.data or {},
            differences=tuple(_differences(event.data or {})),
            raw=previews.get(event.seq),
        )
        for event in events
    ]


def _differences(data: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Requested beside found, field by field; a field that only one side names still shows."""
    requested, found = _texts(data.get("requested")), _texts(data.get("found"))
    for name in dict.fromkeys((*requested, *found)):
        asked, seen = requested.get(name), found.get(name)
        yield {
            "name": name,
            "requested": asked,
            "found": seen,
            "comparable": asked is not None and seen is not None,
            "same": asked == seen,
        }


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(name): str(text) for name, text in value.items()}


# History, notes, decisions


def history_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The newest events, or those before `?history_before=`, and everything that people did."""
    before = number(request.GET.get("history_before"), default=seen.claim.version + 1)
    if before > seen.claim.version:
        events = list(seen.events[-LINES_SHOWN:])
    else:
        events = excerpts.stretch(seen.claim, before=before, limit=LINES_SHOWN)
    names = names_of(events, seen.decisions)
    lines: list[Line] = [line_of(event, names) for event in events]
    return {
        "lines": lines,
        "lines_before": lines[0].number - 1 if lines else 0,
        "lines_are_older": before <= seen.claim.version,
        "drawing": drawing(seen.situation),
        "chain_check": chain.last_check(seen.claim.workspace_id) if seen.decisions else None,
        "refused_forms": submissions.refused(seen) if seen.beside.submissions else [],
        **decisions_part(seen, limit=DECISIONS_SHOWN),
    }


def decisions_part(seen: Call, *, limit: int) -> dict[str, Any]:
    """The newest decisions with what became of them, newest first."""
    made = seen.decisions[::-1]
    return {
        "decision_rows": [
            {"decision": one, "fate": seen.fates.get(one.pk, "")} for one in made[:limit]
        ],
        "decisions_hidden": len(made) > limit,
    }


def notes_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The newest notes, or those before `?notes_before=`, oldest first."""
    before = number(request.GET.get("notes_before"), default=0)
    if before:
        kinds = [EventKind.NOTED]
        newest = excerpts.newest(seen.claim, kinds, limit=NOTES_SHOWN + 1, before=before)
    else:
        newest = list(seen.notes[::-1][: NOTES_SHOWN + 1])
    names = names_of(newest, ())
    people = people_here(seen.claim.workspace_id) if newest else {}
    shown: list[dict[str, Any]] = []
    left = NOTES_BYTES_MAX
    for event in newest[:NOTES_SHOWN]:
        note = note_of(event, names, people)
        left -= len(note["html"])
        if shown and left < 0:
            break
        shown.append(note)
    return {
        "notes": shown[::-1],
        "notes_older": shown[-1]["number"] if len(shown) < len(newest) else None,
        "notes_are_older": bool(before),
        "note_count": seen.extract.note_count,
    }


def note_of(event: Event, names: Names, people: Mapping[str, str]) -> dict[str, Any]:
    """One note as it is read."""
    data = event.data or {}
    return {
        "number": event.seq,
        "at": event.at,
        "html": rendered(str(data.get("text", "")), people),
        "by": names.people.get(data.get("user_id") or 0, "somebody"),
    }
