"""The one case in which a call runs that nobody granted: `docs/adr/0016`.

A tool that opted in may be sent while the ledger cannot be asked, because its provider makes one
effect of two requests with one key, and the key that the ledger would have given can be made here.
The provider forgets a key, though, and what the ledger has said to a call outweighs every rule. So
a call goes on only where nothing is known that could forbid it; whatever is not certain forbids it.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from effects.client.asking import Asked, Received
from effects.client.call import Call
from effects.client.clock import elapsed_clock_seconds
from effects.client.effect_result import Effect, effect_of
from effects.client.reporting import Reporter
from effects.client.spool import Spool
from effects.client.transport import Report
from effects.core.canonical import Refused
from effects.core.claim_rows import TOOLS_REMEMBERED_MAX, call_facts, read_rules
from effects.core.failures import Failure
from effects.core.for_model import unavailable
from effects.core.identity import forwarded_key, identities
from effects.core.messages import (
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    OfflineCall,
    OfflineEnd,
    OfflineTerms,
)
from effects.core.vocabulary import ClaimState, EffectClass, Outcome

__all__ = ["Offline", "OfflineAttempt"]

CALLS_REMEMBERED_MAX: Final = 10_000


class Remembered:
    """Things with a time each, the `most` that were named last. `forgot_at` is when the last of
    the others was forgotten: what came before that may be among them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, float] = OrderedDict()
        self.forgot_at = 0.0

    def add(self, thing: Hashable, at: float) -> None:
        self._kept[thing] = min(at, self._kept.pop(thing, at))
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
            self.forgot_at = elapsed_clock_seconds()

    def since(self, thing: Hashable) -> float | None:
        return self._kept.get(thing)


class Offline:
    """What this process knows that decides whether a call may go on. Safe to share between threads.

    Nothing of it outlives the process but what the spool holds: a process that has not reached the
    ledger for a tool knows nothing of it, so there every call of that tool waits.
    """

    def __init__(self, reporter: Reporter, spool: Spool) -> None:
        self._reporter = reporter
        self._spool = spool
        self._lock = threading.Lock()
        self._terms: OrderedDict[str, OfflineTerms] = OrderedDict()
        self._answered = Remembered(CALLS_REMEMBERED_MAX)
        self._sent = Remembered(CALLS_REMEMBERED_MAX)

    def heard(self, request: ClaimRequest, answer: ClaimAnswer | None = None) -> None:
        """The ledger has said something to this request; `answer` if it was one that says by which
        terms the tool is sent."""
        with self._lock:
            for name in _names(request):
                self._answered.add(name, elapsed_clock_seconds())
            if answer is None:
                return
            self._terms.pop(request.tool, None)
            if answer.offline is not None:
                self._terms[request.tool] = answer.offline
                if len(self._terms) > TOOLS_REMEMBERED_MAX:
                    self._terms.popitem(last=False)

    def begin(self, asked: Asked) -> OfflineAttempt | None:
        """The attempt, whose claim is on the disk; None: nothing may be sent. Whoever asks has told
        `heard` of every answer before, so nobody has answered this call."""
        with self._lock:
            return self._begun(asked)

    def _begun(self, asked: Asked) -> OfflineAttempt | None:
        terms, received = self._terms.get(asked.request.tool), asked.received
        if terms is None or received is None or not self._is_untold(asked.request, received):
            return None
        key = _key(asked.request, terms)
        if key is None:
            return None
        first_at = self._sent.since(key)
        if (first_at is not None) != self._spool.holds(key):
            # Another process sent it, or it was told to the ledger meanwhile.
            return None
        first_at = received.at if first_at is None else min(first_at, received.at)
        window_seconds = min(terms.window_seconds / 2, terms.window_seconds - terms.margin_seconds)
        now = elapsed_clock_seconds()
        send_until = min(first_at + window_seconds, now + terms.lease_seconds)
        if not (received.at <= now < send_until):
            return None
        told = OfflineCall(
            workspace=terms.workspace,
            attempt=secrets.token_hex(16),
            key=key,
            claimed_at=datetime.now(UTC),
            request=asked.request.model_copy(update={"nonce": None}),
        )
        if not self._reporter.keep_offline(told):
            return None
        self._sent.add(key, first_at)
        return OfflineAttempt(asked, told, send_until=send_until, reporter=self._reporter)

    def _is_untold(self, request: ClaimRequest, received: Received) -> bool:
        """Whether this process received the response, and no answer about the call is known."""
        if request.effect_class is not EffectClass.KEYED_WRITE or request.repeat_of is not None:
            return False
        if not received.here or received.at <= max(self._answered.forgot_at, self._sent.forgot_at):
            return False
        return all(self._answered.since(name) is None for name in _names(request))


def _names(request: ClaimRequest) -> list[Hashable]:
    """By what an answer about a call is known again. Wider than its identities: an answer about a
    tool in a turn speaks for every call of the tool there, however its arguments are put."""
    names: list[Hashable] = []
    if request.turn_index is not None:
        names.append(("turn", request.conversation, request.turn_index, request.tool))
    if request.call_id:
        names.append(("call", request.conversation, request.call_id, request.tool))
    if request.caller_key is not None:
        names.append(("caller", request.caller_key))
    return names


def _key(request: ClaimRequest, terms: OfflineTerms) -> str | None:
    try:
        rules = read_rules(terms.argument_rules)
        return forwarded_key(identities(call_facts(terms.workspace, request, rules)), 1)
    except (Refused, TypeError):  # TypeError: a newer ledger has rules that are not known here.
        return None


class OfflineAttempt(Call):
    """An attempt that nobody granted. Its claim is on the disk, and so is its end before `complete`
    or `fail` returns; both are told when the ledger answers again.

    It has the key that the ledger would have given and no marker: that would name a claim.
    """

    def __init__(
        self, asked: Asked, told: OfflineCall, *, send_until: float, reporter: Reporter
    ) -> None:
        super().__init__(
            answer=ClaimAnswer(
                state=ClaimState.IN_FLIGHT,
                effect_class=EffectClass.KEYED_WRITE,
                tool=asked.request.tool,
                fence=1,
                generation=1,
                key=told.key,
            ),
            send_until=send_until,
            reporter=reporter,
            contract=asked.contract,
            object_from=asked.object_from,
            outside=asked.outside,
        )
        self._told = told

    @property
    @override
    def offline(self) -> bool:
        return True

    @property
    @override
    def claim_id(self) -> UUID:
        # Not NotSent, here and below: asked for after the send, it would be believed.
        raise RuntimeError(f"The ledger is away, so {self._which} has no claim yet. Use the key.")

    @property
    @override
    def marker(self) -> str:
        raise RuntimeError(
            f"The ledger is away, so {self._which} has no marker. Use `marker_metadata`, which is "
            "empty then, or look at `offline` first."
        )

    @property
    @override
    def marker_metadata(self) -> dict[str, str]:
        return {}

    @override
    def heartbeat(self) -> bool:
        """Nobody keeps a lease for it."""
        return True

    @property
    @override
    def _which(self) -> str:
        return f"the attempt with the key {self._told.key}"

    @override
    def _hint(self) -> None:
        """What is on the disk already dates the send as well as it can be."""

    @override
    def _guess(self, state: ClaimState) -> ClaimAnswer:
        # Only the ledger knows of other attempts, so that this one did nothing proves nothing.
        known = state if state is ClaimState.COMPLETED else ClaimState.UNKNOWN
        return ClaimAnswer(state=known, tool=self.answer.tool, key=self._told.key)

    @override
    def _end(
        self,
        report: Report,
        guess: ClaimAnswer,
        *,
        value: Any = None,
        error: BaseException | None = None,
        failure: Failure | None = None,
    ) -> Effect:
        end = OfflineEnd(
            outcome=_outcome(report),
            ended_at=datetime.now(UTC),
            **report.model_dump(exclude={"proof", "result_stored"}),
        )
        kept = self._reporter.keep_offline(self._told.model_copy(update={"end": end}))
        if end.outcome is Outcome.NOT_SENT:
            unsent = unavailable(self._told.request.tool)
            self._effect = Effect(
                status=unsent["status"], for_model=unsent, error=error, failure=failure,
                reported=False, kept=kept, nothing_sent=True,
            )  # fmt: skip
        else:
            self._effect = effect_of(
                guess, value=value, error=error, failure=failure, reported=False, kept=kept
            )
        return self._effect


def _outcome(report: Report) -> Outcome:
    if isinstance(report, Complete):
        return Outcome.COMPLETED
    return report.proof if isinstance(report, Fail) else Outcome.UNKNOWN
