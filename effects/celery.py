"""The Celery application, and a beat that can be seen to be alive."""

import os
from typing import Any, override

from celery import Celery
from celery.beat import PersistentScheduler, ScheduleEntry

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "effects.settings")

app = Celery("counterfoil")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


class SeenScheduler(PersistentScheduler):
    """Writes down, with every tick that it sends, that beat was alive then."""

    @override
    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> Any:
        sent = super().apply_async(entry, *args, **kwargs)
        if entry.task == "effects.tasks.tick":
            # Imported late: Celery names this module before Django's apps are loaded.
            from effects.heartbeats import BEAT, mark_seen  # noqa: PLC0415

            mark_seen(BEAT)
        return sent
