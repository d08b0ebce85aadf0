"""What goes in and out of the sandbox provider: one request, one answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

type Json = dict[str, Any]
"""A decoded JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request as it was read from the connection; header names are lower-case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def form(self) -> str:
        """The parameters as they were encoded: in the query of a read, in the body of a write."""
        return self.query if self.method == "GET" else self.body.decode("utf-8", "replace")

    def to_json(self) -> Json:
        """The request as it is kept for later."""
        return {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": dict(self.headers),
            "body": self.body.decode("utf-8", "replace"),
        }

    @classmethod
    def from_json(cls, raw: Json) -> "Request":
        """A kept request, as it came."""
        return cls(**{**raw, "body": raw["body"].encode()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer before it meets the wire."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def replayed(self) -> bool:
        """True if the key layer gave this answer back instead of executing anything."""
        return self.headers.get("Idempotent-Replayed") == "true"

    def encoded(self) -> bytes:
        """The body as it goes over the wire."""
        return json.dumps(self.body, indent=2).encode()


class Refused(Exception):
    """The endpoint says no. ``stored`` is False where the refusal comes before execution begins."""

    def __init__(self, answer: Answer, *, stored: bool) -> None:
        super().__init__(f"{answer.status} {answer.body}")
        self.answer = answer
        self.stored = stored
