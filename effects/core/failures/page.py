"""The page docs/errors.md, made from the tables that sort, so that it cannot say anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from effects.core.answers import (
    GENERIC_REFUSALS,
    GRPC_REFUSALS,
    STRIPE_REFUSALS,
    STRIPE_STORABLE,
)
from effects.core.failures.row import Client, ErrorProof
from effects.core.failures.rows_python import CONNECTING
from effects.core.failures.sends import REPEATERS
from effects.core.failures.table import CLIENTS, ROWS_MAX

__all__ = ["error_page"]

_OUTCOMES: Final[Mapping[ErrorProof, str]] = {
    ErrorProof.UNSENT: "**not sent**",
    ErrorProof.WHILE_CONNECTING: "**not sent** while connecting, else unknown",
    ErrorProof.ITS_CAUSE: "as its cause",
    ErrorProof.ITS_ANSWER: "by its status and the contract",
    ErrorProof.NOTHING: "unknown",
}

_HEAD: Final = """\
# How an exception is sorted

Made from the tables in `effects/core/failures` by `python -m effects.core.failures`; not edited by
hand.

A tool's exception becomes *not sent*, *refused*, *refused, stored* or *unknown*. Whatever is not
listed is unknown, and so is everything that is raised once the send may have begun. These rules
stand above the tables:

- A row holds for exactly its class, by package and name, and for no subclass. Answers are the
  exception: a subclass of an answered error carries an answer too.
- Every exception of the chain (causes, contexts also where they are not shown, members of a group)
  must agree. One that is not listed, such as a tool's own wrapper, makes it unknown.
- An earlier request of the same attempt destroys the proof. Repeats and redirects are read from the
  traceback, from the answer, and from headers that the SDKs write. How many requests were seen is
  in `failure.sends_seen`, and the report tells the ledger how many were repeats (`retry_count`).
- What your own transport, hook or middleware repeats cannot be seen behind an answer: turn such
  repeats off in a tool that changes something.
- `raise NotSent("why")` is a tool's own word, and is believed.
"""

_OWN_ROWS: Final = f"""\
## Rows of your own

```python
from effects.client import ErrorProof, ErrorRow, ErrorRules, effect

RULES = ErrorRules(
    contract="stripe.v1",
    rows=(
        ErrorRow(exception=QueueClosed, proof=ErrorProof.UNSENT, why="the queue takes nothing"),
        ErrorRow(exception=PayFailed, proof=ErrorProof.ITS_CAUSE, why="it wraps the SDK's error"),
    ),
)

@effect(ledger, effect_class="keyed_write", contract=RULES)
def pay(call, *, amount): ...
```

A row says what a proof can say, and nothing else: `UNSENT` (only for code that raises it before a
byte is sent, and that sends once), `WHILE_CONNECTING` (the traceback decides, by the functions at
the end), `ITS_CAUSE` (a wrapper: what it wraps is read, an answer too) or `NOTHING`. It is for one
exact class. A class that is listed here, or that Python itself raises, may only be narrowed to
`NOTHING`; anything else is refused with a `ValueError` when the row is made. At most {ROWS_MAX}
rows. Where a row of yours decided, `failure.why` says so. An earlier request still destroys its
proof.
"""


def error_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD, *(_client(client) for client in CLIENTS), *_answers(), _OWN_ROWS, _places()]
    return "\n".join(parts)


def _client(client: Client) -> str:
    lines = [f"## {client.name}", "", "| exception | raised when | outcome |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {row.when} | {_OUTCOMES[row.proof]} |" for row in client.rows]
    notes = client.notes.strip("\n")
    return "\n".join([*lines, *(["", notes] if notes else []), ""])


def _answers() -> Iterator[str]:
    yield """\
## Answers

Read by a contract: Stripe's own exceptions by `stripe.v1`, everything else by `generic`, unless the
tool says otherwise. Only an answer to the first request of the attempt can be a refusal. A code in
the body outranks the status: one that speaks of an earlier request (idempotency, already, exists,
conflict, a condition) or leaves open what was done (in use, in progress, timeout) is unknown.
Statuses that are not in a table, 408, 409, 425 and every 5xx among them, are unknown.
"""
    yield _statuses("generic", GENERIC_REFUSALS)
    yield _statuses("stripe.v1", STRIPE_REFUSALS)
    stored = ", ".join(str(status) for status in sorted(STRIPE_STORABLE))
    yield (
        "402 is refused and stored: the payment was executed and declined; the key is used up.\n"
        f"With `Idempotent-Replayed: true` {stored} are the stored answer of the key's only\n"
        "execution, also on a later request. 429 is never replayed: on a later request it says\n"
        "nothing of the first.\n"
    )
    yield _statuses("grpc", GRPC_REFUSALS)


def _statuses(contract: str, refusals: Mapping[int, str] | Mapping[str, str]) -> str:
    lines = [f"| `{contract}` | refused, because |", "|---|---|"]
    return "\n".join([*lines, *(f"| {status} | {why} |" for status, why in refusals.items()), ""])


def _places() -> str:
    places = ", ".join(f"`{package}: {name}`" for package, name in sorted(CONNECTING))
    repeaters = ", ".join(f"`{package}`" for package in sorted(REPEATERS))
    return f"""\
## What only connects, what only repeats

An exception passed through one of these functions before a byte of the request was sent:
{places}.

A frame of one of these packages means that an earlier request cannot be excluded, unless it counts
its tries and this was the first: {repeaters}.
"""
