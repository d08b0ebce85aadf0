"""The Celery application, and a beat that can be seen to be alive."""

import os
from typing import Any, override

from celery import Celery
from celery.beat import PersistentScheduler, ScheduleEntry
from celery.signals import beat_init, worker_init
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "effects.settings")

app = Celery("counterfoil")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def _refuse_nonsense(**_: Any) -> None:
    from effects.checks import refuse_nonsense  # noqa: PLC0415 - Django's apps come first.

    try:
        refuse_nonsense()
    except ImproperlyConfigured as error:
        # Celery only logs what a listener raises, unless it asks for the end.
        raise SystemExit(str(error)) from None


class SeenScheduler(PersistentScheduler):
    """Writes down, with every tick that it sends, that beat was alive then."""

    @override
    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> Any:
        sent = super().apply_async(entry, *args, **kwargs)
        if entry.task == "effects.tasks.tick":
            # Imported late: Celery names this module before Django's apps are loaded.
            from effects.heartbeats import BEAT, mark_seen  # noqa: PLC0415 - as it says above.

            mark_seen(BEAT)
        return sent
