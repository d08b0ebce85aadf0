"""What the pages about runs show: the list with its counts, and one run with its calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.http import QueryDict

from effects.core.vocabulary import SightingWord
from reconcile.judge import Meaning
from reconcile.models import Backlog, Card, Run, RunItem

RUNS_PER_PAGE: Final = 50
ITEMS_PER_PAGE: Final = 100
BACKLOG_SHOWN: Final = timedelta(days=7)
NUMBER_DIGITS_MAX: Final = 18
BAR_UNITS: Final = 1000.0
"""The width of the progress bar in its own units."""
SPARK_HEIGHT: Final = 96.0

_Result = RunItem.Result
_Trigger = Run.Trigger
TABS: Final = {
    "all": ("All", Q()),
    "schedule": ("Schedule", Q(trigger=_Trigger.SCHEDULE)),
    "deadline": ("Before deadline", Q(trigger=_Trigger.BEFORE_DEADLINE)),
    "person": ("By a person", Q(trigger=_Trigger.PERSON)),
    "bulk": ("Bulk", Q(trigger=_Trigger.BULK)),
    "webhook": ("Webhook", Q(trigger=_Trigger.WEBHOOK)),
    "dry": ("Dry runs", Q(dry=True)),
}
"""Which runs a tab shows, by the word in its address."""
ANSWERS: Final = {
    "all": ("All", Q()),
    "settled": ("Settled", Q(result__in=[_Result.HAPPENED, _Result.NOT_HAPPENED])),
    "left": ("Left to a person", Q(result=_Result.LEFT)),
    "failed": ("Failed", Q(result__in=[_Result.ERROR, _Result.LIMITED, _Result.SKIPPED])),
    "waiting": ("Waiting", Q(result=_Result.WAITING)),
}
_WORDS: Final = {
    SightingWord.FOUND: "found, matches",
    SightingWord.FOUND_MANY: "found more than once",
    SightingWord.FOUND_DIFFERENT: "found, differs",
    SightingWord.PENDING: "pending",
    SightingWord.LOOKUP_FAILED: "look-up error",
    SightingWord.MISCONFIGURED: "look-up set up wrongly",
    SightingWord.RATE_LIMITED: "rate-limited",
    SightingWord.UNMAPPED: "answer not understood",
}
_ABSENT: Final = {
    Meaning.DID_NOT_HAPPEN: "absent, proven",
    Meaning.NOT_YET: "absent, too early",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many calls of a run came under each result."""

    by: Mapping[str, int] = field(default_factory=dict)

    def of(self, *results: str) -> int:
        return sum(self.by.get(result, 0) for result in results)

    @property
    def total(self) -> int:
        return sum(self.by.values())

    @property
    def checked(self) -> int:
        return self.total - self.of(_Result.WAITING, _Result.SKIPPED)

    @property
    def happened(self) -> int:
        return self.of(_Result.HAPPENED)

    @property
    def not_happened(self) -> int:
        return self.of(_Result.NOT_HAPPENED)

    @property
    def left(self) -> int:
        return self.of(_Result.LEFT)

    @property
    def errors(self) -> int:
        return self.of(_Result.ERROR)

    @property
    def limited(self) -> int:
        return self.of(_Result.LIMITED)

    @property
    def skipped(self) -> int:
        return self.of(_Result.SKIPPED)

    @property
    def waiting(self) -> int:
        return self.of(_Result.WAITING)

    @property
    def failed(self) -> int:
        """What "Re-run failed" would ask about."""
        return self.of(_Result.ERROR, _Result.LIMITED, _Result.SKIPPED, _Result.WAITING)

    @property
    def bars(self) -> list[Bar]:
        """The parts of the progress bar, from the left."""
        parts = (
            ("p1", self.happened),
            ("p2", self.not_happened),
            ("p3", self.left),
            ("p4", self.errors + self.limited + self.skipped),
        )
        bars, x = [], 0.0
        for name, number in parts:
            width = BAR_UNITS * number / self.total if self.total else 0.0
            if width:
                bars.append(Bar(name=name, x=f"{x:.1f}", width=f"{width:.1f}"))
            x += width
        return bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    name: str
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address of a list asks for. `usual` is the tab that it need not name; `before`
    continues the list below a row's number."""

    show: str
    usual: str
    connection: int | None = None
    before: int | None = None

    def address(self, **changes: object) -> str:
        """The address of the same list with other filters, from its beginning."""
        said = replace(self, **{"before": None, **changes})  # type: ignore[arg-type]  # its fields
        words = {
            "show": said.show if said.show != said.usual else None,
            "connection": said.connection,
            "before": said.before,
        }
        return "?" + urlencode({name: word for name, word in words.items() if word})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run: Run
    counts: Counts
    took: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    rows: list[RunRow]
    older: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One call of a run. `words` is its answer class."""

    item: RunItem
    summary: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """The backlog of a week as a line in a box of 1000 by 96, and in words."""

    line: str
    area: str
    words: str
    most: int
    first_at: datetime


def number(text: str | None) -> int | None:
    """A number out of an address, or None."""
    if text and text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX:
        return int(text)
    return None


def read_filters(said: QueryDict, tabs: Collection[str], usual: str) -> Filters:
    """What an address asks for; what cannot be meant is left out."""
    show = said.get("show", "")
    return Filters(
        show=show if show in tabs else usual,
        usual=usual,
        connection=number(said.get("connection")),
        before=number(said.get("before")),
    )


def run_page(workspace_id: int, filters: Filters, now: datetime) -> RunPage:
    """The runs that the address asks for, newest first."""
    found = Run.objects.filter(TABS[filters.show][1], workspace_id=workspace_id)
    if filters.connection is not None:
        found = found.filter(connection_id=filters.connection)
    if filters.before is not None:
        found = found.filter(pk__lt=filters.before)
    found = found.select_related("connection", "started_by").order_by("-pk")
    runs = list(found[: RUNS_PER_PAGE + 1])
    shown = runs[:RUNS_PER_PAGE]
    counts = counts_of(shown)
    return RunPage(
        rows=[RunRow(run=one, counts=counts[one.pk], took=took(one, now)) for one in shown],
        older=filters.address(before=shown[-1].pk) if len(runs) > RUNS_PER_PAGE else "",
    )


def counts_of(runs: Sequence[Run]) -> Mapping[int, Counts]:
    """The counts of several runs, in one question."""
    by: dict[int, dict[str, int]] = defaultdict(dict)
    items = RunItem.objects.filter(run__in=[one.pk for one in runs])
    counted = items.values_list("run_id", "result").annotate(n=Count("pk")).order_by()
    for run_id, result, many in counted:
        by[run_id][result] = many
    return {one.pk: Counts(by=by[one.pk]) for one in runs}


def took(run: Run, now: datetime) -> timedelta | None:
    return (run.ended_at or now) - run.started_at if run.started_at else None


def item_page(run: Run, answers: str, after: int | None) -> tuple[list[ItemRow], int | None]:
    """Calls of a run in their order, and the number after which there are more, if there are."""
    found = RunItem.objects.filter(ANSWERS[answers][1], run=run)
    if after is not None:
        found = found.filter(pk__gt=after)
    items = list(found.order_by("pk")[: ITEMS_PER_PAGE + 1])
    shown = items[:ITEMS_PER_PAGE]
    cards = Card.objects.filter(workspace_id=run.workspace_id).in_bulk(
        [item.claim_id for item in shown]
    )
    rows = [
        ItemRow(
            item=item,
            summary=cards[item.claim_id].summary if item.claim_id in cards else "",
            words=answer_words(item),
        )
        for item in shown
    ]
    return rows, shown[-1].pk if len(items) > ITEMS_PER_PAGE else None


def answer_words(item: RunItem) -> str:
    """The class of an answer, as people read it; empty where nobody was asked."""
    if item.word == SightingWord.ABSENT:
        proven = item.result == _Result.NOT_HAPPENED
        meaning = Meaning.DID_NOT_HAPPEN if proven else item.meaning
        return _ABSENT.get(Meaning(meaning), "absent, proves nothing") if meaning else "absent"
    return _WORDS.get(SightingWord(item.word), "") if item.word else ""


def backlog(workspace_id: int, now: datetime) -> Spark | None:
    """How many calls were unknown in the last days, hour by hour; None before there is a line."""
    points = list(
        Backlog.objects.filter(workspace_id=workspace_id, at__gt=now - BACKLOG_SHOWN)
        .order_by("at")
        .values_list("at", "calls")
    )
    if len(points) < 2:
        return None
    first_at, last_at = points[0][0], points[-1][0]
    most = max(1, *(calls for _, calls in points))
    spots = [
        f"{BAR_UNITS * ((at - first_at) / (last_at - first_at)):.1f} "
        f"{SPARK_HEIGHT - (SPARK_HEIGHT - 2) * calls / most:.1f}"
        for at, calls in points
    ]
    peak_at, peak = max(points, key=lambda point: point[1])
    return Spark(
        line="M" + "L".join(spots),
        area="M" + "L".join(spots) + f"L{BAR_UNITS:.0f} {SPARK_HEIGHT:.0f}L0 {SPARK_HEIGHT:.0f}z",
        words=f"Unknown calls, counted every hour: {points[0][1]} at the beginning, {peak} at most "
        f"({peak_at:%d %b %H:%M} UTC), {points[-1][1]} at the last count",
        most=most,
        first_at=first_at,
    )
