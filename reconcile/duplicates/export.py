"""The list of duplicates as CSV (RFC 4180, UTF-8 with a mark that spreadsheets recognise).

A text that a spreadsheet would evaluate is written with an apostrophe in front of it, because tool
names and customers are written by models; numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final

from reconcile.duplicates import listing
from reconcile.models import DuplicateGroup

MARK: Final = "\N{BOM}"
EVALUATED: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a cell begins with that spreadsheets evaluate (OWASP, CSV injection)."""
COLUMNS: Final = (
    *("group", "rule", "tool", "calls", "provider_objects", "amount_at_stake", "currency"),
    *("customer", "layers", "confidence", "operations", "attempts", "requests", "stopped"),
    *("found_at", "state", "owner"),
)


def neutral(text: str) -> str:
    """The text as a cell that stays a text."""
    return f"'{text}" if text.lstrip(" ").startswith(EVALUATED) else text


def lines(groups: Iterable[DuplicateGroup]) -> Iterator[str]:
    """The file, line by line."""
    yield MARK
    yield _line(COLUMNS)
    for group in groups:
        stake = group.at_stake
        yield _line(
            (
                group.pk,
                neutral(group.get_rule_display()),
                neutral(group.tool),
                neutral(" ".join(map(str, group.claim_ids))),
                neutral(" ".join(group.objects_seen)),
                "" if stake is None else f"{stake.amount:f}",
                group.currency,
                neutral(group.customer),
                neutral(listing.layer_words(group)),
                listing.confidence(group),
                *(group.operations, group.app_attempts, group.provider_requests, group.stopped),
                group.found_at.isoformat(),
                group.get_state_display(),
                neutral(group.owner.get_username() if group.owner else ""),
            )
        )


def _line(cells: Iterable[object]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()
