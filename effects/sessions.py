"""The session engine: Django's own in the database, with the person's id in a column."""

from __future__ import annotations

from typing import override

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from effects.models import DeskSession

SIGNED_IN_AT: str = "signed_in_at"
PROGRAM: str = "program"
PROGRAM_CHARACTERS_MAX = 200


class SessionStore(DatabaseStore):
    """Keeps sessions in `DeskSession`."""

    @override
    @classmethod
    def get_model_class(cls) -> type[DeskSession]:
        return DeskSession

    @override
    def create_model_instance(self, data: dict[str, object]) -> DeskSession:
        kept = super().create_model_instance(data)
        assert isinstance(kept, DeskSession)
        said = str(data.get(SESSION_KEY, ""))
        kept.user_id = int(said) if said.isdigit() else None
        return kept


def end_sessions(user_id: int, *, but: SessionBase | None = None) -> int:
    """Signs a person out everywhere, or everywhere else; answers how many sessions ended."""
    found = DeskSession.objects.filter(user_id=user_id)
    if but is not None:
        found = found.exclude(session_key=but.session_key)
    return found.delete()[0]
