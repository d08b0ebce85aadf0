"""The names of what a person may do about a call, in the order in which they are shown."""

from __future__ import annotations

from enum import StrEnum

from effects.core.vocabulary import Verdict


class ActionName(StrEnum):
    """The actions in the order in which they are shown."""

    ASK = "ask"
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    RELEASE_SAME = "release_same"
    RELEASE_NEW = "release_new"
    LOST = "lost"
    CLOSE = "close"
    SETTLE = "settle"
    REOPEN = "reopen"
    ALLOW = "allow"
    SNOOZE = "snooze"
    SECOND_PERSON = "second_person"

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that the ledger records for it; None for an act that decides nothing."""
        return _VERDICTS.get(self)


_LABELS = {
    ActionName.ASK: "Ask the provider now",
    ActionName.HAPPENED: "It happened",
    ActionName.NOT_HAPPENED: "It did not happen",
    ActionName.RELEASE_SAME: "Release with the same key",
    ActionName.RELEASE_NEW: "Release with a new key",
    ActionName.LOST: "Declare the worker lost",
    ActionName.CLOSE: "Stop: do not retry",
    ActionName.SETTLE: "Settle the conflict",
    ActionName.REOPEN: "Reopen",
    ActionName.ALLOW: "Allow a held request",
    ActionName.SNOOZE: "Snooze",
    ActionName.SECOND_PERSON: "Ask a second person",
}
_VERDICTS = {
    ActionName.HAPPENED: Verdict.HAPPENED,
    ActionName.NOT_HAPPENED: Verdict.NOT_HAPPENED,
    ActionName.RELEASE_SAME: Verdict.RELEASE_SAME,
    ActionName.RELEASE_NEW: Verdict.RELEASE_NEW,
    ActionName.LOST: Verdict.LOST,
    ActionName.CLOSE: Verdict.CLOSE,
    ActionName.SETTLE: Verdict.SETTLE,
    ActionName.REOPEN: Verdict.REOPEN,
    ActionName.ALLOW: Verdict.ALLOW,
}
