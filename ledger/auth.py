"""Who may speak to the API: bearer tokens, each bound to one workspace and to what it may do.

A token reads `cf_<prefix>_<secret>`. The prefix is shown wherever the token is spoken of; the whole
text is shown once, when the token is issued, and only its SHA-256 is kept. A slow password hash
would protect nothing here: the secret is 256 random bits, which nobody guesses.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import select
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, LiteralString

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Q

from effects.core.vocabulary import TokenScope
from effects.models import Workspace
from ledger.functions import call
from ledger.models import ApiToken
from ledger.queries import clock

if TYPE_CHECKING:
    from django.contrib.auth.models import User

PREFIX_CHARACTERS: Final = 8
SECRET_BYTES: Final = 32
USE_IS_NOTED_EVERY: Final = timedelta(minutes=1)
"""A token is written at most this often: a claim must not pay for a second row on every call."""

# Asked before every claim, so it is one prepared statement and not a query that is built each time.
_FIND_OPEN: LiteralString = """
SELECT hash, id, name, workspace_id, scopes, last_used_at, ledger_clock()
  FROM ledger_apitoken WHERE hash = %s AND revoked_at IS NULL
"""
TOKENS_REMEMBERED_MAX: Final = 4096

_TOKEN = re.compile(rf"cf_([0-9a-f]{{{PREFIX_CHARACTERS}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")


class TokenRefused(Exception):
    """The text is no token of ours, or the token was revoked. Which of the two is not told."""


class ScopeMissing(Exception):
    """The token is good, but was issued for none of `scopes`."""

    def __init__(self, bearer: Bearer, scopes: tuple[TokenScope, ...]) -> None:
        super().__init__(*scopes)
        self.bearer = bearer
        self.scopes = scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Who is asking: the token, the workspace that it opens, and what it may do there."""

    token_id: int
    name: str
    workspace_id: int
    scopes: frozenset[TokenScope]
    unasked: bytes | None = None
    """The token's hash, where nobody has asked yet whether it is still open: the request's one
    statement does, and does nothing if it is not."""


def issue(
    workspace: Workspace, name: str, scopes: Collection[TokenScope], user: User | None
) -> tuple[ApiToken, str]:
    """Make a token; the second value is its text, which nobody can show again.

    Raises ValueError for a token without a name or without a scope: it would open nothing, and
    nobody would know whose it was.
    """
    if not name.strip() or not scopes:
        raise ValueError("A token needs a name and at least one scope.")
    prefix = secrets.token_hex(PREFIX_CHARACTERS // 2)
    plain = f"cf_{prefix}_{secrets.token_hex(SECRET_BYTES)}"
    token = ApiToken.objects.create(
        workspace=workspace,
        name=name.strip(),
        prefix=prefix,
        hash=_hash(plain),
        scopes=sorted(TokenScope(scope) for scope in scopes),
        created_at=clock(),
        created_by=user,
    )
    return token, plain


def bearer(plain: str, *scopes: TokenScope) -> Bearer:
    """Who presents this token, if it has one of `scopes`. Raises `TokenRefused`, `ScopeMissing`."""
    if not _TOKEN.fullmatch(plain):
        raise TokenRefused
    digest = _hash(plain)
    found = _found(digest)
    # Whoever can time the index learns nothing: it holds hashes of secrets that nobody guesses. The
    # constant-time comparison keeps that true if the lookup should ever become less exact.
    if not found or not hmac.compare_digest(bytes(found[0][0]), digest):
        raise TokenRefused
    _, token_id, name, workspace_id, words, last_used_at, now = found[0]
    presented = Bearer(
        token_id=token_id,
        name=name,
        workspace_id=workspace_id,
        scopes=frozenset(TokenScope(word) for word in words),
    )
    if presented.scopes.isdisjoint(scopes):
        raise ScopeMissing(presented, scopes)
    _note_use(token_id, last_used_at=last_used_at, now=now)
    return presented


def presented(plain: str, *scopes: TokenScope) -> Bearer:
    """As `bearer`, for a request that is one statement, which asks about the token itself.

    A token that this process has seen within `USE_IS_NOTED_EVERY` costs no question of its own
    then. Which workspace it opens, and for what, never changes; whether it is open does.
    """
    if not _TOKEN.fullmatch(plain):
        raise TokenRefused
    digest = _hash(plain)
    known = _known.get(digest)
    if known is None or time.monotonic() > known.until or not _is_silent():
        found = bearer(plain, *scopes)
        if len(_known) >= TOKENS_REMEMBERED_MAX:
            _known.clear()
        until = time.monotonic() + USE_IS_NOTED_EVERY.total_seconds()
        _known[digest] = _Known(bearer=replace(found, unasked=digest), until=until)
        return found
    if known.bearer.scopes.isdisjoint(scopes):
        raise ScopeMissing(known.bearer, scopes)
    return known.bearer


def is_open(digest: bytes) -> bool:
    """Whether the token of this hash is open now."""
    return bool(call(_FIND_OPEN, (digest,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    bearer: Bearer
    until: float


_known: dict[bytes, _Known] = {}


def _is_silent() -> bool:
    """Whether this thread's connection is open and the server has said nothing since its last
    answer. It says goodbye, and a connection on which it did must not carry a claim."""
    if connection.connection is None or connection.in_atomic_block:
        return False
    ready = select.poll()
    ready.register(connection.connection.fileno(), select.POLLIN)
    return not ready.poll(0)


def tokens(workspace: Workspace) -> list[ApiToken]:
    """Every token of the workspace, revoked ones included, newest first."""
    found = ApiToken.objects.filter(workspace=workspace).select_related("created_by")
    return list(found.order_by("-created_at", "-pk"))


def revoke(workspace: Workspace, token_id: int) -> bool:
    """Close a token for ever, from the next request on. False: there is no such open token."""
    found = ApiToken.objects.filter(workspace=workspace, pk=token_id, revoked_at=None)
    return found.update(revoked_at=clock()) == 1


def _found(digest: bytes) -> list[Any]:
    """The token's row, if there is one: the first question of a request.

    A connection that died since the last request is replaced here. Asking costs what Django's own
    look at the connection would, and answers something.
    """
    was_open = connection.connection is not None
    connection.health_check_done = True  # type: ignore[attr-defined]  # the stubs do not know it
    try:
        return call(_FIND_OPEN, (digest,))
    except (OperationalError, InterfaceError):
        # `call` has given a broken connection back; any other fault is none of ours.
        if not was_open or connection.connection is not None:
            raise
        return call(_FIND_OPEN, (digest,))


def _hash(plain: str) -> bytes:
    return hashlib.sha256(plain.encode()).digest()


def _note_use(token_id: int, *, last_used_at: datetime | None, now: datetime) -> None:
    if last_used_at is not None and now < last_used_at + USE_IS_NOTED_EVERY:
        return
    # Of several processes that notice at once, the guard in the WHERE lets one write.
    unused = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_IS_NOTED_EVERY)
    ApiToken.objects.filter(unused, pk=token_id).update(last_used_at=now)
