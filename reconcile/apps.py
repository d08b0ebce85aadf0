"""Finding out and deciding as a Django app."""

from importlib import import_module
from typing import override

from django.apps import AppConfig


class ReconcileConfig(AppConfig):
    name = "reconcile"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        # Celery finds the tasks of an app by themselves only in its own module of that name.
        import_module("reconcile.bulk.tasks")
        import_module("reconcile.assign.tasks")
