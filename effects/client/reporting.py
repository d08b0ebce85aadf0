"""Delivers what an attempt has to say, with patience and without ever raising into a tool."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from effects.client.asking import Patience
from effects.client.spool import Delivered, Kept, Spool, SpoolFull
from effects.client.transport import Report, Transport
from effects.core.messages import (
    ClaimAnswer,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    OfflineCall,
    Sent,
    Unknown,
)
from effects.core.problems import LedgerProblem, LedgerUnavailable, ScopeMissing, TokenRefused

__all__ = ["Reporter", "pauses_seconds"]

logger = logging.getLogger("counterfoil")


def pauses_seconds(patience: Patience, tries_max: int) -> Iterator[float]:
    """The pauses before the second and each further try, doubling up to the longest."""
    pause_seconds = patience.pause_seconds_first
    for _ in range(tries_max - 1):
        yield pause_seconds
        pause_seconds = min(pause_seconds * 2, patience.pause_seconds_max)


REPORTS: Final[Mapping[str, type[Report]]] = {
    "complete": Complete,
    "fail": Fail,
    "unknown": Unknown,
}
"""The verbs of the API for an attempt's end, and their bodies."""
OFFLINE: Final = "offline"
"""The verb for an attempt that was sent while the ledger was away; its record names the key."""


class Told(NamedTuple):
    """What became of a report: the ledger's answer, or None and whether it is kept on disk."""

    answer: ClaimAnswer | None
    kept: bool = False


class Reporter:
    """The way back from an attempt to the ledger.

    A report that cannot be delivered after `Patience.report_tries_max` tries is kept in the spool,
    where there is one, and delivered when the ledger has answered anything again. Hints are not
    kept: delivered late they would date the send wrongly.
    """

    def __init__(
        self,
        transport: Transport,
        patience: Patience,
        sleep: Callable[[float], None] = time.sleep,
        spool: Spool | None = None,
    ) -> None:
        self._transport = transport
        self._patience = patience
        self._sleep = sleep
        self._spool = spool
        self._lock = threading.Lock()
        self._deliverer: threading.Thread | None = None
        # What an earlier process left behind is delivered as well.
        self._may_wait = spool is not None

    def deliver(self, claim_id: UUID, report: Report) -> Told:
        """Tells the ledger how an attempt ended. Never raises."""
        answer, retry = self._tell(claim_id, report)
        if answer is not None:
            self.ledger_answered()
            return Told(answer)
        return Told(None, kept=retry and self._keep(claim_id, report))

    def ledger_answered(self) -> None:
        """The ledger is there: what is kept is delivered, beside the agent's own work."""
        if not self._may_wait:
            return
        with self._lock:
            if self._deliverer is None or not self._deliverer.is_alive():
                self._deliverer = threading.Thread(
                    target=self.flush, name="counterfoil-spool", daemon=True
                )
                self._deliverer.start()

    def flush(self) -> Delivered:
        """Delivers what is kept, now, and says what is left."""
        if self._spool is None:
            return Delivered()
        self._may_wait = True
        delivered = self._spool.deliver(self._tell_kept)
        self._may_wait = delivered.waiting > 0
        if delivered.refused:
            logger.error(
                "%s kept reports were refused; see refused/ in the spool", delivered.refused
            )
        return delivered

    def _tell_kept(self, kept: Kept) -> None:
        if kept.verb == OFFLINE:
            self._transport.offline(OfflineCall.model_validate_json(json.dumps(kept.body)))
            return
        kind = REPORTS.get(kept.verb)
        if kind is None:
            raise ValueError(f"{kept.verb!r} is nothing that this client can tell the ledger.")
        self._transport.report(UUID(kept.claim), kind.model_validate_json(json.dumps(kept.body)))

    def keep_offline(self, call: OfflineCall) -> bool:
        """Whether the call is on the disk now, to be told later under the name of its key."""
        body = call.model_dump(mode="json", exclude_none=True)
        return self._kept(Kept(verb=OFFLINE, claim=call.key, body=body), named=call.key)

    def _keep(self, claim_id: UUID, report: Report) -> bool:
        verb = next(verb for verb, kind in REPORTS.items() if isinstance(report, kind))
        body = report.model_dump(mode="json", exclude_none=True)
        return self._kept(Kept(verb=verb, claim=str(claim_id), body=body))

    def _kept(self, record: Kept, *, named: str = "") -> bool:
        if self._spool is None:
            return False
        try:
            self._spool.keep(record, named=named)
        except SpoolFull as full:
            logger.error("Claim %s: %s", record.claim, full)  # noqa: TRY400 - the sentence says it all
            return False
        self._may_wait = True
        return True

    def _tell(self, claim_id: UUID, report: Report) -> tuple[ClaimAnswer | None, bool]:
        """The answer, or None and whether telling it later may help."""
        pauses = pauses_seconds(self._patience, self._patience.report_tries_max)
        while True:
            try:
                return self._transport.report(claim_id, report), False
            except LedgerUnavailable as problem:
                pause_seconds = next(pauses, None)
                if pause_seconds is None:
                    logger.error("Claim %s: its end was not reported: %s", claim_id, problem)  # noqa: TRY400 - the sentence says it all
                    return None, True
                self._sleep(pause_seconds)
            except LedgerProblem as problem:
                logger.error("Claim %s: its end was refused: %s", claim_id, problem)  # noqa: TRY400 - the sentence says it all
                return None, isinstance(problem, (TokenRefused, ScopeMissing))

    def hint(self, claim_id: UUID, sent: Sent) -> None:
        try:
            self._transport.sent(claim_id, sent)
        except LedgerProblem as problem:
            logger.info("Claim %s: the hint that dates the send was lost: %s", claim_id, problem)

    def heartbeat(self, claim_id: UUID, beat: Heartbeat) -> HeartbeatAnswer:
        return self._transport.heartbeat(claim_id, beat)
