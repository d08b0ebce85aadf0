"""Who asks the API: the bearer token of a request, and the workspace that it opens."""

from __future__ import annotations

from typing import override

from django.http import HttpRequest
from ninja.security import HttpBearer

from effects.core.problems import ScopeMissing, TokenRefused
from effects.core.vocabulary import TokenScope
from ledger import auth
from ledger.refusals import TokenMissing


class BearerToken(HttpBearer):
    """Asks for a token with one of `scopes`; the endpoint finds its bearer in `request.auth`.

    `by_statement`: the endpoint is one statement, to which it hands the bearer's `unasked`.
    """

    def __init__(self, *scopes: TokenScope, by_statement: bool = False) -> None:
        super().__init__()
        self.scopes = scopes
        self._ask = auth.presented if by_statement else auth.bearer

    @override
    def __call__(self, request: HttpRequest) -> auth.Bearer:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise TokenMissing
        return self.authenticate(request, text.strip())

    @override
    def authenticate(self, request: HttpRequest, token: str) -> auth.Bearer:
        try:
            return self._ask(token, *self.scopes)
        except auth.TokenRefused:
            raise TokenRefused from None
        except auth.ScopeMissing as missing:
            wanted = " or ".join(missing.scopes)
            raise ScopeMissing(
                f"The token {missing.bearer.name} may not do this: it was not issued for {wanted}. "
                "Ask an admin for a token that is.",
                scopes=[str(scope) for scope in missing.scopes],
            ) from None


def bearer_of(request: HttpRequest) -> auth.Bearer:
    """The bearer that `BearerToken` let in."""
    bearer = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    assert isinstance(bearer, auth.Bearer)
    return bearer


def workspace_of(request: HttpRequest) -> int:
    """The id of the workspace that the request's token opens."""
    return bearer_of(request).workspace_id
