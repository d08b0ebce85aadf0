"""When a worker and beat were last seen alive."""

from typing import override

from django.db import connection, models
from django.db.models.functions import Now

WORKER = "worker"
BEAT = "beat"
# Six ticks missed in a row (`CELERY_BEAT_SCHEDULE`) are no hiccup any more.
LATELY_SECONDS = 30


class Heartbeat(models.Model):
    """One row per kind of process, overwritten at every beat."""

    name = models.CharField(max_length=20, primary_key=True)
    seen_at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"{self.name} seen at {self.seen_at}"


def mark_seen(name: str) -> None:
    """Note that `name` is alive now, by the database's wall clock."""
    Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})


def seconds_since_seen(name: str) -> float | None:
    """Return how long ago `name` was seen, or None if it never was.

    Asked of the wall clock on purpose: the movable clock judges claims, not processes.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM clock_timestamp() - seen_at)::float"
            " FROM effects_heartbeat WHERE name = %s",
            [name],
        )
        row = cursor.fetchone()
    return None if row is None else max(0.0, row[0])
