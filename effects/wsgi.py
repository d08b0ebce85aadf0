"""The door for agents: plain WSGI, a thread per request."""

import os
from collections.abc import Callable, Iterable
from typing import Any, override

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "effects.settings")

_pages = get_wsgi_application()

from django.conf import settings  # noqa: E402 - settings must be in place first.
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402 - as above.

from effects.checks import refuse_nonsense  # noqa: E402 - as above.

refuse_nonsense()

API_PREFIX = "/api/v1/"
API_MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]


class _ApiHandler(WSGIHandler):
    """Django without what only pages need: sessions, forms, messages, static files, policies for
    what a browser shows. They would take as long as all the rest that Django does for a claim."""

    @override
    def load_middleware(self, is_async: bool = False) -> None:
        everything = settings.MIDDLEWARE
        settings.MIDDLEWARE = API_MIDDLEWARE
        try:
            super().load_middleware(is_async)
        finally:
            settings.MIDDLEWARE = everything


_api = _ApiHandler()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The API by the short way, everything else by the whole one."""
    short = environ.get("PATH_INFO", "").startswith(API_PREFIX)
    return (_api if short else _pages)(environ, start_response)
