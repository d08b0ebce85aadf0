"""The soak: every adapter under faults, counted by the provider and by a witness in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from effects.core.identity import marker
from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.lookups import LOOKUPS, fault_of
from reconcile.sandbox.soak.account import Played, Recorded, Sighting, wrong
from reconcile.sandbox.soak.fates import SHARES, Case, Fate, cast, point
from reconcile.sandbox.soak.rails import RAILS
from reconcile.sandbox.soak.witness import Passed, Seen, Witness

ROOT = Path(__file__).resolve().parents[3]
SMALL_SECONDS_MAX = 180
BIG_SECONDS_MAX = 3600
CLAIM = UUID(int=7)
BIG = pytest.mark.slow


def soak(env: dict[str, str], *arguments: str, seconds_max: int) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "sandbox", "soak", "--seed", "7", "--json", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return done.returncode, json.loads(done.stdout)


def assert_it_held(code: int, told: dict[str, Any], claims: int) -> None:
    assert told["faults"] == []
    assert told["violations"] == []
    assert (told["claims"], told["wrong_verdicts"], told["lost_sightings"]) == (claims, 0, 0)
    assert code == 0
    assert told["settled_by_rule"] > claims / 3
    assert told["lookups"] >= claims
    assert set(told["rails"]) == set(RAILS)


def test_a_small_soak_settles_nothing_that_the_provider_contradicts(process_env: dict[str, str]):
    claims = len(RAILS)
    code, told = soak(
        process_env, "--claims", str(claims), "--hours", "0.15", seconds_max=SMALL_SECONDS_MAX
    )
    assert_it_held(code, told, claims)


@BIG
def test_two_thousand_unknown_claims_end_without_a_wrong_verdict_or_a_lost_sighting(
    process_env: dict[str, str],
):
    code, told = soak(process_env, "--claims", "2000", seconds_max=BIG_SECONDS_MAX)
    assert_it_held(code, told, 2000)
    assert set(told["fates"]) == {str(fate) for fate in Fate}
    assert {"turned_away", "broken", "lost"} <= set(told["read_faults"])
    assert told["words"]["misconfigured"] > 0
    assert told["states"]["conflicted"] > 0
    assert told["webhooks"]["taken"] > told["webhooks"]["events"], "some come twice"


# What befalls the calls


@pytest.mark.parametrize("claims", [len(RAILS) - 1, 10_001])
def test_a_soak_has_a_call_for_every_rail_and_not_too_many(claims: int):
    with pytest.raises(ValueError, match=r"A soak has \d+ to 10,000 claims"):
        cast(claims, 7, list(RAILS))


def test_the_seed_alone_decides_what_befalls_each_call():
    rails = list(RAILS)
    assert cast(300, 7, rails) == cast(300, 7, rails)
    assert cast(300, 7, rails) != cast(300, 8, rails)
    assert sum(SHARES.values()) == pytest.approx(1)
    assert set(SHARES) == set(Fate)
    met = Counter(case.fate for case in cast(2000, 7, rails))
    assert all(abs(met[fate] / 2000 - share) < 0.03 for fate, share in SHARES.items())
    assert {case.rail for case in cast(len(rails), 7, rails)} == set(rails)


def test_every_rail_is_a_tool_that_the_registry_would_take():
    for rail in RAILS.values():
        kind = rail.account.kind
        assert fault_of(rail.lookup_kind, rail.lookup, connection_kind=kind) is None, rail.name
    kinds = {lookup.connection_kind for lookup in LOOKUPS.values()}
    assert {rail.account.kind for rail in RAILS.values()} == kinds


# The account


def played(**changes: Any) -> Played:
    usual = {
        "number": 1,
        "rail": "stripe_payouts",
        "fate": Fate.ANSWER_LOST,
        "misplaced": False,
        "amount": 4200,
    }
    return Played(case=Case(**{**usual, **changes}), claim_id=CLAIM, asked_minor=4200)


def effect(name: str = "po_1", amount: int = 4200) -> dict[str, Any]:
    return {"object_id": name, "amount": amount, "marker": marker(CLAIM, 1)}


def record(state: str, *sightings: Sighting) -> Recorded:
    return Recorded(state=ClaimState(state), object=None, sightings=sightings)


def sighting(word: SightingWord, *objects: str, counts: bool = True) -> Sighting:
    return Sighting(seq=2, at=10.0, word=word, counts=counts, objects=frozenset(objects), text="{}")


FOUND, ABSENT = SightingWord.FOUND, SightingWord.ABSENT


@pytest.mark.parametrize(
    ("kept", "effects", "words"),
    [
        pytest.param(record("completed", sighting(FOUND, "po_1")), [effect()], None, id="right"),
        pytest.param(record("completed"), [], "the provider counts nothing", id="no effect"),
        pytest.param(
            record("completed"), [effect(), effect("po_2")], "counts po_1, po_2", id="two effects"
        ),
        pytest.param(
            record("completed"), [effect(amount=4300)], "4200 was asked", id="another amount"
        ),
        pytest.param(record("not_executed"), [], None, id="nothing happened"),
        pytest.param(record("not_executed"), [effect()], "it did not happen", id="it did"),
        pytest.param(
            record("completed", sighting(ABSENT)),
            [effect()],
            "evidence 2 settled it as absent",
            id="an absence that counted and was put right later",
        ),
        pytest.param(
            record("unknown", sighting(ABSENT, counts=False)),
            [effect()],
            None,
            id="an absence that settled nothing",
        ),
        pytest.param(
            record("completed", sighting(FOUND, "po_9")),
            [effect()],
            "by an object that is no effect of it",
            id="somebody else's object",
        ),
        pytest.param(record("conflicted"), [effect()], "two effects, says", id="only one"),
        pytest.param(record("conflicted"), [effect(), effect("po_2")], None, id="truly two"),
        pytest.param(record("unknown"), [effect()], None, id="who says nothing is not wrong"),
    ],
)
def test_a_verdict_is_wrong_where_the_provider_counts_otherwise(
    kept: Recorded, effects: list[dict[str, Any]], words: str | None
):
    fault = wrong(played(), kept, effects)
    assert (fault is None) if words is None else words in (fault or "")


def test_what_is_on_record_may_stand_in_any_part_of_the_evidence():
    assert record("unknown", sighting(FOUND, "po_1", counts=False)).knows("po_1")
    beside = Sighting(
        seq=2,
        at=1.0,
        word=SightingWord.FOUND_DIFFERENT,
        counts=False,
        objects=frozenset(),
        text='{"others": ["po_1"]}',
    )
    assert record("unknown", beside).knows("po_1")
    assert not record("unknown", beside).knows("po_2")


# The witness


def test_an_object_is_shown_to_the_call_that_was_asked_about():
    seen = Seen()
    name = f"cf_{CLAIM.hex}"
    seen.take(f"/payments?reference={name}_1".encode(), b'{"id": "pay_12345678"}', now=5.0)
    seen.take(b"/v1/payouts?limit=100", b'[{"id": "po_12345678"}]', now=20.0)
    assert seen.showed("pay_12345678", asked_by=(name,), last_look=0.0)
    assert not seen.showed("pay_12345678", asked_by=("cf_other",), last_look=0.0)
    assert not seen.showed("po_12345678", asked_by=(name,), last_look=19.0), "it stood there later"
    assert seen.showed("po_12345678", asked_by=(name,), last_look=21.0)
    seen.events["evt_1"] = {"po_99999999"}
    assert seen.told_of("po_99999999")
    assert not seen.told_of("po_12345678")


def test_the_witness_makes_the_provider_worse_by_its_seed():
    def answers(seed: int) -> list[int | None]:
        witness = Witness(provider="http://127.0.0.1:9", seed=seed, graphql=well)
        told = [witness.answer("POST", "/graphql", {}, b"{}") for _ in range(200)]
        return [one.status if one else None for one in told]

    def well(_body: bytes, _headers: Any) -> Passed:
        return Passed(status=200, headers={}, body=b"{}")

    first = answers(7)
    assert first == answers(7)
    assert first != answers(8)
    assert set(first) == {200, 429, 500, None}


def test_a_point_depends_on_the_question_alone():
    assert point(7, "fate", 1) == point(7, "fate", 1)
    assert point(7, "fate", 1) != point(7, "amount", 1)
