"""Every address of the product. The upper floors are named by string and own their own list."""

from django.urls import include, path

from effects.pages.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("", include("effects.pages.urls")),
    path("", include("ledger.urls")),
    path("", include("reconcile.urls")),
]
