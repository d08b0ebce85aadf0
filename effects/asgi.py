"""The door for people: pages over Django, sockets over Channels."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "effects.settings")
# Under ASGI every request gets a thread of its own, which a kept connection would outlive.
os.environ.setdefault("COUNTERFOIL_CONNECTION_SECONDS", "0")

_pages = get_asgi_application()

# Django must be set up before anything below is imported.
from channels.auth import AuthMiddlewareStack  # noqa: E402 - see above.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402 - see above.
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402 - see above.
from django.conf import settings  # noqa: E402 - see above.
from django.utils.module_loading import import_string  # noqa: E402 - see above.

from effects.checks import refuse_nonsense  # noqa: E402 - see above.

refuse_nonsense()

# Named by string: the shell starts the upper floors without importing them.
_sockets = [url for name in settings.COUNTERFOIL_SOCKET_URLS for url in import_string(name)]

application = ProtocolTypeRouter(
    {
        "http": _pages,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(_sockets))),
    }
)
