"""What the page about duplicates shows: the list, its filters, and one group side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet

from effects.core.diagnosis import Execution, Layer, Source
from effects.core.diagnosis.decide import Diagnosis
from reconcile.duplicates import words
from reconcile.duplicates.grouping import Weighed, is_certain
from reconcile.models import DuplicateGroup

ROWS_MAX: Final = 50
EXPORT_MAX: Final = 5_000
SHOWN_SIDE_BY_SIDE_MAX: Final = 12
TEXT_CHARACTERS_MAX: Final = 255
NUMBER_DIGITS_MAX: Final = 18

_State = DuplicateGroup.State
TABS: Final[Mapping[str, tuple[str, Q]]] = {
    "new": ("At stake", Q(state=_State.NEW, possible__gt=1)),
    "stopped": ("Stopped in time", Q(state=_State.NEW, possible__lte=1)),
    "confirmed": ("Confirmed", Q(state=_State.CONFIRMED)),
    "refund": ("Refund requested", Q(state=_State.REFUND_REQUESTED)),
    "dismissed": ("Not a duplicate", Q(state=_State.NOT_A_DUPLICATE)),
    "all": ("All", Q()),
}
"""Which groups a tab shows, by the word in its address."""
USUAL: Final = "new"
RULES: Final = dict(DuplicateGroup.Rule.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for. Anything in it that is not understood is left out."""

    show: str = USUAL
    rule: str = ""
    layer: str = ""
    tool: str = ""
    before: int | None = None

    def address(self, **changes: Any) -> str:
        """The same with changes, on its first page unless they name another."""
        said = replace(self, **({"before": None} | changes))
        query = {
            "show": said.show if said.show != USUAL else "",
            "rule": said.rule,
            "layer": said.layer,
            "tool": said.tool,
            "before": said.before or "",
        }
        return f"?{urlencode({name: value for name, value in query.items() if value})}"


def read_filters(query: Mapping[str, str]) -> Filters:
    show, rule, layer = query.get("show", ""), query.get("rule", ""), query.get("layer", "")
    before = query.get("before", "")
    number = before.isascii() and before.isdigit() and len(before) <= NUMBER_DIGITS_MAX
    return Filters(
        show=show if show in TABS else USUAL,
        rule=rule if rule in RULES else "",
        layer=layer if layer in set(Layer) else "",
        tool=query.get("tool", "").replace("\x00", "")[:TEXT_CHARACTERS_MAX],
        before=int(before) if number else None,
    )


def of_workspace(workspace_id: int) -> QuerySet[DuplicateGroup]:
    return DuplicateGroup.objects.filter(workspace_id=workspace_id).select_related("owner")


def chosen(workspace_id: int, filters: Filters) -> QuerySet[DuplicateGroup]:
    """Every group that the address asks for, newest first."""
    found = of_workspace(workspace_id).filter(TABS[filters.show][1])
    if filters.rule:
        found = found.filter(rule=filters.rule)
    if filters.layer:
        found = found.filter(layers__contains=[filters.layer])
    if filters.tool:
        found = found.filter(tool=filters.tool)
    if filters.before is not None:
        found = found.filter(pk__lt=filters.before)
    return found.order_by("-pk")


def rows(workspace_id: int, filters: Filters) -> tuple[list[DuplicateGroup], str]:
    """One page, and the address of the older ones."""
    listed = list(chosen(workspace_id, filters)[: ROWS_MAX + 1])
    shown = listed[:ROWS_MAX]
    return shown, filters.address(before=shown[-1].pk) if len(listed) > ROWS_MAX else ""


def counts(workspace_id: int, filters: Filters) -> Mapping[str, int]:
    """How many groups each tab has under the other filters."""
    found = chosen(workspace_id, replace(filters, show="all", before=None)).order_by()
    return found.aggregate(**{word: Count("pk", filter=q) for word, (_, q) in TABS.items()})


def layer_words(group: DuplicateGroup) -> str:
    """The layers of a group's pairs, in words."""
    return ", ".join(words.LAYERS[Layer(one)] for one in group.layers) or "No pair to compare"


def confidence(group: DuplicateGroup) -> str:
    if not group.layers or str(Layer.UNDETERMINED) in group.layers:
        return "Open"
    return "Shown by evidence" if group.certain else "Rests on the time between"


# Side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One pair in words."""

    number: int
    layer: str
    remedy: str
    gap: str
    certain: bool
    decided_by: tuple[str, ...]
    against: tuple[str, ...]
    candidates: tuple[str, ...]
    missing: tuple[str, ...]
    contradicts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One fact of all executions. `differs`: they do not all say the same."""

    name: str
    values: tuple[str, ...]
    differs: bool


_FACTS: Final = (
    ("Seen by", "source"),
    ("Conversation", "conversation"),
    ("Turn", "turn_index"),
    ("Place in the response", "position"),
    ("Tool-call id", "call_id"),
    ("Response id", "response_id"),
    ("Agent", "agent"),
    ("Worker", "worker"),
    ("Delivery count", "delivery_count"),
    ("Retry count", "retry_count"),
    ("Checkpoint", "checkpoint"),
    ("Request id", "request_id"),
    ("Client request id", "client_request_id"),
    ("Key on the wire", "key"),
    ("Body digest", "body"),
    ("Requests sent", "requests_sent"),
    ("The user spoke before", "user_spoke"),
)


def side_by_side(seen: Iterable[Execution]) -> tuple[list[Execution], list[Line]]:
    """The executions that fit on the page, and their facts; facts that none has are left out."""
    shown = list(seen)[:SHOWN_SIDE_BY_SIDE_MAX]
    lines = []
    for name, member in _FACTS:
        values = tuple(_said(one, member) for one in shown)
        known = {value for value in values if value}
        if known:
            lines.append(Line(name=name, values=values, differs=len(known) > 1))
    return shown, lines


def _said(one: Execution, member: str) -> str:
    value = getattr(one, member)
    if member == "key" and one.key_seen and value is None:
        return "none was sent"
    if isinstance(value, Source):
        return "the agent" if value is Source.APP else "the provider"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def compared(weighed: Weighed) -> list[Compared]:
    return [_compared(number, one) for number, one in enumerate(weighed.diagnosis.pairs, start=1)]


def _compared(number: int, pair: Diagnosis) -> Compared:
    undetermined = pair.layer is Layer.UNDETERMINED
    return Compared(
        number=number,
        layer=words.LAYERS[pair.layer],
        remedy=words.REMEDIES[pair.layer],
        gap=gap_words(pair.gap_seconds),
        certain=is_certain(pair),
        decided_by=tuple(map(words.clue, pair.decided_by)),
        against=tuple(map(words.clue, pair.against)),
        candidates=tuple(words.LAYERS[one] for one in pair.candidates),
        missing=tuple(map(words.lack, pair.missing)),
        contradicts=undetermined and not pair.candidates,
    )


MINUTE: Final = 60
HOUR: Final = 3600


def gap_words(seconds: float) -> str:
    """A gap as people say it, with the digits that tell layers apart."""
    if seconds < MINUTE:
        return f"{seconds:.3g} s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min {int(seconds % MINUTE)} s"
    return f"{int(seconds // HOUR)} h {int(seconds % HOUR // MINUTE)} min"
