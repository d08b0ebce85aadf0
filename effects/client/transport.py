"""What the client needs of a ledger, however it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from effects.core.messages import (
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    OfflineCall,
    Sent,
    Unknown,
)
from effects.core.problems import LedgerProblem

__all__ = ["Report", "Transport"]

Report = Complete | Fail | Unknown


class Transport(Protocol):
    """One question, one try. Asking again is the caller's affair, because only the caller knows
    what a lost answer means.

    Every method raises `LedgerUnavailable` if no usable answer came, whatever the reason, and
    another `LedgerProblem` if the ledger refused the question itself. Only where nobody answered,
    or somebody in front of the ledger said that it is not there, the fact `away` is true.
    """

    def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Asks for the right to run one tool call. An answer that grants nothing is returned."""
        ...

    def claim_batch(self, requests: Sequence[ClaimRequest]) -> list[ClaimAnswer | LedgerProblem]:
        """Asks for several calls at once; answers in their order. A problem is that of one claim:
        nothing of it was recorded, and the others are answered all the same."""
        ...

    def status(self, claim: str) -> ClaimAnswer:
        """What is known about a claim, by its id or by its key. Raises `ClaimNotFound`."""
        ...

    def wait(self, claim_id: UUID, *, seconds: int) -> ClaimAnswer:
        """The same, answered when the claim changes, after `seconds` at the latest."""
        ...

    def sent(self, claim_id: UUID, hint: Sent) -> None: ...

    def heartbeat(self, claim_id: UUID, beat: Heartbeat) -> HeartbeatAnswer: ...

    def report(self, claim_id: UUID, report: Report) -> ClaimAnswer:
        """How an attempt ended. The same report again is the same fact."""
        ...

    def offline(self, call: OfflineCall) -> ClaimAnswer:
        """Tells of an attempt that was sent while the ledger was away. Told twice it is one."""
        ...

    def close(self) -> None: ...
