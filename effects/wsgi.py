"""The door for agents: plain WSGI, a thread per request."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "effects.settings")

application = get_wsgi_application()

from effects.checks import refuse_nonsense  # noqa: E402 - settings must be in place first.

refuse_nonsense()
