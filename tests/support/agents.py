"""Agents that speak to the API, in the test's own process or through a real door."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

CONVERSATION = "conversation-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer. `headers` are found in any case; `json` is None where the body is not."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def code(self) -> str | None:
        return None if self.json is None else self.json.get("code")

    @property
    def claim(self) -> Any:
        """The claim's answer, whether it is the body or stands in a problem document."""
        return self.json.get("answer", self.json)


Send = Callable[[str, str, dict[str, str], bytes], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Holds one token and knows one way to the API."""

    token: str
    send: Send
    headers: Mapping[str, str] = field(default_factory=dict)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask("POST", path, {"Content-Type": "application/json", **headers}, sent)

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, headers, b"")

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        said = {"Authorization": f"Bearer {self.token}", **self.headers, **headers}
        return self.send(method, f"/api/v1/{path}", said, body)

    def claim(self, **changes: Any) -> Answer:
        return self.post("claims", asked(**changes))


def asked(**changes: Any) -> dict[str, Any]:
    """A claim request like any other; a change to None leaves the member out."""
    request: dict[str, Any] = {
        "tool": "refund",
        "effect_class": "keyed_write",
        "arguments": '{"charge": "ch_1", "amount": 4200}',
        "conversation": CONVERSATION,
        "turn_index": 3,
        "response_id": "response-1",
        "call_id": "call_aaaaaaaaaaaaaaaaaaaaaaaa",
        **changes,
    }
    return {name: value for name, value in request.items() if value is not None}


def in_process(client: Client) -> Send:
    """The way through Django's test client."""

    def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        kind = headers.pop("Content-Type", "")
        response = client.generic(method, path, body, content_type=kind, headers=headers)
        return Answer(
            status=response.status_code, headers=response.headers, body=response.getvalue()
        )

    return send


def through(url: str) -> Send:
    """The way through a real server at `url`."""

    def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        request = urllib.request.Request(
            url + path, data=body if method == "POST" else None, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=90) as response:
                return Answer(
                    status=response.status, headers=response.headers, body=response.read()
                )
        except urllib.error.HTTPError as error:
            with error:
                return Answer(status=error.code, headers=error.headers, body=error.read())

    return send
