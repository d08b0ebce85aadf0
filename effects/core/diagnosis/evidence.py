"""What is known of one execution, in one vocabulary for all sources.

A member that is None is not known; that is never evidence of anything. Importers and the ledger's
own record fill these in; nothing here says what follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Source(StrEnum):
    """Who saw the execution. The application sees its own attempts and requests for a claim, never
    what a library or a gateway repeats below it; the provider sees every request."""

    APP = "app"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution. `name` names it in answers; `at` is when it began, by its source's clock.

    `attempt` is the application's attempt that a provider request belongs to, where the log says
    it. `requests_sent` is how many requests the application's library sent within this attempt.
    `retry_count` is how often something was repeated before: for a request the library's own count
    (as in the header x-stainless-retry-count), for an attempt the job's. `body` is a digest.
    `key` is the idempotency key on the wire; `key_seen` says that somebody looked, so that None
    means "none was sent". `delivery_count` is 1 for a first delivery. `settled_at` is when the
    outcome became known; with `tracked`, None means that it was open. `user_spoke`: a user's
    message stands between the agent's turn before and this one. `rerun_after_error`: the
    checkpoint's writes hold an error and a success of the same task. `resumed`: they hold a resume.
    `meant`: the agent named the earlier call as one that it repeats on purpose.
    """

    name: str
    at: datetime
    source: Source = Source.APP
    attempt: str | None = None
    requests_sent: int | None = None
    request_id: str | None = None
    client_request_id: str | None = None
    body: str | None = None
    key: str | None = None
    key_seen: bool = False
    conversation: str | None = None
    turn_index: int | None = None
    position: int | None = None
    response_id: str | None = None
    call_id: str | None = None
    agent: str | None = None
    worker: str | None = None
    delivery_count: int | None = None
    retry_count: int | None = None
    checkpoint: str | None = None
    rerun_after_error: bool | None = None
    resumed: bool | None = None
    tracked: bool = False
    settled_at: datetime | None = None
    user_spoke: bool | None = None
    meant: bool | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        return (self.at, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One server to which a gateway sent a request on."""

    host: str
    at: datetime
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRecord:
    """One request as a gateway's log has it: it came once and was sent on to `upstreams`."""

    request_id: str
    at: datetime
    upstreams: tuple[Upstream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two executions in a row, with what is known around them.

    `attempts` are the application's attempts that they belong to, None where that is not known.
    `requests` is how many requests of the first one's attempt the provider saw.
    """

    first: Execution
    second: Execution
    attempts: tuple[str | None, str | None] = (None, None)
    requests_sent: int | None = None
    requests: int | None = None
    gateway: tuple[GatewayRecord, ...] = ()

    @property
    def gap_seconds(self) -> float:
        return (self.second.at - self.first.at).total_seconds()

    @property
    def on_the_wire(self) -> bool:
        """Whether both are requests as the provider saw them."""
        return self.first.source is Source.PROVIDER and self.second.source is Source.PROVIDER

    @property
    def by_the_application(self) -> bool:
        return self.first.source is Source.APP and self.second.source is Source.APP

    @property
    def settled_before(self) -> bool:
        """Whether the first one's outcome was known when the second began."""
        return self.first.settled_at is not None and self.first.settled_at <= self.second.at

    @property
    def open_before(self) -> bool:
        """Whether it was known to be open then."""
        return self.first.tracked and not self.settled_before
