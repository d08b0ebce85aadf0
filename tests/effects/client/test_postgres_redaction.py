"""An agent that speaks to PostgreSQL itself hides before it sends, by the rules in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from effects.client.postgres_link import Statement
from effects.client.transport_postgres import CLAIM, TOOL, PostgresTransport
from effects.core.messages import ClaimRequest, Complete, Unknown
from effects.core.redaction import Mode, Secret
from effects.core.vocabulary import AnswerCode, EffectClass
from effects.models import Tool, Workspace
from effects.redaction import changing, rules
from ledger import agents, claiming
from ledger.models import AgentRole, Claim, Event, SealedText

CARD = "4242424242424242"


@pytest.fixture
def shop(transactional_db: None) -> Iterator[Workspace]:
    made = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    Tool.objects.create(
        workspace=made, name="pay", effect_class=EffectClass.KEYED_WRITE, window_seconds=86_400
    )
    rules.forget_all()
    claiming.forget_tools()
    yield made
    rules.forget_all()
    claiming.forget_tools()


@pytest.fixture
def agent(shop: Workspace) -> Iterator[PostgresTransport]:
    transport = PostgresTransport(agents.create(shop, "an agent").url)
    yield transport
    transport.close()


def asked(arguments: str, turn: int = 1, **changes: Any) -> ClaimRequest:
    usual: dict[str, Any] = {
        "tool": "pay",
        "effect_class": EffectClass.KEYED_WRITE,
        "arguments": arguments,
        "conversation": "c",
        "turn_index": turn,
    }
    return ClaimRequest(**(usual | changes))


def hide(shop: Workspace, path: str) -> None:
    changing.add(
        shop, path, where="all", mode=Mode.HIDE, tool=None, user=None, reason="Not for everybody."
    )


def statements_sent(agent: PostgresTransport, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    sent: list[bytes] = []
    real = agent._links.ask  # noqa: SLF001 - what goes over the wire

    def asking(statement: Statement, values: Sequence[Any], **more: Any) -> Any:
        sent.append(statement.name)
        return real(statement, values, **more)

    monkeypatch.setattr(agent._links, "ask", asking)  # noqa: SLF001 - as above
    return sent


def test_secrets_and_what_an_error_quotes_of_them_never_reach_the_database(
    agent: PostgresTransport, shop: Workspace
) -> None:
    first = agent.claim(asked(f'{{"card": "{CARD}", "api_key": "key-zzz-1", "n": 1.10}}'))
    other = agent.claim(asked('{"card": "4000000000024242", "api_key": "key-zzz-1", "n": 1.10}', 2))
    assert first.claim_id is not None
    assert other.claim_id is not None
    agent.report(first.claim_id, Unknown(fence=1, error="401 for key-zzz-1"))
    agent.report(other.claim_id, Complete(fence=1, result='{"client_secret":"s1","n":2.0}'))

    assert {first.code, other.code} == {AnswerCode.GRANTED}, "other cards are other operations"
    one, two = Claim.objects.order_by("turn_index")
    assert one.arguments == '{"card": "....4242", "api_key": "....", "n": 1.10}'
    assert one.arguments == two.arguments
    assert one.arguments_digest != two.arguments_digest
    assert two.result == '{"client_secret":"....","n":2.0}'
    (reported,) = Event.objects.filter(claim=one, kind="reported")
    assert (reported.data or {})["error"] == "401 for ...."
    assert not SealedText.objects.exists(), "without a key nothing is sealed"


def test_a_call_is_the_same_one_over_http_and_straight(
    agent: PostgresTransport, shop: Workspace
) -> None:
    request = asked(f'{{"card": "{CARD}"}}')
    agent.claim(request)

    assert claiming.claim(shop.pk, request).code is AnswerCode.IN_FLIGHT


def test_a_new_rule_is_read_once_and_holds_for_the_next_claim(
    agent: PostgresTransport, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.claim(asked('{"email": "a@b.example"}'))
    hide(shop, "$.email")
    sent = statements_sent(agent, monkeypatch)
    agent.claim(asked('{"email": "c@d.example"}', 2))
    batch = agent.claim_batch([asked('{"email": "e@f.example"}', 3), asked('{"n": 4}', 4)])
    changing.switch(shop, Secret.CARD, on=False, user=None, reason="Test cards.")
    agent.claim_batch([asked(f'{{"card": "{CARD}"}}', 5)])

    assert sent[:3] == [CLAIM.name, TOOL.name, CLAIM.name]
    assert [getattr(one, "code", None) for one in batch] == [AnswerCode.GRANTED] * 2
    kept = dict(Claim.objects.values_list("turn_index", "arguments"))
    assert kept[1] == '{"email": "a@b.example"}'
    assert kept[2] == kept[3] == '{"email": "...."}'
    assert kept[5] == f'{{"card": "{CARD}"}}'


def test_a_rule_that_only_a_newer_client_reads_hides_everything(
    agent: PostgresTransport, shop: Workspace
) -> None:
    hide(shop, "$.email")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE effects_redactionrule SET path = '$.a[?(@.b)]'")
    agent.claim(asked('{"email": "a@b.example"}'))

    assert Claim.objects.get().arguments == '"...."'


def test_a_role_that_is_made_later_begins_with_the_version_in_force(shop: Workspace) -> None:
    hide(shop, "$.email")
    hide(shop, "$.name")
    transport = PostgresTransport(agents.create(shop, "a later agent").url)

    assert AgentRole.objects.get().redaction_version == 2
    assert transport.claim(asked('{"name": "Ilse"}')).code is AnswerCode.GRANTED
    assert Claim.objects.get().arguments == '{"name": "...."}'
    transport.close()
