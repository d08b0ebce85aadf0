"""Where people's own keys are kept: in the database, and from there in each session that begins."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from effects.pages.keys import KEYS_IN_SESSION, OwnKeys, read_kept
from ledger.queries import clock
from reconcile.views.models import PersonKeys


def keep(request: HttpRequest, user_id: int, keys: OwnKeys) -> None:
    """Keeps a person's keys, for this session at once and for every other from its sign-in on."""
    PersonKeys.objects.update_or_create(
        user_id=user_id,
        defaults={"keys": dict(keys.changed), "on": keys.on, "changed_at": clock()},
    )
    request.session[KEYS_IN_SESSION] = keys.to_keep()


def bring(request: HttpRequest | None, user: User, **_: Any) -> None:
    """A session that begins knows the keys of its person. A receiver of `user_logged_in`."""
    kept = PersonKeys.objects.filter(user_id=user.pk).first()
    if kept is not None and request is not None:
        keys = read_kept({"on": kept.on, "keys": kept.keys})
        request.session[KEYS_IN_SESSION] = keys.to_keep()
