"""The audit log: who did what, with filters, as a page and as files."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from effects import audit, exporting
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.exporting import Column, Kind
from effects.pages.settings import ShownTimes, shown_times
from ledger import queries
from reconcile.audit import chain, log
from reconcile.audit.log import MACHINE, RULES, TEXT_CHARACTERS_MAX, Asked, Entry
from reconcile.audit.log_sources import Family

_NUMBER_DIGITS_MAX: Final = 9
_NAMES: Final = ("family", "who", "text", "from", "to")


@require_safe
@membership_required
def audit_log(request: DeskRequest) -> HttpResponse:
    """The log, newest first; `?family=&who=&text=&from=&to=` narrow it, `?after=` goes on."""
    require(request, Ability.SEE_AUDIT)
    asked = _asked(request)
    page = log.log_page(request.workspace.pk, asked)
    context = {
        "now": queries.clock(),
        "rows": [{"entry": entry, "address": _address(entry)} for entry in page.entries],
        "asked": asked,
        "families": [{"word": one, "words": one.label} for one in Family],
        "actors": log.actors(request.workspace.pk),
        "zone": shown_times(request).exact_zone,
        "older": asked.address(after=page.next_place) if page.next_place else "",
        "newer": asked.address() if asked.after else "",
        "csv": reverse("audit-log-csv") + asked.address(),
        "json": reverse("audit-log-json") + asked.address(),
        "may_export": can(request.role, Ability.EXPORT),
        "needs_export": needs(Ability.EXPORT),
        "chain_check": chain.last_check(request.workspace.pk),
        "may_verify": can(request.role, Ability.VERIFY_CHAIN),
        "rows_max": f"{exporting.ROWS_MAX:,}",
        "text_max": TEXT_CHARACTERS_MAX,
    }
    return render(request, "reconcile/audit_log.html", context)


@require_safe
@membership_required
def audit_log_csv(request: DeskRequest) -> HttpResponseBase:
    """The log as asked, as a CSV file."""
    asked = _exported(request)
    rows = log.every_entry(request.workspace.pk, asked)
    return exporting.csv_response("audit-log.csv", COLUMNS, rows, times=shown_times(request))


@require_safe
@membership_required
def audit_log_json(request: DeskRequest) -> HttpResponseBase:
    """The log as asked, as lines of JSON."""
    asked = _exported(request)
    rows = log.every_entry(request.workspace.pk, asked)
    return exporting.json_lines_response("audit-log.jsonl", COLUMNS, rows)


def _exported(request: DeskRequest) -> Asked:
    """What is asked for, once it is kept that somebody takes it out of the product."""
    require(request, Ability.SEE_AUDIT)
    require(request, Ability.EXPORT)
    asked = _asked(request)
    audit.keep(
        request.workspace.pk,
        "audit_log.exported",
        user_id=request.user.pk,
        target="the audit log",
        address=reverse("audit-log") + asked.address(),
        after=dict(asked.said),
    )
    return asked


def _changes(entry: Entry) -> str:
    return "; ".join(
        f"{one.field or 'value'}: {'none' if one.after is None else one.after}"
        + ("" if one.before is None else f", was {one.before}")
        for one in entry.differences
    )


COLUMNS: Final[tuple[Column[Entry], ...]] = (
    Column(name="at", title="When", kind=Kind.TIME),
    Column(name="who", title="Who"),
    Column(name="act", title="Act"),
    Column(name="words", title="What"),
    Column(name="target", title="To what"),
    Column(name="changes", title="Change", read=_changes),
    Column(name="reason", title="Reason"),
)


def _address(entry: Entry) -> str:
    """Where the target is seen, or nothing: a page of this installation only."""
    if not entry.page:
        return entry.ref if entry.ref.startswith("/") and not entry.ref.startswith("//") else ""
    try:
        return reverse(entry.page, args=[entry.ref] if entry.ref else [])
    except NoReverseMatch:
        pass
    try:  # A list, which shows all of its rows at one address.
        return reverse(entry.page)
    except NoReverseMatch:
        return ""


def _asked(request: DeskRequest) -> Asked:
    """The question in the address. What cannot be understood filters nothing."""
    said = {
        name: request.GET.get(name, "").replace("\x00", "").strip()[:TEXT_CHARACTERS_MAX]
        for name in _NAMES
    }
    times = shown_times(request)
    since, last = _day(said["from"], times), _day(said["to"], times, plus=1)
    who = said["who"]
    known = who in {RULES, MACHINE} or (
        who.isascii() and who.isdigit() and len(who) <= _NUMBER_DIGITS_MAX
    )
    found: dict[str, Any] = {
        "family": Family(said["family"]) if said["family"] in list(Family) else None,
        "who": who if known else "",
        "text": said["text"],
        "since": since,
        "until": last,
    }
    understood = {
        "family": str(found["family"] or ""),
        "who": found["who"],
        "text": said["text"],
        "from": said["from"] if since else "",
        "to": said["to"] if last else "",
    }
    return Asked(**found, said=understood, after=log.place_of(request.GET.get("after", "")))


def _day(written: str, times: ShownTimes, *, plus: int = 0) -> datetime | None:
    """The begin of a day in the person's zone, `plus` days on; None for what is no day."""
    try:
        day = date.fromisoformat(written) + timedelta(days=plus)
        begin = datetime.combine(day, time.min, tzinfo=ZoneInfo(times.exact_zone))
        begin.astimezone(ZoneInfo("UTC"))
    except (ValueError, OverflowError):
        return None
    return begin
