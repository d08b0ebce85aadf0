"""The ledger straight in PostgreSQL, for agents on its own network: no API process in between.

The agent logs in with a role of its own, which may execute the agent functions and nothing else
(`ledger/sql/agent_*_v1.sql`). Every question is one statement and one commit. Imported only
where such an address is given, because it needs psycopg.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from effects.client.postgres_link import Connections, Statement
from effects.client.redaction_rules import Hidden, ToolRedaction, read_redaction
from effects.client.transport import Report
from effects.client.transport_http import Timeouts
from effects.core.canonical import NO_RULES, ArgumentRules, Refused
from effects.core.claim_rows import (
    PERMITS_A_SEND,
    TOOLS_REMEMBERED_MAX,
    answer_all,
    call_facts,
    check_batch,
    read_answer,
    read_rules,
)
from effects.core.identity import digest_parts, encoded
from effects.core.messages import (
    WAIT_SECONDS_MAX,
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    OfflineCall,
    Sent,
)
from effects.core.problems import (
    BadRequest,
    LedgerProblem,
    LedgerUnavailable,
    problem_of_refusal,
)
from effects.core.redaction import Redacted, redact
from effects.core.references import not_found, read_reference
from effects.core.status import is_news, read_shown, status_answer
from effects.core.storable import fit_report, unstorable_field
from effects.core.vocabulary import Outcome

__all__ = ["PostgresTransport"]

POLL_SECONDS_FIRST: Final = 0.05
POLL_SECONDS_MAX: Final = 0.5
RULES_TRIES_MAX: Final = 8
"""How often one claim reads its tool's rules: the tool is being edited all the time beyond that."""

CALL_FIELDS: Final[dict[str, type]] = {
    **dict.fromkeys(("tool", "tool_version", "class", "arguments", "conversation"), str),
    **dict.fromkeys(("turn_index", "position", "ordinal"), int),
    **dict.fromkeys(("response_id", "call_id"), str),
    "weak": bool,
    "nonce": bytes,
    "repeat_of": UUID,
    **dict.fromkeys(("worker", "delivery_count", "retry_count", "agent", "checkpoint"), str),
    "user_spoke": bool,
    **dict.fromkeys(("what", "compared", "spoken", "turn_part", "ordinal_part"), bytes),
    **dict.fromkeys(("call_part", "local_parts", "caller_part", "business_parts"), bytes),
    "redaction": int,
}
"""What `ledger_agent_claim_v1` takes, in its order; a batch names them."""
PLACE_OF_ARGUMENTS: Final = list(CALL_FIELDS).index("arguments")


def _calling(function: str, *kinds: type, columns: str = "*") -> Statement:
    numbered = ", ".join(f"${number}" for number in range(1, len(kinds) + 1))
    return Statement(
        name=f"counterfoil_{function}".encode(),
        command=f"SELECT {columns} FROM {function}({numbered})".encode(),  # noqa: S608 - our names
        kinds=kinds,
    )


TOOL: Final = _calling(
    "ledger_agent_tool_v1", str, columns="tool_version, rules::text, redaction::text"
)
CLAIM: Final = _calling("ledger_agent_claim_v1", *CALL_FIELDS.values())
BATCH: Final = _calling("ledger_agent_claim_batch_v1", str, int)
STATUS: Final = _calling("ledger_agent_status_v1", UUID, str, bytes)
SENT: Final = _calling("ledger_agent_sent_v1", UUID, int)
HEARTBEAT: Final = _calling("ledger_agent_heartbeat_v1", UUID, int, columns="word, lease_until")
REPORT: Final = _calling(
    "ledger_agent_report_v1",
    *(UUID, int, str, str, bool, bool, str, bool, str, int, int, str, str, int, str, str, str),
)


class PostgresTransport:
    """Speaks to a Counterfoil database as an agent's role.

    `url` is what `manage.py agent_role create` printed. At most `connections_max` connections are
    open at once; a request that finds none free waits for one. Safe to use from several threads and
    after a fork. `password` may be a function: it is asked for each new connection.
    """

    def __init__(
        self,
        url: str,
        *,
        password: str | Callable[[], str] = "",
        timeouts: Timeouts | None = None,
        connections_max: int = 8,
    ) -> None:
        self._timeouts = timeouts or Timeouts()
        self._links = Connections(
            url,
            password=password,
            connect_seconds=self._timeouts.connect_seconds,
            connections_max=connections_max,
        )
        self._lock = threading.Lock()
        self._rules: dict[str, tuple[int, ArgumentRules, ToolRedaction]] = {}
        self._hidden = Hidden()

    @override
    def __repr__(self) -> str:
        return f"PostgresTransport({self._links.address})"

    def claim(self, request: ClaimRequest) -> ClaimAnswer:
        for _ in range(RULES_TRIES_MAX):
            try:
                values = self._call_values(request)
            except Refused as refused:
                raise problem_of_refusal(refused) from None
            (row,) = self._ask(CLAIM, values)
            answer = read_answer(row, request)
            if answer is not None:
                self._remember(request, answer, sent=values[PLACE_OF_ARGUMENTS])
                return answer
            self._forget_rules()
        raise LedgerUnavailable(f"{request.tool} is being changed at the ledger. Ask again.")

    def claim_batch(self, requests: Sequence[ClaimRequest]) -> list[ClaimAnswer | LedgerProblem]:
        check_batch(len(requests))
        answers = answer_all(
            requests, prepare=self._member, ask=self._ask_batch, forget_rules=self._forget_rules
        )
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, ClaimAnswer):
                self._remember(request, answer)
        return [
            answer if isinstance(answer, ClaimAnswer) else problem_of_refusal(answer)
            for answer in answers
        ]

    def status(self, claim: str) -> ClaimAnswer:
        meant = read_reference(claim)
        caller = None if meant.caller_key is None else encoded(meant.caller_key)
        values = (meant.claim_id, meant.key, caller)
        return self._shown(STATUS, values, claim)

    def wait(self, claim_id: UUID, *, seconds: int) -> ClaimAnswer:
        until = time.monotonic() + min(seconds, WAIT_SECONDS_MAX)
        pause_seconds = POLL_SECONDS_FIRST
        first = told = self.status(str(claim_id))
        # No connection is held while nothing is asked.
        while (left_seconds := until - time.monotonic()) > 0 and not is_news(told, first):
            time.sleep(min(pause_seconds, left_seconds))
            pause_seconds = min(2 * pause_seconds, POLL_SECONDS_MAX)
            told = self.status(str(claim_id))
        return told

    def sent(self, claim_id: UUID, hint: Sent) -> None:
        self._ask(SENT, (claim_id, hint.fence), claim_id, seconds=self._timeouts.hint_seconds)

    def heartbeat(self, claim_id: UUID, beat: Heartbeat) -> HeartbeatAnswer:
        ((word, lease_until),) = self._ask(HEARTBEAT, (claim_id, beat.fence), claim_id)
        return HeartbeatAnswer(word=word, lease_until=lease_until)

    def report(self, claim_id: UUID, report: Report) -> ClaimAnswer:
        report = self._without_secrets(claim_id, fit_report(report))
        complete = report if isinstance(report, Complete) else None
        values = (
            claim_id,
            report.fence,
            _outcome(report),
            report.provider_object,
            report.replayed,
            report.marker_sent,
            complete.result if complete else None,
            complete.result_stored and complete.result is not None if complete else None,
            report.worker,
            report.delivery_count,
            report.retry_count,
            report.response_id,
            report.call_id,
            report.http_status,
            report.provider_code,
            report.request_id,
            report.error,
        )
        return self._shown(REPORT, values, claim_id)

    def offline(self, call: OfflineCall) -> ClaimAnswer:
        raise BadRequest(
            f"Attempt {call.attempt} was sent while the ledger was away, which is told over HTTP "
            "only. Give the spool to a client with the address of the API."
        )

    def close(self) -> None:
        self._links.close()

    def _ask(
        self,
        statement: Statement,
        values: Sequence[Any],
        claim: UUID | str = "",
        *,
        seconds: float | None = None,
    ) -> list[list[Any]]:
        answer_seconds = self._timeouts.answer_seconds if seconds is None else seconds
        rows = self._links.ask(statement, values, seconds=answer_seconds)
        if rows is None:
            raise not_found(str(claim))
        return rows

    def _shown(self, statement: Statement, values: Sequence[Any], claim: UUID | str) -> ClaimAnswer:
        (row,) = self._ask(statement, values, claim)
        return status_answer(read_shown(row))

    def _call_values(self, request: ClaimRequest) -> tuple[Any, ...]:
        """The claim as `CALL_FIELDS` name it. Raises `Refused` and `BadRequest`."""
        field = unstorable_field(request)
        if field is not None:
            raise BadRequest(f"{field} holds U+0000, which the ledger cannot store.")
        if request.tool not in self._rules:
            # To ask for a tool's rules enters it, and nothing is recorded of what is refused.
            digest_parts(call_facts(0, request, NO_RULES))
        version, rules, redaction = self._rules_of(request.tool)
        parts = digest_parts(call_facts(0, request, rules))
        return (
            request.tool,
            version,
            str(request.effect_class),
            redact(request.arguments, redaction.arguments).text,
            request.conversation,
            request.turn_index,
            request.position,
            request.ordinal,
            request.response_id,
            request.call_id,
            parts.weak_call_id,
            bytes.fromhex(request.nonce) if request.nonce else None,
            request.repeat_of,
            request.worker,
            request.delivery_count,
            request.retry_count,
            request.agent,
            request.checkpoint,
            request.user_spoke,
            parts.tool,
            parts.arguments,
            parts.conversation,
            parts.turn_index,
            parts.ordinal,
            parts.call,
            parts.local,
            parts.caller,
            parts.business,
            redaction.version,
        )

    def _remember(
        self, request: ClaimRequest, answer: ClaimAnswer, *, sent: str | None = None
    ) -> None:
        known = self._rules.get(request.tool)
        if known is None or answer.code not in PERMITS_A_SEND or answer.claim_id is None:
            return
        asked = Redacted(request.arguments)
        if sent != request.arguments:
            asked = redact(request.arguments, known[2].arguments)
        self._hidden.note(answer.claim_id, request.tool, asked)

    def _without_secrets(self, claim_id: UUID, report: Report) -> Report:
        """The report with everything hidden that may not be stored: nobody seals it on its way."""
        result = report.result if isinstance(report, Complete) else None
        rules = {tool: known[2] for tool, known in self._rules.copy().items()}
        error, kept = self._hidden.hide(claim_id, (report.error, result), rules)
        if (error, kept) == (report.error, result):
            return report
        return report.model_copy(
            update={"error": error} if result is None else {"error": error, "result": kept}
        )

    def _member(self, request: ClaimRequest) -> dict[str, Any]:
        values = zip(CALL_FIELDS, self._call_values(request), strict=True)
        return {name: _in_json(value) for name, value in values if value is not None}

    def _ask_batch(self, members: list[dict[str, Any]]) -> list[list[Any]]:
        # Where they differ, one is out of date, and then all of them are asked again.
        version = min(member.get("redaction", 0) for member in members)
        return self._ask(BATCH, (json.dumps(members), version))

    def _rules_of(self, tool: str) -> tuple[int, ArgumentRules, ToolRedaction]:
        known = self._rules.get(tool)
        if known is None:
            ((version, rules, redaction),) = self._ask(TOOL, (tool,))
            known = (
                version,
                read_rules(json.loads(rules)),
                read_redaction(json.loads(redaction)),
            )
            with self._lock:
                if len(self._rules) >= TOOLS_REMEMBERED_MAX:
                    self._rules.clear()
                self._rules[tool] = known
        return known

    def _forget_rules(self) -> None:
        with self._lock:
            self._rules.clear()


def _outcome(report: Report) -> str:
    if isinstance(report, Complete):
        return Outcome.COMPLETED
    return report.proof if isinstance(report, Fail) else Outcome.UNKNOWN


def _in_json(value: Any) -> Any:
    """As PostgreSQL reads it from a JSON text: bytes in hex."""
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value) if isinstance(value, UUID) else value
