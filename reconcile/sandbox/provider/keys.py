"""Stripe's idempotency layer for API v1.

Source: https://docs.stripe.com/api/idempotent_requests and https://docs.stripe.com/error-low-level.
A key belongs to one account in one mode, across all its endpoints. What is stored is status and
body of the first request whose execution began, whether it succeeded or failed. The provider may
forget a key once it is 24 hours old, counted from its first receipt; this one forgets at that
instant, which is the reading that hurts a careless caller.
"""

from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.store import Batch, Store

KEY_LIFETIME_SECONDS: Final = 24 * 60 * 60
KEY_LENGTH_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a key: where, by which account and mode, with which parameters, and when."""

    scope: str
    key: str
    endpoint: str
    parameters: list[list[str]]
    received_at: float


class KeyLayer:
    """Decides whether a request with a key is executed, replayed or turned away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._in_flight: dict[tuple[str, str], Use] = {}

    def begin(self, use: Use) -> Answer | None:
        """None if the caller must execute the request and then call ``finish`` or ``abandon``.

        Otherwise the answer that the key layer gives without executing anything.
        """
        with self._store.lock:
            if first := self._in_flight.get((use.scope, use.key)):
                return _mismatch(use, first.endpoint, first.parameters) or errors.key_in_use(
                    use.key
                )
            stored = self._store.table(f"{use.scope}/keys").get(use.key)
            if stored is not None and not _forgotten(stored, use.received_at):
                return _mismatch(use, stored["endpoint"], stored["parameters"]) or Answer(
                    status=stored["status"],
                    body=stored["body"],
                    headers={**stored["headers"], "Idempotent-Replayed": "true"},
                )
            self._in_flight[use.scope, use.key] = use
            return None

    def finish(self, use: Use, answer: Answer, batch: Batch) -> None:
        """Store the answer with the key, in the same batch as the effect itself."""
        batch.put(
            f"{use.scope}/keys",
            use.key,
            {
                "endpoint": use.endpoint,
                "parameters": use.parameters,
                "first_received_at": use.received_at,
                "status": answer.status,
                "body": answer.body,
                "headers": dict(answer.headers),
            },
        )

    def leave(self, use: Use) -> None:
        """The request is no longer in flight, whatever became of it."""
        with self._store.lock:
            self._in_flight.pop((use.scope, use.key), None)


def _forgotten(stored: Json, now: float) -> bool:
    return bool(now - stored["first_received_at"] >= KEY_LIFETIME_SECONDS)


def _mismatch(use: Use, endpoint: str, parameters: list[list[str]]) -> Answer | None:
    if use.endpoint != endpoint:
        return errors.key_for_other_endpoint(use.key, first=endpoint, now=use.endpoint)
    if use.parameters != parameters:
        return errors.key_for_other_parameters(use.key)
    return None
