"""Celery tasks of the ground floor."""

from celery import shared_task

from effects.heartbeats import WORKER, mark_seen


@shared_task
def tick() -> None:
    """Show that a worker runs what beat sends."""
    mark_seen(WORKER)
