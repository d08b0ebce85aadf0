"""A token that this process saw a moment ago costs no question of its own, and is asked about all
the same: by the statement that claims or reports."""

from dataclasses import dataclass, field

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from effects.core.vocabulary import ClaimState, TokenScope
from effects.models import Tool
from ledger import auth, functions
from ledger.models import ApiToken, Claim
from tests.ledger.conftest import EVERYTHING
from tests.support.agents import Agent, asked, in_process

pytestmark = pytest.mark.django_db(transaction=True)
REPORT = {"fence": 1, "result": "1"}


@dataclass
class Known:
    """An agent whose token the process has seen, and the ledger's statements since."""

    agent: Agent
    token: ApiToken
    statements: list[str] = field(default_factory=list)


@pytest.fixture
def known(shop, refund, client, monkeypatch):
    token, plain = auth.issue(shop, "known", EVERYTHING, user=None)
    it = Known(agent=Agent(token=plain, send=in_process(client)), token=token)
    assert it.agent.claim(conversation="c-0").status == 201
    really = functions._run  # noqa: SLF001 - what reaches the database is counted

    def run(statement, parameters):
        it.statements.append(statement)
        return really(statement, parameters)

    monkeypatch.setattr(functions, "_run", run)
    return it


def complete(agent, claimed):
    return agent.post(f"claims/{claimed.json['claim_id']}/complete", REPORT)


def test_a_claim_and_its_report_are_one_statement_each(known):
    with CaptureQueriesContext(connection) as others:
        claimed = known.agent.claim(conversation="c-1")
        done = complete(known.agent, claimed)

    assert (claimed.status, done.status) == (201, 200)
    assert done.json["state"] == ClaimState.COMPLETED
    assert len(known.statements) == 2
    assert others.captured_queries == []


def test_a_revoked_token_claims_nothing_from_the_next_request_on(shop, known):
    auth.revoke(shop, known.token.pk)

    refused = known.agent.claim(conversation="c-1")

    assert (refused.status, refused.code) == (401, "token_refused")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert not Claim.objects.filter(conversation="c-1").exists()


def test_a_revoked_token_reports_nothing_from_the_next_request_on(shop, known):
    claimed = known.agent.claim(conversation="c-1")
    auth.revoke(shop, known.token.pk)

    refused = complete(known.agent, claimed)

    assert (refused.status, refused.code) == (401, "token_refused")
    assert Claim.objects.get(conversation="c-1").state == ClaimState.IN_FLIGHT


def test_a_token_that_was_seen_for_one_scope_does_not_open_another(shop, refund, client):
    _, plain = auth.issue(shop, "reader", (TokenScope.READ,), user=None)
    reader = Agent(token=plain, send=in_process(client))

    assert reader.get("claims/nobody").status == 404
    assert reader.claim().code == "scope_missing"
    assert reader.claim().code == "scope_missing"


def test_the_use_of_a_token_is_noted_again_after_a_while(known, monkeypatch):
    monkeypatch.setattr(auth, "_known", {})

    known.agent.claim(conversation="c-1")
    known.agent.claim(conversation="c-2")

    # Looked up once, then asked about by the claim's own statement.
    assert [" WHERE hash = " in statement for statement in known.statements] == [True, False, False]


def test_a_connection_that_the_server_has_left_carries_no_claim(known):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (own,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [own])
    other.close()

    assert known.agent.claim(conversation="c-1").status == 201


def test_more_tokens_than_are_remembered_are_served(shop, refund, client, monkeypatch):
    monkeypatch.setattr(auth, "TOKENS_REMEMBERED_MAX", 2)
    for number in range(5):
        _, plain = auth.issue(shop, f"agent {number}", EVERYTHING, user=None)
        agent = Agent(token=plain, send=in_process(client))
        assert agent.claim(conversation=f"c-{number}").status == 201
    assert len(auth._known) <= 2  # noqa: SLF001 - nobody outside can see what is remembered


def test_a_revoked_token_enters_no_tool(shop, known):
    auth.revoke(shop, known.token.pk)

    refused = known.agent.claim(tool="never_heard_of")

    assert (refused.status, refused.code) == (401, "token_refused")
    assert not Tool.objects.filter(name="never_heard_of").exists()


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"arguments": '{"n": NaN}'}, id="arguments that cannot be compared"),
        pytest.param({"tool": "ü" * 200}, id="a name of too many bytes"),
        pytest.param({"conversation": None, "call_id": None}, id="no identity"),
    ],
)
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "in a batch"])
def test_a_claim_that_is_refused_enters_no_tool(known, bad, batch):
    tools = Tool.objects.count()
    claim = asked(**({"tool": "never_heard_of"} | bad))

    answer = known.agent.post("claims:batch", {"claims": [claim]}) if batch else None
    refused = answer.json["answers"][0]["problem"] if answer else known.agent.post("claims", claim)

    assert (refused["status"] if batch else refused.status) in {400, 422}
    assert Tool.objects.count() == tools
