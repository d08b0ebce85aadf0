"""Mail, where an operator has set a mail server; without one links are handed over by people."""

from __future__ import annotations

import logging
import os
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.mail import send_mail

TIMEOUT_SECONDS: Final = 10
_PORTS: Final = {"smtp": 25, "submission": 587, "smtps": 465}

_log = logging.getLogger(__name__)


def mail_settings(url: str, sender: str) -> dict[str, Any]:
    """Django's settings from `submission://user:password@host:port`; {} for an empty address.

    `smtp` speaks plainly, `submission` upgrades to TLS, `smtps` begins with it. Raises ValueError
    for any other scheme and for an address without a host.
    """
    if not url:
        return {}
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(
            "COUNTERFOIL_MAIL_URL must look like submission://user:password@mail.example.org:587 "
            "(or smtp://, smtps://)."
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or _PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "submission",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": TIMEOUT_SECONDS,
        "DEFAULT_FROM_EMAIL": sender or f"counterfoil@{parts.hostname}",
    }


def from_environment() -> dict[str, Any]:
    """What `COUNTERFOIL_MAIL_URL` and `COUNTERFOIL_MAIL_FROM` say."""
    return mail_settings(
        os.environ.get("COUNTERFOIL_MAIL_URL", ""), os.environ.get("COUNTERFOIL_MAIL_FROM", "")
    )


def is_configured() -> bool:
    return bool(getattr(settings, "COUNTERFOIL_MAIL", False))


def send_link(*, to: str, link: str, workspace: str) -> str:
    """Sends a link to set a password; answers "sent" or "failed". A failure is never a crash: the
    page shows the link, and a person can hand it over."""
    text = (
        f"You have been added to {workspace} in Counterfoil.\n\n"
        f"Set your password here, within three days:\n\n{link}\n\n"
        "The link works once. If you did not expect this, ignore it.\n"
    )
    try:
        send_mail(f"Your access to {workspace}", text, None, [to])
    except OSError:  # smtplib's own errors are OSErrors too
        _log.exception("The mail to a new member was not taken by the mail server.")
        return "failed"
    return "sent"
