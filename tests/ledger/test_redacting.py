"""What is hidden before it is stored: at every door, and without losing who is who."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from effects.core.redaction import Mode, Redaction, Secret, Where, redact
from effects.core.vocabulary import EffectClass, SightingWord, TokenScope
from effects.models import AuditEntry, RedactionRule, Tool, Workspace
from effects.redaction import changing, rules
from ledger import append, queries, redacting
from ledger.models import Claim, Event, IngestItem, SealedText
from tests.cases.at_hand import the_case
from tests.ledger.mirror import claim_made, ended, event, started
from tests.support.agents import Agent, asked

pytestmark = pytest.mark.django_db

CARD = "4242424242424242"
SEALED = SealedText.Name


@pytest.fixture
def agent(hire: Callable[..., Agent], shop: Workspace, refund: Tool) -> Agent:
    return hire(shop, TokenScope.CLAIM, TokenScope.READ, TokenScope.INGEST)


def a_rule(shop: Workspace, path: str, **changes: Any) -> None:
    usual: dict[str, Any] = {
        "where": str(Where.ARGUMENTS),
        "mode": Mode.HIDE,
        "tool": None,
        "user": None,
        "reason": "Not for everybody.",
    }
    changing.add(shop, path, **(usual | changes))


def everything_stored() -> str:
    """Every row of every table, as text and as bytes."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        rows = []
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {connection.ops.quote_name(table)} t")
            rows += [row[0] for row in cursor.fetchall()]
    return "\n".join(rows)


def is_stored(secret: str) -> bool:
    stored = everything_stored()
    return secret in stored or secret.encode().hex() in stored


# A claim


@pytest.mark.case("U07")
def test_the_secrets_of_the_case_are_hidden_and_the_rest_stays_readable():
    asked, failed = the_case("U07").input["events"]
    found = redact(json.dumps(asked["args"]), Redaction())

    assert "SECRET" not in found.text
    assert found.text.count("stays-readable") == 3
    known = tuple(one.value for one in found.found)
    assert "SECRET" not in redact(failed["error"], Redaction(known=known)).text


@pytest.mark.case("U07")
def test_the_secrets_of_the_case_are_stored_nowhere_and_told_to_nobody(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    made, failed = the_case("U07").input["events"]
    claim = {"tool": "http", "effect_class": "unkeyed_write", "arguments": json.dumps(made["args"])}
    answer = agent.claim(**claim)
    other = agent.claim(**(claim | {"arguments": json.dumps({"password": "SECRET7"})}))
    report = agent.post(
        f"claims/{answer.claim['claim_id']}/unknown", {"fence": 1, "error": failed["error"]}
    )
    told = agent.get(f"claims/{answer.claim['claim_id']}")

    assert (answer.status, other.status, report.status) == (201, 422, 200)
    for number in range(1, 8):
        assert not is_stored(f"SECRET{number}")
    assert "SECRET" not in caplog.text + report.body.decode() + told.body.decode()
    stored = everything_stored()
    assert all(f"stays-readable-{number}" in stored for number in (1, 2, 3))
    (kept,) = Event.objects.filter(kind="reported")
    assert (kept.data or {})["error"] == "401 for key ...."


@pytest.mark.case("U07")
def test_hidden_values_are_compared_as_they_were(agent: Agent) -> None:
    def code(card: str) -> Any:
        return agent.claim(arguments=json.dumps({"card": card, "amount": 5})).claim.get("code")

    assert code(CARD) == "granted"
    assert code(CARD) == "in_flight", "the same request again"
    assert code("4000000000024242") == "mismatch", "both are shown as ....4242"
    text = Claim.objects.get().arguments
    assert text == '{"card": "....4242", "amount": 5}'
    assert (
        agent.claim(
            arguments=json.dumps({"card": "4000000000024242"}), turn_index=9, call_id=None
        ).status
        == 201
    )


def test_digits_order_and_spaces_stay_as_they_were_received(agent: Agent) -> None:
    text = '{"b":1.10, "a" : 1e2,"password":"x","z":"\\u00e9"}'
    claim_id = agent.claim(arguments=text).claim["claim_id"]
    claim = Claim.objects.get(pk=claim_id)

    assert claim.arguments == text.replace('"x"', '"...."')
    assert redacting.exact(claim.workspace_id, claim.pk, SEALED.ARGUMENTS, claim.arguments) == text


def test_long_arguments_are_hidden_in_before_they_are_stored_apart(agent: Agent) -> None:
    text = json.dumps({"note": "x" * 5000, "password": "hunter22"})
    claim_id = agent.claim(arguments=text).claim["claim_id"]
    claim = Claim.objects.get(pk=claim_id)

    assert not is_stored("hunter22")
    kept = queries.arguments_text(claim)
    assert redacting.exact(claim.workspace_id, claim.pk, SEALED.ARGUMENTS, kept) == text


def test_a_batch_hides_as_single_claims_do(agent: Agent) -> None:
    calls = [
        asked(arguments=json.dumps({"n": n, "api_key": f"key-{n}-zzz"}), position=n, call_id=None)
        for n in range(2)
    ]
    answers = agent.post("claims:batch", {"claims": calls}).json["answers"]

    assert [one["answer"]["code"] for one in answers] == ["granted", "granted"]
    assert not is_stored("key-0-zzz")
    shop = Workspace.objects.get(slug="shop").pk
    for one, call in zip(answers, calls, strict=True):
        claim = Claim.objects.get(pk=one["answer"]["claim_id"])
        text = redacting.exact(shop, claim.pk, SEALED.ARGUMENTS, claim.arguments)
        assert text == call["arguments"]


def test_a_dropped_value_can_be_put_back_by_nobody(agent: Agent, shop: Workspace) -> None:
    a_rule(shop, "$.iban", mode=Mode.DROP)
    a_rule(shop, "$.name")
    text = '{"iban": "DE02120300000000202051", "name": "Ilse Mark"}'
    claim = Claim.objects.get(pk=agent.claim(arguments=text).claim["claim_id"])

    shown, exact = (
        claim.arguments,
        redacting.exact(shop.pk, claim.pk, SEALED.ARGUMENTS, claim.arguments),
    )
    assert shown == '{"iban": "....", "name": "...."}'
    assert exact == '{"iban": "....", "name": "Ilse Mark"}'
    dropped, hidden = redacting.hidden_values(shop.pk, claim.pk)
    assert (dropped.path, dropped.can_be_revealed) == ("$.iban", False)
    assert (hidden.path, hidden.can_be_revealed) == ("$.name", True)
    with pytest.raises(redacting.Unrevealable, match="dropped"):
        redacting.revealed(shop.pk, claim.pk, dropped.sealed_id, dropped.number)
    one, value = redacting.revealed(shop.pk, claim.pk, hidden.sealed_id, hidden.number)
    assert (one.path, value) == ("$.name", "Ilse Mark")


def test_what_was_sealed_for_one_text_is_not_put_into_another(
    agent: Agent, shop: Workspace
) -> None:
    first = Claim.objects.get(pk=agent.claim(arguments='{"password":"aaa1"}').claim["claim_id"])
    row = SealedText.objects.get(claim_id=first.pk)
    row.text_digest = b"\0" * 32
    row.save()

    assert redacting.hidden_values(shop.pk, first.pk) == []
    assert redacting.exact(shop.pk, first.pk, SEALED.ARGUMENTS, first.arguments) == first.arguments


def test_without_the_key_it_stays_as_it_is_shown(
    agent: Agent, shop: Workspace, settings: Any
) -> None:
    claim = Claim.objects.get(pk=agent.claim(arguments='{"password":"aaa1"}').claim["claim_id"])
    settings.COUNTERFOIL_SEALING_KEYS = ["another key, of another installation, long enough"]

    assert redacting.exact(shop.pk, claim.pk, SEALED.ARGUMENTS, claim.arguments) == claim.arguments
    (one,) = redacting.hidden_values(shop.pk, claim.pk)
    with pytest.raises(redacting.Unrevealable, match="key"):
        redacting.revealed(shop.pk, claim.pk, one.sealed_id, one.number)


# Results


def test_an_agent_gets_its_own_result_back_as_it_reported_it(agent: Agent, shop: Workspace) -> None:
    result = '{"id":"pi_1","client_secret":"pi_1_secret_9","note":1.10}'
    claim_id = agent.claim().claim["claim_id"]
    report = agent.post(f"claims/{claim_id}/complete", {"fence": 1, "result": result})
    again = agent.claim()

    assert Claim.objects.get(pk=claim_id).result == result.replace("pi_1_secret_9", "....")
    assert not is_stored("pi_1_secret_9")
    for answer in (report, again, agent.get(f"claims/{claim_id}")):
        assert answer.claim["result"] == result
        assert "pi_1_secret_9" in json.dumps(answer.claim["for_model"])
    assert "pi_1_secret_9" not in queries.answer(shop.pk, Claim.objects.get().pk).model_dump_json()


def test_a_rule_about_one_tools_results_is_about_no_other(
    agent: Agent, shop: Workspace, refund: Tool, email: Tool
) -> None:
    a_rule(shop, "$.to", where=str(Where.RESULTS), tool=refund)
    for name, turn in (("refund", 1), ("email", 2)):
        claim_id = agent.claim(tool=name, turn_index=turn, call_id=None).claim["claim_id"]
        agent.post(f"claims/{claim_id}/complete", {"fence": 1, "result": '{"to":"ilse"}'})

    kept = dict(Claim.objects.values_list("tool__name", "result"))
    assert kept == {"refund": '{"to":"...."}', "email": '{"to":"ilse"}'}


# What providers answered


def test_a_providers_answer_is_hidden_in_before_it_is_cut(agent: Agent, shop: Workspace) -> None:
    claim_id = Claim.objects.get(
        pk=agent.claim(arguments='{"iban":1, "password":"hunter22"}').claim["claim_id"]
    ).pk
    agent.post(f"claims/{claim_id}/unknown", {"fence": 1})
    card = "4242 4242 4242 4242"
    raw = json.dumps({"pad": "x" * (append.RAW_BYTES_MAX - 30), "card": card})
    seen = append.Observation(
        word=SightingWord.FOUND,
        fence=1,
        counts=False,
        data={"requested": {"pw": "hunter22"}, "query": "GET /x?q=hunter22"},
        raw=raw.encode(),
    )
    append.observe(shop.pk, claim_id, seen)

    (event,) = Event.objects.filter(claim_id=claim_id, kind="sighting")
    assert event.data == {"requested": {"pw": "...."}, "query": "GET /x?q=...."}
    assert not is_stored("4242 4242"), "cut first, half of the number would be left"
    assert not is_stored("hunter22")


# Ledgers kept elsewhere


@pytest.mark.case("U07")
def test_events_from_elsewhere_keep_no_secret_and_lose_no_identity(
    agent: Agent, shop: Workspace
) -> None:
    first = claim_made(arguments='{"card": "4242424242424242", "n": 1.10}')
    sent = [
        first,
        started(),
        ended("unknown", error="declined 4242424242424242, password=hunter22"),
    ]
    answer = agent.post("events", json.dumps(sent).encode())
    again = agent.post("events", json.dumps(sent).encode())

    assert [one["word"] for one in answer.json["items"]] == ["applied"] * 3
    assert [one["word"] for one in again.json["items"]] == ["duplicate"] * 3
    assert not is_stored(CARD)
    assert not is_stored("hunter22")
    claim = Claim.objects.get()
    assert claim.arguments == '{"card": "....4242", "n": 1.10}'
    exact = redacting.exact(shop.pk, claim.pk, SEALED.ARGUMENTS, claim.arguments)
    assert exact == first["data"]["arguments"]
    assert SealedText.objects.filter(item_id__isnull=False).count() == 0


def test_a_mirrored_claim_meets_the_one_that_was_made_here(agent: Agent) -> None:
    text = '{"card": "4242424242424242", "n": 1}'
    call: dict[str, Any] = {
        "tool": "refund",
        "conversation": "c9",
        "turn_index": 1,
        "call_id": "call_zzzzzzzzzzzzzzzzzz",
    }
    mine = agent.claim(arguments=text, response_id=None, **call).claim["claim_id"]
    other = text.replace("4242424242424242", "4000000000024242")
    agent.post("events", json.dumps([claim_made(arguments=text, **call)]).encode())
    agent.post(
        "events",
        json.dumps([claim_made("k2", arguments=other, **(call | {"turn_index": 2}))]).encode(),
    )

    assert str(Claim.objects.earliest("pk").pk) == mine
    assert Claim.objects.count() == 2, "another card is another operation"


def test_a_rule_never_hides_what_an_item_is_applied_by(agent: Agent, shop: Workspace) -> None:
    a_rule(shop, "$..*", where="all")
    answer = agent.post("events", json.dumps([claim_made(), started()]).encode())

    assert [one["word"] for one in answer.json["items"]] == ["applied", "applied"]
    (claim,) = Claim.objects.all()
    assert claim.conversation == claim_made()["data"]["conversation"]
    assert claim.arguments == "...."


def test_what_cannot_be_read_is_kept_without_its_secrets(agent: Agent) -> None:
    agent.post("events", b'[{"id":"x","data":{"password":"hunter22"')

    (item,) = IngestItem.objects.all()
    assert not is_stored("hunter22")
    assert item.state == "unreadable"


def test_a_streams_calls_keep_the_size_and_the_digest_of_what_came(agent: Agent) -> None:
    arguments = '{"password":"hunter22"}'
    record: dict[str, Any] = {
        "stream": "s1",
        "conversation": "c1",
        "turn_index": 1,
        "calls": [{"position": 0, "tool": "x", "arguments": arguments, "complete": True}],
    }
    answer = agent.post("streams", json.dumps(event("s1-1", "stream.recorded", **record)).encode())

    assert answer.json["items"][0]["word"] in {"applied", "recorded"}, answer.json
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT arguments_bytes, arguments_digest = sha256(%s) FROM ledger_call",
            [arguments.encode()],
        )
        assert cursor.fetchall() == [(len(arguments), True)]
    assert not is_stored("hunter22")


# The rules


def test_a_secret_that_is_switched_off_stays_readable_and_the_change_is_kept(
    agent: Agent, shop: Workspace
) -> None:
    assert changing.switch(shop, Secret.CARD, on=False, user=None, reason="Test cards only.")
    assert not changing.switch(shop, Secret.CARD, on=False, user=None, reason="Again.")
    claim_id = agent.claim(arguments=json.dumps({"card": CARD})).claim["claim_id"]

    assert CARD in (Claim.objects.get(pk=claim_id).arguments or "")
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.reason) == ("redaction.secret_off", "Test cards only.")


def test_a_retired_rule_hides_nothing_any_more_and_is_still_known(
    agent: Agent, shop: Workspace
) -> None:
    a_rule(shop, "$.amount")
    first = agent.claim().claim["claim_id"]
    (rule,) = RedactionRule.objects.all()
    assert changing.retire(shop, rule.pk, user=None, reason="It hid too much.")
    second = agent.claim(turn_index=4, call_id=None, arguments='{"amount":42001}').claim["claim_id"]

    assert "4200" not in str(Claim.objects.get(pk=first).arguments)
    assert "42001" in str(Claim.objects.get(pk=second).arguments)
    assert rules.in_force(shop.pk).version == 2


def test_rules_of_a_neighbour_hide_nothing_here(
    agent: Agent, shop: Workspace, neighbour: Workspace
) -> None:
    theirs = Tool.objects.create(workspace=neighbour, name="x", effect_class=EffectClass.READ)
    a_rule(neighbour, "$.amount")
    with pytest.raises(ValueError, match="another workspace"):
        a_rule(shop, "$.amount", tool=theirs)
    agent.claim()

    assert "4200" in (Claim.objects.get().arguments or "")


@pytest.fixture(autouse=True)
def _rules_forgotten() -> Iterator[None]:
    rules.forget_all()
    yield
    rules.forget_all()
