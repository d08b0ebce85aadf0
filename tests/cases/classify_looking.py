"""What becomes of a case's open claims once their provider is asked: one read, and no write."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from unittest.mock import patch

from django.test import override_settings

from effects.models import Connection, Tool
from reconcile.investigate import Asking, Question, conclude, look_at, prepare
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.history import History, Known
from tests.cases.words import STATES
from tests.reconcile.adapters.loopback import loopback, whole

BEFORE: Final = "state_before_reconcile"
AFTER: Final = "state_after_reconcile"
OK: Final = 200
SECRET_NAME: Final = "COUNTERFOIL_CASE_SECRET"
OUR_REFERENCE: Final = "<key>"
"""Stands in a reply for what the request carried."""
LOOKUP: Final = {
    "url": "/records?correlation_id={reference}",
    "items": "records",
    "reference_field": "correlation_id",
    # What is on record has happened: the object has no status of its own.
    "status": "'recorded'",
    "map": {"recorded": "found"},
    "delay_class": "none",
}


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    """Plays the events, lets the provider answer as the case says, and compares both states."""
    from tests.cases.ledger import setting_of, undone  # noqa: PLC0415 - it compares layers itself

    body = _reply(given)
    before, after = expected.take(BEFORE, str), expected.take(AFTER, str)
    events = given.rest().get("events")
    policy = {name: said for name, said in given.rest().items() if name in _SETTING}
    setting = setting_of(Fields(given.where, policy))
    with undone():
        history = History(policy=setting.policy, window_seconds=setting.window_seconds)
        history.play(events if isinstance(events, list) else [])
        for known in history.claims.values():
            _compare(BEFORE, before, history, known, found)
            _ask(history, known, body)
            _compare(AFTER, after, history, known, found)


_SETTING: Final = frozenset({"policy", "provider_key_retention_hours", "now"})


def _reply(given: Fields) -> str:
    replies = given.take("provider_replies", list)
    if len(replies) != 1:
        raise Fault(given.at("provider_replies"), "is not one reply")
    reply = Fields(given.at("provider_replies[0]"), replies[0])
    reply.take("request", str, "")
    if reply.take("status", int, OK) != OK:
        raise Fault(reply.at("status"), "is not interpreted")
    body = to_text(reply.take("body", dict))
    reply.finish()
    return body


def _compare(name: str, wanted: str, history: History, known: Known, found: Findings) -> None:
    if wanted not in STATES:
        raise Fault(f"expected.{name}", f"{wanted[:60]!a} is no state")
    told = history.answer_now(known.first)
    state = told.state if told else None
    holds = state is STATES[wanted]
    found.equal(f"expected.{name}", wanted, wanted if holds else str(state))


def _ask(history: History, known: Known, body: str) -> None:
    """One look-up of the product's, at a server that knows this one answer and counts requests."""
    said = body.replace(OUR_REFERENCE, str(history.answers[known.first].marker))
    with (
        loopback(whole(said)) as server,
        override_settings(COUNTERFOIL_PRIVATE_ORIGINS=[server.url]),
        patch.dict(os.environ, {SECRET_NAME: "invented"}),
    ):
        _connect(known.workspace_id, history.asked[known.first].request.tool, server.url)
        question = prepare(known.workspace_id, known.claim_id)
        if not isinstance(question, Question):
            raise Fault("input.provider_replies", f"nobody is asked: {question.why}")
        # Nobody waits for a provider inside a transaction, and the case's is rolled back.
        with ThreadPoolExecutor(max_workers=1) as outside:
            look = outside.submit(look_at, question).result()
        conclude(question, look, Asking(trigger="case"))
    if [head for head in server.requests if not head.startswith("GET ")]:
        raise Fault("input.provider_replies", "the look-up sent something else than a read")


def _connect(workspace_id: int, tool: str, url: str) -> None:
    connection = Connection.objects.create(
        workspace_id=workspace_id,
        name=url,
        kind=Connection.Kind.HTTP,
        base_url=url,
        secret_name=SECRET_NAME,
    )
    Tool.objects.filter(workspace_id=workspace_id, name=tool).update(
        connection=connection, lookup_kind="http", lookup=LOOKUP
    )
