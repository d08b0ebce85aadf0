"""The ledger over HTTP, with httpx2. It does not follow redirects and never repeats by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import UUID

import httpx2
from pydantic import ValidationError

from effects.client.transport import Report
from effects.client.version import VERSION
from effects.core.messages import (
    BatchAnswer,
    BatchItem,
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    OfflineCall,
    Problem,
    Sent,
)
from effects.core.problems import (
    LedgerProblem,
    LedgerUnavailable,
    TokenRefused,
    problem_from_message,
)

__all__ = ["HttpTransport", "Timeouts"]

ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
SHOWN_CHARACTERS_MAX: Final = 200
HEADERS: Final = {
    "Accept": "application/json",
    "Connection": "keep-alive",
    "User-Agent": f"counterfoil-client/{VERSION}",
}

AWAY_CODES: Final = frozenset({LedgerUnavailable.code, "http_502", "http_503", "http_504"})
"""The ledger has lost its database, or a gateway has lost the ledger. Every other answer, also one
that cannot be understood, is somebody's word on the call."""

Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long one request to the ledger may take. A long poll gets its own time on top."""

    connect_seconds: float = 2.0
    answer_seconds: float = 10.0
    hint_seconds: float = 1.0


class HttpTransport:
    """Speaks to `{url}/api/v1` with a bearer token.

    `token` may be a function: it is asked again once, and only once, when the ledger refuses the
    token, so that a rotated token does not stop an agent. Safe to use from several threads and
    after a fork.
    """

    def __init__(
        self, url: str, token: str | Callable[[], str], *, timeouts: Timeouts | None = None
    ) -> None:
        self._url = url.rstrip("/") + "/api/v1/"
        self._token_source = token
        self._token = token if isinstance(token, str) else None
        self._timeouts = timeouts or Timeouts()
        self._lock = threading.Lock()
        self._transport: httpx2.HTTPTransport | None = None
        self._transport_pid = 0

    def claim(self, request: ClaimRequest) -> ClaimAnswer:
        return self._ask("POST", "claims", ClaimAnswer, body=request)

    def claim_batch(self, requests: Sequence[ClaimRequest]) -> list[ClaimAnswer | LedgerProblem]:
        members = ",".join(request.model_dump_json(exclude_none=True) for request in requests)
        told = self._ask("POST", "claims:batch", BatchAnswer, content=f'{{"claims":[{members}]}}')
        if len(told.answers) != len(requests):
            raise LedgerUnavailable(
                f"The ledger answered {len(told.answers)} of {len(requests)} claims."
            )
        return [_of_batch(item) for item in told.answers]

    def status(self, claim: str) -> ClaimAnswer:
        # A key may hold what no path can, so it travels as a parameter.
        return self._ask("GET", f"claims?key={quote(claim, safe='')}", ClaimAnswer)

    def wait(self, claim_id: UUID, *, seconds: int) -> ClaimAnswer:
        answer_seconds = seconds + self._timeouts.answer_seconds
        path = f"claims/{claim_id}/wait?seconds={seconds}"
        return self._ask("GET", path, ClaimAnswer, answer_seconds=answer_seconds)

    def sent(self, claim_id: UUID, hint: Sent) -> None:
        timeout = httpx2.Timeout(self._timeouts.hint_seconds)
        content = hint.model_dump_json(exclude_none=True)
        response = self._send("POST", f"claims/{claim_id}/sent", content, timeout)
        if not response.is_success:
            raise problem_from_message(_problem_in(response))

    def heartbeat(self, claim_id: UUID, beat: Heartbeat) -> HeartbeatAnswer:
        return self._ask("POST", f"claims/{claim_id}/heartbeat", HeartbeatAnswer, body=beat)

    def report(self, claim_id: UUID, report: Report) -> ClaimAnswer:
        return self._ask("POST", f"claims/{claim_id}/{_word(report)}", ClaimAnswer, body=report)

    def offline(self, call: OfflineCall) -> ClaimAnswer:
        return self._ask("POST", "claims:offline", ClaimAnswer, body=call)

    def close(self) -> None:
        with self._lock:
            transport, self._transport = self._transport, None
        if transport is not None and self._transport_pid == os.getpid():
            transport.close()

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[Answer],
        *,
        body: Message | None = None,
        content: str | None = None,
        answer_seconds: float | None = None,
    ) -> Answer:
        if body is not None:
            content = body.model_dump_json(exclude_none=True)
        timeout = httpx2.Timeout(
            answer_seconds or self._timeouts.answer_seconds, connect=self._timeouts.connect_seconds
        )
        response = self._send(method, path, content, timeout)
        if response.status_code == TokenRefused.status and callable(self._token_source):
            # One bounded refresh: a second refusal is the answer.
            self._token = None
            response = self._send(method, path, content, timeout)
        return _read(response, kind)

    def _send(
        self, method: str, path: str, content: str | None, timeout: httpx2.Timeout
    ) -> httpx2.Response:
        headers = {**HEADERS, "Authorization": f"Bearer {self._current_token()}"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        extensions: dict[str, Any] = {"timeout": timeout.as_dict()}
        request = httpx2.Request(
            method, self._url + path, content=content, headers=headers, extensions=extensions
        )
        try:
            response = self._open_transport().handle_request(request)
            response.request = request
            response.read()
        except httpx2.HTTPError as error:
            raise LedgerUnavailable(
                f"The ledger at {self._url} gave no answer ({type(error).__name__}: {error})."
                " Ask again later.",
                away=True,
            ) from error
        return response

    def _current_token(self) -> str:
        if self._token is None:
            assert callable(self._token_source)
            self._token = self._token_source()
        return self._token

    def _open_transport(self) -> httpx2.HTTPTransport:
        """The connections. Not a whole client of httpx2: cookies, redirects and their like are not
        for a ledger, and would take as long as the connection itself does."""
        with self._lock:
            if self._transport is None or self._transport_pid != os.getpid():
                # A forked child must not write into its parent's connections.
                self._transport = httpx2.HTTPTransport(proxy=_proxy_for(self._url))
                self._transport_pid = os.getpid()
            return self._transport


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address, if any."""
    parts = urlsplit(url)
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _of_batch(item: BatchItem) -> ClaimAnswer | LedgerProblem:
    if item.answer is not None:
        return item.answer
    if item.problem is not None:
        return problem_from_message(item.problem)
    return LedgerUnavailable("The ledger's answer to a claim of the batch is empty.")


def _word(report: Report) -> str:
    if isinstance(report, Complete):
        return "complete"
    return "fail" if isinstance(report, Fail) else "unknown"


def _read(response: httpx2.Response, kind: type[Answer]) -> Answer:
    """The answer in a response. Anything that cannot be understood grants nothing."""
    if len(response.content) > ANSWER_BYTES_MAX:
        raise LedgerUnavailable(f"The ledger's answer exceeds {ANSWER_BYTES_MAX} bytes.")
    if response.is_success:
        try:
            # A newer ledger may say more; what this client knows is still checked strictly.
            return kind.model_validate_json(response.content, extra="ignore")
        except ValidationError as error:
            raise LedgerUnavailable(
                f"The ledger's answer to {response.url.path} could not be understood: {error}"
            ) from error
    problem = _problem_in(response)
    if isinstance(problem.answer, kind):
        return problem.answer
    raised = problem_from_message(problem)
    if problem.code in AWAY_CODES:
        raised.facts["away"] = True
    raise raised


def _problem_in(response: httpx2.Response) -> Problem:
    try:
        return Problem.model_validate_json(response.content, extra="allow")
    except ValidationError:
        shown = response.text[:SHOWN_CHARACTERS_MAX]
        return Problem(
            title="Not the ledger's own words.",
            status=response.status_code,
            detail=f"{response.url.path} answered {response.status_code}: {shown!r}",
            code=f"http_{response.status_code}",
        )
