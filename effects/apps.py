"""The ground floor as a Django app."""

from typing import override

from django.apps import AppConfig


class EffectsConfig(AppConfig):
    name = "effects"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        # Here, not in `effects/__init__.py`: an agent imports that file and must not meet Celery.
        from effects import celery, checks, heartbeats  # noqa: F401, PLC0415 - registers them.
