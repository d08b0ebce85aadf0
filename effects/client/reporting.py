"""Delivers what an attempt has to say, with patience and without ever raising into a tool."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from uuid import UUID

from effects.client.asking import Patience
from effects.client.transport import Report, Transport
from effects.core.messages import ClaimAnswer, Heartbeat, HeartbeatAnswer, Sent
from effects.core.problems import LedgerProblem, LedgerUnavailable

__all__ = ["Reporter", "pauses_seconds"]

logger = logging.getLogger("counterfoil")


def pauses_seconds(patience: Patience, tries_max: int) -> Iterator[float]:
    """The pauses before the second and each further try, doubling up to the longest."""
    pause_seconds = patience.pause_seconds_first
    for _ in range(tries_max - 1):
        yield pause_seconds
        pause_seconds = min(pause_seconds * 2, patience.pause_seconds_max)


class Reporter:
    """The way back from an attempt to the ledger.

    A report that cannot be delivered is given up after `Patience.report_tries_max` tries. There is
    no spool on disk yet: the ledger then learns the end of the attempt by finding out, not from us.
    """

    def __init__(
        self,
        transport: Transport,
        patience: Patience,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._patience = patience
        self._sleep = sleep

    def deliver(self, claim_id: UUID, report: Report) -> ClaimAnswer | None:
        """The ledger's answer, or None if it could not be told."""
        pauses = pauses_seconds(self._patience, self._patience.report_tries_max)
        while True:
            try:
                return self._transport.report(claim_id, report)
            except LedgerUnavailable as problem:
                pause_seconds = next(pauses, None)
                if pause_seconds is None:
                    logger.error("Claim %s: its end was not reported: %s", claim_id, problem)  # noqa: TRY400 - the sentence says it all
                    return None
                self._sleep(pause_seconds)
            except LedgerProblem as problem:
                logger.error("Claim %s: its end was refused: %s", claim_id, problem)  # noqa: TRY400 - the sentence says it all
                return None

    def hint(self, claim_id: UUID, sent: Sent) -> None:
        try:
            self._transport.sent(claim_id, sent)
        except LedgerProblem as problem:
            logger.info("Claim %s: the hint that dates the send was lost: %s", claim_id, problem)

    def heartbeat(self, claim_id: UUID, beat: Heartbeat) -> HeartbeatAnswer:
        return self._transport.heartbeat(claim_id, beat)
