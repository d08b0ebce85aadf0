"""Finding out and deciding as a Django app."""

from typing import override

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class ReconcileConfig(AppConfig):
    name = "reconcile"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        from reconcile.views import keys  # noqa: PLC0415 - it needs models, which are there by now.

        user_logged_in.connect(keys.bring, dispatch_uid="reconcile.views.keys.bring")
