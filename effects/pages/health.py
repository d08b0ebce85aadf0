"""Is this process alive, and can the whole thing do its work? Both without a login."""

from collections.abc import Callable
from functools import cache

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from effects.celery import app
from effects.heartbeats import BEAT, LATELY_SECONDS, WORKER, seconds_since_seen

BROKER_SECONDS_MAX = 2


class NotReady(Exception):
    """Why a part cannot do its work, in words that give nothing away to a stranger."""


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Say that this process answers. Asks nobody else, so that it never restarts us in vain."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Ask every part: 200 if all can work, else 503 and which cannot."""
    said = answers()
    ready = all(answer == "ok" for answer in said.values())
    return JsonResponse(
        {"status": "ok" if ready else "not ready", "checks": said}, status=200 if ready else 503
    )


def answers() -> dict[str, str]:
    """What each part says: "ok", or why it cannot do its work."""
    return {name: _ask(check) for name, check in CHECKS.items()}


def _ask(check: Callable[[], None]) -> str:
    try:
        check()
    except NotReady as reason:
        return str(reason)
    except DatabaseError:
        return "the database does not answer"
    return "ok"


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _migrations() -> None:
    missing = _missing_migrations()
    if missing:
        _missing_migrations.cache_clear()  # Only "none" stays true for this process's life.
        raise NotReady(f"{missing} migrations are not applied: run manage.py migrate")


@cache
def _missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _broker() -> None:
    try:
        with app.connection_for_write(connect_timeout=BROKER_SECONDS_MAX) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS_MAX)
    except OperationalError:  # Whatever the broker's own library raises, kombu wraps in this.
        raise NotReady("the broker does not answer") from None


def _seen_lately(name: str) -> Callable[[], None]:
    def check() -> None:
        seconds = seconds_since_seen(name)
        if seconds is None:
            raise NotReady(f"{name} was never seen")
        if seconds > LATELY_SECONDS:
            raise NotReady(f"{name} was last seen {seconds:.0f} s ago")

    return check


CHECKS: dict[str, Callable[[], None]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "worker": _seen_lately(WORKER),
    "beat": _seen_lately(BEAT),
}
