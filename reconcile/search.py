"""One search box: our id, a provider's id, a key, a request id, a customer, an amount.

The text is tried as everything that it can be at once; nobody has to say what they typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from effects.core.references import read_reference
from reconcile.views.amounts import read_amount

FRAGMENT_CHARACTERS_MIN: Final = 6
"""Shortest piece of one of our ids that is looked for: shorter ones match half the queue."""

_FRAGMENT: Final = re.compile(r"(?:call_)?([0-9a-f][0-9a-f-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A condition on the table `seen s`, and the parameters that it names.

    `named` is a condition on a claim's own indexed columns: what the text names outright is found
    however old it is. `understood` is what the text was looked for as, in words.
    """

    condition: str = "true"
    named: str = "false"
    understood: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)


EVERYTHING: Final = Search()


def search_for(workspace_id: int, text: str) -> Search:
    """What `text` may mean. Empty text finds everything."""
    if not text:
        return EVERYTHING
    conditions = [
        "q_text IN (s.object, s.call_id, s.conversation, s.response_id)",
        "s.customer ILIKE q_like OR s.summary ILIKE q_like",
        """EXISTS (SELECT FROM ledger_event e WHERE e.claim_id = s.id
             AND (e.object = q_text OR q_text = ANY(e.objects_seen)
               OR e.data->>'request_id' = q_text))""",
    ]
    parameters: dict[str, Any] = {"q_text": text, "q_like": f"%{_literal(text)}%"}
    named = read_reference(text.removeprefix("call_"))
    names = {
        "id": named.claim_id,
        "key": named.key,
        "caller": read_reference(text).caller(workspace_id),
    }
    names = {column: value for column, value in names.items() if value is not None}
    conditions += [f"s.{column} = q_{column}" for column in names]
    parameters |= {f"q_{column}": value for column, value in names.items()}
    understood = [_NAMES[column] for column in names]
    if named.claim_id is None and (fragment := _fragment(text)) is not None:
        conditions.append("s.id::text LIKE q_fragment")
        parameters["q_fragment"] = f"%{fragment}%"
        understood.append("a piece of one of our ids")
    if money := read_amount(text):
        conditions.append("s.amount = ANY(q_amounts) AND q_currency IN ('', s.currency)")
        parameters |= {"q_amounts": list(money.amounts), "q_currency": money.currency}
        understood.append(f"the amount {money}{'' if money.currency else ' in any currency'}")
    joined = " OR ".join(f"({condition})" for condition in conditions)
    return Search(
        condition=_named(joined),
        named=_named(" OR ".join(f"{column} = q_{column}" for column in names) or "false"),
        understood=(*understood, _AS_A_NAME),
        parameters=parameters,
    )


_NAMES: Final = {
    "id": "the id of a call",
    "key": "an idempotency key",
    "caller": "the key that an agent gave by itself",
}
_AS_A_NAME: Final = (
    "the id of a provider's object, a request, a conversation, a tool call or a model's response, "
    "or a piece of what a call is about"
)


def _named(condition: str) -> str:
    """`q_text` becomes `%(q_text)s`: the conditions above stay readable."""
    return re.sub(r"\bq_[a-z]+\b", lambda name: f"%({name[0]})s", condition)


def _literal(text: str) -> str:
    """The text with what LIKE would take for wildcards made plain."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def _fragment(text: str) -> str | None:
    found = _FRAGMENT.fullmatch(text)
    if found is None or len(found[1]) < FRAGMENT_CHARACTERS_MIN:
        return None
    return found[1].lower()
