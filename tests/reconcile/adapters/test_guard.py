"""What is done for every adapter, whatever it answers."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import RAW_BYTES_MAX, Look, Lookup, Probe, Scan
from reconcile.adapters.guard import TAKEN_OUT, UNEXPECTED, guarded
from reconcile.lookups import LOOKUPS
from tests.reconcile.adapters.probes import a_place, a_probe

URL = "https://provider.example"


def a_look(probe: Probe, **changes: object) -> Look:
    look = Look(word=SightingWord.FOUND, why="It is there.", route="List", asked_at=probe.asked_at)
    return replace(look, **changes)  # type: ignore[arg-type]  # what a test says


def an_adapter(**changes: object) -> Lookup:
    return guarded(
        Lookup(
            kind="x.y",
            label="X",
            connection_kind="x",
            look=lambda probe: a_look(probe, **changes),
            read_config=dict,
            look_many=lambda probes: Scan(
                looks={probe.claim_id: a_look(probe, **changes) for probe in probes}
            ),
        )
    )


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        pytest.param("sk_live_0123456789", "sk_live_0123456789", id="as it is"),
        pytest.param("client:very-secret", "very-secret", id="the second half of a pair"),
        pytest.param("client:very-secret", "Y2xpZW50OnZlcnktc2VjcmV0", id="as Basic sends it"),
        pytest.param("postgresql://r:p%40ssword@db/x", "p@ssword", id="the password in a DSN"),
    ],
)
def test_no_credential_stays_in_what_is_kept(secret: str, told: str) -> None:
    probe = a_probe(URL, place=a_place(URL, secret=secret))
    adapter = an_adapter(why=f"{told}?", query=f"GET /{told}", raw=f'{{"t": "{told}"}}'.encode())
    assert adapter.look_many is not None

    for look in (adapter.look(probe), adapter.look_many([probe]).looks[probe.claim_id]):
        assert told not in f"{look.why} {look.query} {(look.raw or b'').decode()}"
        assert TAKEN_OUT in look.why


def test_a_short_secret_takes_nothing_out() -> None:
    probe = a_probe(URL, place=a_place(URL, secret="is"))

    assert an_adapter().look(probe).why == "It is there."


def test_a_raw_answer_is_cut_and_says_so() -> None:
    look = an_adapter(raw=b"x" * (2 * RAW_BYTES_MAX)).look(a_probe(URL))

    assert look.raw is not None
    assert len(look.raw) < RAW_BYTES_MAX + 100
    assert look.raw.endswith(b"bytes in all]")


def test_an_answer_that_an_adapter_did_not_expect_is_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(probe: Probe) -> Look:
        raise AttributeError("'str' object has no attribute 'get'")

    adapter = guarded(replace(LOOKUPS["http"], look=broken))
    with caplog.at_level(logging.ERROR):
        look = adapter.look(a_probe(URL))

    assert (look.word, look.why) == (SightingWord.LOOKUP_FAILED, UNEXPECTED)
    assert "AttributeError" in caplog.text


def test_a_caller_that_is_wrong_is_told_so() -> None:
    def wrong(probe: Probe) -> Look:
        raise AssertionError("inside a database transaction")

    with pytest.raises(AssertionError, match="transaction"):
        guarded(replace(LOOKUPS["http"], look=wrong)).look(a_probe(URL))


def test_every_look_up_is_guarded_and_says_its_routes() -> None:
    for lookup in LOOKUPS.values():
        assert lookup.look.__module__ == "reconcile.adapters.guard"
        assert lookup.kind.split(".")[0] == lookup.connection_kind
        assert lookup.routes, lookup.kind
        assert len({route.name for route in lookup.routes}) == len(lookup.routes)
