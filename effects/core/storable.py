"""What the record can store of what an agent says: strict for a claim, grateful for a report.

A claim request is judged before anything has run, so a bad one is refused and costs one correction.
A report speaks of something that has already happened: as much of it as can be kept is kept.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from effects.core.messages import RESULT_BYTES_MAX, ClaimRequest, Complete, Message

__all__ = ["NUL_SHOWN", "RESULT_DEPTH_MAX", "fit_report", "storable_result", "unstorable_field"]

RESULT_DEPTH_MAX: Final = 64
"""Deepest object or array in a result: what every writer and reader on its way can follow."""

NUL_SHOWN: Final = "\N{SYMBOL FOR NULL}"
"""PostgreSQL stores no U+0000. In a report it is replaced by this character that shows it."""

Report = TypeVar("Report", bound=Message)


def unstorable_field(claim: ClaimRequest) -> str | None:
    """The field of a claim request that holds U+0000, which the ledger cannot store, or None."""
    # The identities' other fields are checked, with better words, where the identities are made;
    # the tool is looked up by its name before that.
    said = {"tool": claim.tool, "worker": claim.worker or ""}
    return next((name for name, text in said.items() if "\x00" in text), None)


def fit_report(report: Report) -> Report:
    """The report as it can be stored.

    A result that is too long, too deep or not JSON does not cost the report: the effect happened,
    and that is what counts. The result is then not stored, and the answer says so.
    """
    changes: dict[str, Any] = {
        name: text.replace("\x00", NUL_SHOWN)
        for name, text in vars(report).items()
        if isinstance(text, str) and "\x00" in text
    }
    if isinstance(report, Complete) and not storable_result(report.result):
        changes |= {"result": None, "result_stored": False}
    return report.model_copy(update=changes) if changes else report


def storable_result(result: str | None) -> bool:
    if result is None:
        return True
    # Four bytes is the most that one character needs, so most texts need no encoding to be judged.
    if len(result) * 4 > RESULT_BYTES_MAX and len(result.encode()) > RESULT_BYTES_MAX:
        return False
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return False
    brackets = result.count("[") + result.count("{")
    return brackets <= RESULT_DEPTH_MAX or not _deeper_than(value, RESULT_DEPTH_MAX)


def _deeper_than(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in value)
