"""Which answers prove that a write was refused: the shape of a provider's table, and its reading.

A table is a value. The two that agents carry stand in `effects.core.answers`; every other
provider's is one of these, narrowed by what its contract says. The order of the questions is the
rule:

1. Was the write answered by the provider at all? A gateway's word says only what the gateway did.
2. Does a code in the body leave it open? The body outranks the status.
3. Is it the stored answer of the key's one execution? Then it speaks for the first request too.
4. Was this the first request of the attempt? A later one may be turned away at the gate while the
   first one took effect, so an answer to it proves nothing.
5. Only then does the status count, and only if the table lists it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from effects.core.vocabulary import Outcome

__all__ = [
    "AnswerMeaning",
    "RefusalTable",
    "Reply",
    "codes_of_body",
    "explain_codes",
    "proves_refusal",
]

CODES_READ_MAX: Final = 50
"""How many codes of one body are looked at; a body with more proves nothing."""
DEPTH_READ_MAX: Final = 4
CODE_MEMBERS: Final = frozenset(
    {
        *("code", "type", "error", "error_code", "errorcode", "error_codes", "error_type"),
        *("errortype", "reason", "issue", "name", "__type"),
    }
)
"""Members of an error body whose text is a code, in lower case, as providers name them."""
NESTING_MEMBERS: Final = frozenset({"error", "errors", "details", "usererrors", "data"})
"""Members of an error body in which further codes stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMeaning:
    """`why` is one clause for people, without a full stop."""

    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalTable:
    """Which answers of one provider prove a refusal, by status; every reason is one clause.

    `refusals`: given instead of acting. `declines`: the write was executed and failed, and the
    answer is stored under the key. `storable`: what a replayed answer may be, so that it is the
    stored answer of the key's only execution. `coded`: statuses that count only with one of these
    codes in the body; an empty set asks for any code. `open_statuses`, `open_codes` (whole codes)
    and `open_parts` (parts of codes) leave open what was done, whatever else is known; codes are
    compared in lower case. `replay_marker` is the header, in lower case, and its value by which an
    answer says that it is a stored one. `hosts`: who answers for the provider, subdomains included;
    empty where nobody said.
    """

    name: str
    refusals: Mapping[int, str]
    declines: Mapping[int, str] = field(default_factory=dict)
    storable: frozenset[int] = frozenset()
    coded: Mapping[int, frozenset[str]] = field(default_factory=dict)
    open_statuses: Mapping[int, str] = field(default_factory=dict)
    open_codes: Mapping[str, str] = field(default_factory=dict)
    open_parts: Mapping[str, str] = field(default_factory=dict)
    replay_marker: tuple[str, str] | None = None
    hosts: frozenset[str] = frozenset()

    def narrowed(
        self,
        *,
        without: Mapping[int, str] | None = None,
        needs_code: frozenset[int] = frozenset(),
        open_codes: Mapping[str, str] | None = None,
        hosts: frozenset[str] = frozenset(),
    ) -> RefusalTable:
        """The table with fewer proofs, never with more: there is no way to add a row to one.

        `without` gives statuses that prove nothing here, with the reason; `needs_code` statuses
        that count only if the body holds a code; `open_codes` codes that leave it open. `hosts` may
        restrict who speaks for the provider, and must name hosts that already did where the table
        has any: raises ValueError otherwise.
        """
        strangers = [host for host in hosts if self.hosts and not _within(host, self.hosts)]
        if strangers:
            raise ValueError(f"{', '.join(sorted(strangers))} would widen who answers for it.")
        return replace(
            self,
            coded={**dict.fromkeys(needs_code, frozenset()), **self.coded},
            open_statuses={**self.open_statuses, **(without or {})},
            open_codes={
                **self.open_codes,
                **{code.lower(): why for code, why in (open_codes or {}).items()},
            },
            hosts=hosts or self.hosts,
        )

    def says_replayed(self, headers: Mapping[str, str]) -> bool | None:
        """Whether an answer with these headers is a stored one; None where it cannot be told."""
        if self.replay_marker is None or not headers:
            return None
        name, value = self.replay_marker
        return headers.get(name) == value

    def rows(self) -> Iterator[tuple[int, str]]:
        """The statuses that can prove a refusal on a first send, with their reasons, in order."""
        for status, why in sorted({**self.refusals, **self.declines}.items()):
            if status not in self.open_statuses:
                yield status, why

    def doubt(self, status: int, codes: tuple[str, ...]) -> str | None:
        """Why an answer proves nothing whatever else is known of it, or None."""
        words = [code.lower() for code in codes]
        exact = next((self.open_codes[word] for word in words if word in self.open_codes), None)
        if exact is not None:
            return exact
        if status in self.open_statuses:
            return self.open_statuses[status]
        return next(
            (why for part, why in self.open_parts.items() if any(part in word for word in words)),
            None,
        )

    def of_first_send(self, status: int, codes: tuple[str, ...]) -> AnswerMeaning:
        """What the status proves where nothing else speaks against it."""
        wanted = self.coded.get(status)
        if wanted is not None and not codes:
            return _unknown("without its code it may be an idempotency error, which proves nothing")
        if wanted and wanted.isdisjoint(code.lower() for code in codes):
            return _unknown(f"status {status} counts here only with a code that is not there")
        if status in self.declines:
            return AnswerMeaning(outcome=Outcome.REFUSED_STORED, why=self.declines[status])
        if status in self.refusals:
            return AnswerMeaning(outcome=Outcome.REFUSED, why=self.refusals[status])
        return _unknown(f"status {status} is no proof that nothing was done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One HTTP answer to a write, as much of it as decides what it proves.

    `body` is the decoded JSON; None where it is no JSON or was not read. `headers` by their names
    in lower case. `host` is who answered, where that is known. `first_send` is true only if no
    earlier request of the same attempt can have reached the provider.
    """

    status: int
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None
    first_send: bool = False


def proves_refusal(reply: Reply, table: RefusalTable) -> AnswerMeaning:
    """What a provider's answer to a write proves, under its contract: pure, and total.

    REFUSED: nothing was done. REFUSED_STORED: it was executed, failed, and the failure is stored
    under the key, so the next attempt needs another one. UNKNOWN: everything else, every success
    and every 5xx among them; then somebody has to look.
    """
    if reply.host is not None and table.hosts and not _within(reply.host, table.hosts):
        return _unknown(
            f"{reply.host} is not known to be the provider: a gateway may have answered"
        )
    return explain_codes(
        table,
        reply.status,
        codes_of_body(reply.body),
        first_send=reply.first_send,
        replayed=table.says_replayed(reply.headers) is True,
    )


def explain_codes(
    table: RefusalTable,
    http_status: int,
    codes: tuple[str, ...],
    *,
    first_send: bool,
    replayed: bool,
) -> AnswerMeaning:
    """The same for an answer whose codes were read already."""
    if not 400 <= http_status <= 499:
        return _unknown(_outside_4xx(http_status))
    if len(codes) > CODES_READ_MAX:
        return _unknown(f"the body holds more than {CODES_READ_MAX} codes")
    doubt = table.doubt(http_status, codes)
    if doubt is not None:
        return _unknown(doubt)
    if replayed:
        return _replayed(table, http_status)
    if not first_send:
        return _unknown("an earlier request of this attempt may have taken effect")
    return table.of_first_send(http_status, codes)


def codes_of_body(body: object) -> tuple[str, ...]:
    """The texts of an error body that stand where providers write a code, a few levels deep."""
    return tuple(islice(_codes_in(body, depth=0), CODES_READ_MAX + 1))


def _codes_in(body: object, *, depth: int) -> Iterator[str]:
    if depth > DEPTH_READ_MAX:
        return
    if isinstance(body, list):
        for item in body:
            yield from _codes_in(item, depth=depth + 1)
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from _codes_in_member(str(name).lower(), value, depth)


def _codes_in_member(name: str, value: Any, depth: int) -> Iterator[str]:
    if name in CODE_MEMBERS:
        for text in value if isinstance(value, list) else [value]:
            # A number there mostly repeats the status, which any gateway can do.
            if isinstance(text, str) and text:
                yield text
    if name in NESTING_MEMBERS and isinstance(value, dict | list):
        yield from _codes_in(value, depth=depth + 1)


def _replayed(table: RefusalTable, http_status: int) -> AnswerMeaning:
    if not table.storable:
        return _unknown("no published rule says what a replayed answer means here")
    if http_status not in table.storable:
        return _unknown(f"a replayed {http_status} contradicts the published rules")
    # Also on a later request: the stored answer is that of the key's one execution.
    why = "this is the stored answer of the only execution under this key"
    return AnswerMeaning(outcome=Outcome.REFUSED_STORED, why=why)


def _outside_4xx(http_status: int) -> str:
    if http_status >= 500:
        # Stripe stores a 500 and may still complete the payment later; a gateway's 502 to 504
        # says only that it lost the server behind it.
        return "a server error says nothing about what was done before it"
    return "this status is not an error, so the request may have taken effect"


def _unknown(why: str) -> AnswerMeaning:
    return AnswerMeaning(outcome=Outcome.UNKNOWN, why=why)


def _within(host: str, hosts: frozenset[str]) -> bool:
    name = host.lower().partition(":")[0].rstrip(".")
    return any(name == own or name.endswith(f".{own}") for own in hosts)
