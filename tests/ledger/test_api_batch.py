"""`POST claims:batch` as an agent sees it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from effects.core.messages import CLAIMS_PER_BATCH_MAX, BatchAnswer
from effects.core.vocabulary import AnswerCode, EffectClass, TokenScope
from effects.models import Tool, Workspace
from ledger import auth


@pytest.fixture
def token(shop: Workspace, refund: Tool) -> str:
    return auth.issue(shop, "an agent", (TokenScope.CLAIM,), user=None)[1]


def post(client: Client, token: str, body: Any) -> Any:
    return client.post(
        "/api/v1/claims:batch",
        body,
        content_type="application/json",
        headers={"authorization": f"Bearer {token}"},
    )


def a_claim(position: int, **more: Any) -> dict[str, Any]:
    usual = {"tool": "refund", "effect_class": "keyed_write", "conversation": "c", "turn_index": 1}
    return usual | {"position": position, "arguments": f'{{"amount":{position}}}'} | more


def test_each_claim_gets_its_own_answer_and_a_bad_one_costs_only_itself(
    client: Client, token: str
) -> None:
    claims = [
        a_claim(0),
        a_claim(1, arguments='{"amount":NaN}'),
        {"tool": "refund", "ordinal": False},
        "not a claim",
        a_claim(4, worker="w\x00"),
        a_claim(5, conversation=None, turn_index=None),
        a_claim(6),
        a_claim(0),
    ]
    response = post(client, token, {"claims": claims})
    assert response.status_code == 200
    answers = BatchAnswer.model_validate_json(response.content).answers
    codes = [
        item.answer.code if item.answer else item.problem and item.problem.code for item in answers
    ]
    assert codes == [
        AnswerCode.GRANTED,
        "arguments_refused",
        "input_invalid",
        "input_invalid",
        "input_invalid",
        "no_identity",
        AnswerCode.GRANTED,
        AnswerCode.IN_FLIGHT,
    ]
    first = answers[0].answer
    assert first
    assert first.effect_class is EffectClass.KEYED_WRITE
    assert first.key
    assert first.for_model


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"claims": [a_claim(n) for n in range(65)]}, 413, "limit_exceeded", id="many"),
        pytest.param([a_claim(0)], 422, "input_invalid", id="a list"),
        pytest.param({"claim": []}, 422, "input_invalid", id="misspelt"),
    ],
)
def test_a_batch_that_is_none_is_refused_as_a_whole(
    client: Client, token: str, body: Any, status: int, code: str
) -> None:
    response = post(client, token, body)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_the_limit_is_named(client: Client, token: str) -> None:
    response = post(client, token, {"claims": [{}] * (CLAIMS_PER_BATCH_MAX + 1)})
    assert response.json()["limit"] == "CLAIMS_PER_BATCH_MAX"
    assert post(client, token, {"claims": []}).json() == {"answers": []}


def test_a_token_for_reading_may_not_claim(client: Client, shop: Workspace) -> None:
    reads_only = auth.issue(shop, "a reader", (TokenScope.READ,), user=None)[1]
    assert post(client, reads_only, {"claims": []}).status_code == 403
