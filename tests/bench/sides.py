"""The same work on every side: the bare statements, and ours over both transports.

Bare work is what any keeper of such a record must do: insert a row, commit, update it, commit. Its
duplicate path is one indexed read. It is written as plainly as psycopg is used: a connection for
each client, `connection.execute`, prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg

from effects.client import Transport
from effects.core.messages import ClaimRequest, Complete
from effects.core.vocabulary import EffectClass

ARGUMENTS: Final = '{"amount":14900,"currency":"eur","customer":"cus_9X2","order":"8841"}'
RESULT: Final = '{"id":"pi_3QweRtY7Lm","status":"succeeded"}'
TOOL: Final = "pay"

RAW_TABLE: LiteralString = """
CREATE TABLE IF NOT EXISTS bench_raw (
  key text PRIMARY KEY, state text NOT NULL, arguments text, result text,
  at timestamptz DEFAULT now()
)
"""
RAW_INSERT: LiteralString = """
INSERT INTO bench_raw (key, state, arguments) VALUES (%s, 'in_flight', %s)
ON CONFLICT DO NOTHING RETURNING key
"""
RAW_UPDATE: LiteralString = "UPDATE bench_raw SET state = 'completed', result = %s WHERE key = %s"
RAW_LOOK: LiteralString = "SELECT state, result FROM bench_raw WHERE key = %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """`fresh` guards one effect under a key that is new; `again` asks for one that is done.

    Both are called from several threads at once. `end_thread` is called by each at its end.
    """

    name: str
    fresh: Callable[[str], None]
    again: Callable[[str], None]
    end_thread: Callable[[], None] = lambda: None


class Raw:
    def __init__(self, url: str) -> None:
        self._url = url
        self._own = threading.local()

    def side(self) -> Side:
        self._connection().execute(RAW_TABLE)
        return Side(name="raw", fresh=self._fresh, again=self._again, end_thread=self._end)

    def _connection(self) -> psycopg.Connection[Any]:
        kept: psycopg.Connection[Any] | None = getattr(self._own, "connection", None)
        if kept is None:
            kept = self._own.connection = psycopg.connect(self._url, autocommit=True)
        return kept

    def _end(self) -> None:
        self._connection().close()
        del self._own.connection

    def _fresh(self, key: str) -> None:
        connection = self._connection()
        made = connection.execute(RAW_INSERT, (key, ARGUMENTS), prepare=True).fetchone()
        assert made is not None
        connection.execute(RAW_UPDATE, (RESULT, key), prepare=True)

    def _again(self, key: str) -> None:
        assert self._connection().execute(RAW_LOOK, (key,), prepare=True).fetchone() is not None


def ours(name: str, transport: Transport) -> Side:
    """Claim and report through one transport, which all clients of the process share."""

    def fresh(key: str) -> None:
        answer = transport.claim(request(key))
        assert answer.code == "granted", answer
        assert isinstance(answer.claim_id, UUID)
        report = Complete(fence=answer.fence, provider_object=key, result=RESULT)
        assert transport.report(answer.claim_id, report).state == "completed"

    def again(key: str) -> None:
        assert transport.claim(request(key)).code == "replayed"

    return Side(name=name, fresh=fresh, again=again)


def request(key: str) -> ClaimRequest:
    """A call of a conversation of its own, with everything that an agent says about one."""
    return ClaimRequest(
        tool=TOOL,
        effect_class=EffectClass.KEYED_WRITE,
        arguments=ARGUMENTS,
        conversation=key,
        turn_index=1,
        response_id="resp_1",
        call_id=f"toolu_{key:0>20}",
    )
