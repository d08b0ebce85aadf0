"""The laws that every adapter obeys, played on every stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import RAW_BYTES_MAX, Delay, Look, Probe
from reconcile.adapters.guard import UNEXPECTED
from tests.reconcile.adapters import (
    conformance_example,
    conformance_graphql,
    conformance_http,
    conformance_providers,
    conformance_sql,
    conformance_stripe,
)
from tests.reconcile.adapters.conformance import (
    AMOUNT,
    RETRY_AFTER,
    Prop,
    Running,
    Said,
    Shown,
    Stage,
    Trouble,
    WebStage,
    life_of,
    ours,
    probe_on,
    theirs,
)

STAGES: tuple[Stage, ...] = (
    *(WebStage(dialect) for dialect in conformance_http.DIALECTS),
    *(WebStage(dialect) for dialect in conformance_graphql.DIALECTS),
    *(WebStage(dialect) for dialect in conformance_stripe.DIALECTS),
    *(WebStage(dialect) for dialect in conformance_providers.DIALECTS),
    *(WebStage(dialect) for dialect in conformance_example.DIALECTS),
    *conformance_sql.STAGES,
)
SHARED = tuple(stage for stage in STAGES if stage.lookup.look_many is not None)
CLAIMS = tuple(UUID(int=UUID("01920000-0000-7000-8000-0000000000a0").int + n) for n in range(3))


@pytest.fixture(params=STAGES, ids=lambda stage: stage.name)
def stage(request: pytest.FixtureRequest) -> Stage:
    played: Stage = request.param
    return played


@pytest.fixture
def running(stage: Stage) -> Iterator[Running]:
    with stage.open() as playing:
        yield playing
        # Whatever a law asks for: a look-up only reads.
        assert playing.writes == 0


def look_at(stage: Stage, running: Running, *shown: Shown, generations: int = 1) -> Look:
    running.show(*shown)
    return looked(stage, probe_on(stage, running, generations=generations))


def looked(stage: Stage, probe: Probe) -> Look:
    look = stage.lookup.look(probe)
    for secret in stage.secrets:
        assert secret not in f"{look.why} {look.query}"
        assert secret.encode() not in (look.raw or b"")
    assert len(look.raw or b"") <= RAW_BYTES_MAX + 100
    assert look.why not in {"", UNEXPECTED}, "an adapter reads every answer by itself"
    assert look.asked_at == probe.asked_at
    return look


def is_proof(look: Look) -> bool:
    """Whether the judge could take the look for an absence that settles."""
    return (
        look.word is SightingWord.ABSENT
        and look.delay_class is Delay.NONE
        and look.pages_complete
        and look.right_place
    )


def needs(stage: Stage, *props: Prop) -> None:
    for prop in props:
        if prop in stage.cannot:
            pytest.skip(f"{stage.name}: {stage.cannot[prop]}")


# What is on show


def test_one_object_that_matches_is_found(stage: Stage, running: Running) -> None:
    look = look_at(stage, running, ours())

    assert (look.word, look.objects) == (SightingWord.FOUND, ("obj_1",))
    assert look.found == look.requested
    assert look.right_place


def test_what_is_found_is_kept_with_how_it_was_asked(stage: Stage, running: Running) -> None:
    look = look_at(stage, running, ours())

    assert look.reads == running.reads > 0
    assert b"obj_1" in (look.raw or b"")
    assert look.query
    assert any(look.route.startswith(route.name) for route in stage.lookup.routes)


def test_nothing_is_absent_where_all_was_read(stage: Stage, running: Running) -> None:
    look = look_at(stage, running)

    assert look.word is SightingWord.ABSENT
    assert look.objects == ()
    assert is_proof(look) == (Prop.ABSENCE not in stage.cannot)


def test_other_calls_objects_are_not_ours_and_not_kept(stage: Stage, running: Running) -> None:
    needs(stage, Prop.OTHERS)

    none = look_at(stage, running, theirs("alien_1"), theirs("alien_2"))
    one = look_at(stage, running, theirs("alien_1"), ours(), theirs("alien_2"))

    assert none.word is SightingWord.ABSENT
    assert (one.word, one.objects) == (SightingWord.FOUND, ("obj_1",))
    for look in (none, one):
        assert b"alien" not in (look.raw or b"")


def test_two_objects_are_never_one(stage: Stage, running: Running) -> None:
    needs(stage, Prop.TWO_OBJECTS)

    look = look_at(stage, running, ours("obj_1"), ours("obj_2"))

    assert look.word is SightingWord.FOUND_MANY
    assert set(look.objects) == {"obj_1", "obj_2"}


def test_the_second_object_is_found_on_the_last_page(stage: Stage, running: Running) -> None:
    needs(stage, Prop.PAGES, Prop.TWO_OBJECTS)
    aliens = [] if Prop.OTHERS in stage.cannot else [theirs(f"alien_{n}") for n in range(3)]

    look = look_at(stage, running, ours("obj_1"), *aliens, ours("obj_2"))

    assert look.word is SightingWord.FOUND_MANY
    assert set(look.objects) == {"obj_1", "obj_2"}
    assert look.pages_complete


def test_each_generation_of_the_key_is_looked_for(stage: Stage, running: Running) -> None:
    newer = ours("obj_2", life=life_of(generation=2))

    one = look_at(stage, running, newer, generations=2)
    before = look_at(stage, running, newer, generations=1)

    assert (one.word, one.objects) == (SightingWord.FOUND, ("obj_2",))
    # It carries this claim's id: an adapter may show it, and must not hold it to be absent proof.
    assert before.word in {SightingWord.ABSENT, SightingWord.FOUND}


def test_another_amount_differs(stage: Stage, running: Running) -> None:
    needs(stage, Prop.AMOUNT)

    look = look_at(stage, running, ours(amount=AMOUNT - 100))

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert (look.requested["amount"], look.found["amount"]) == ("42.00", "41.00")


def test_the_other_mode_is_never_a_match(stage: Stage, running: Running) -> None:
    needs(stage, Prop.MODE)

    look = look_at(stage, running, ours(live=True))

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert (look.requested["mode"], look.found["mode"]) == ("test", "live")


def test_what_is_not_finished_is_pending(stage: Stage, running: Running) -> None:
    needs(stage, Prop.PENDING)

    assert look_at(stage, running, ours(said=Said.PENDING)).word is SightingWord.PENDING


def test_a_status_that_nobody_mapped_means_nothing(stage: Stage, running: Running) -> None:
    needs(stage, Prop.STATUS)

    look = look_at(stage, running, ours(said=Said.UNHEARD_OF))

    assert look.word is SightingWord.UNMAPPED
    assert look.status in look.why, "whoever maps it needs to know how it is spelled"


# Trouble

WORDS = {
    Trouble.REFUSED: {SightingWord.MISCONFIGURED},
    Trouble.FORBIDDEN: {SightingWord.MISCONFIGURED},
    Trouble.TOO_OFTEN: {SightingWord.RATE_LIMITED},
    Trouble.BROKEN: {SightingWord.LOOKUP_FAILED},
    Trouble.MOVED: {SightingWord.MISCONFIGURED, SightingWord.LOOKUP_FAILED},
    Trouble.CUT: {SightingWord.LOOKUP_FAILED},
    Trouble.SILENT: {SightingWord.LOOKUP_FAILED},
    Trouble.GARBAGE: {SightingWord.LOOKUP_FAILED, SightingWord.UNMAPPED},
}


@pytest.mark.parametrize("trouble", WORDS)
def test_trouble_is_called_by_its_name(stage: Stage, running: Running, trouble: Trouble) -> None:
    if trouble in stage.spared:
        pytest.skip(f"{stage.name}: {stage.spared[trouble]}")
    running.show(ours())
    running.trouble(trouble)

    look = looked(stage, probe_on(stage, running))

    assert look.word in WORDS[trouble], look
    assert look.objects == ()
    if trouble is Trouble.TOO_OFTEN and Prop.RETRY_AFTER not in stage.cannot:
        assert look.retry_after_seconds == RETRY_AFTER


@pytest.mark.parametrize("trouble", [Trouble.BROKEN, Trouble.TOO_OFTEN, Trouble.CUT])
def test_trouble_on_a_later_page_leaves_no_proof(
    stage: Stage, running: Running, trouble: Trouble
) -> None:
    needs(stage, Prop.PAGES, Prop.OTHERS)
    if trouble in stage.spared:
        pytest.skip(f"{stage.name}: {stage.spared[trouble]}")
    running.show(*(theirs(f"alien_{n}") for n in range(8)), ours())
    running.trouble(trouble, from_read=3)

    look = looked(stage, probe_on(stage, running))

    assert not is_proof(look)
    assert look.word is not SightingWord.FOUND


def test_another_account_proves_nothing(stage: Stage, running: Running) -> None:
    needs(stage, Prop.ACCOUNT)
    running.show(ours())
    running.trouble(Trouble.OTHER_ACCOUNT)

    look = looked(stage, probe_on(stage, running))

    assert not is_proof(look)
    assert look.word in {SightingWord.MISCONFIGURED, SightingWord.UNMAPPED}


def test_without_a_secret_nobody_is_asked(stage: Stage, running: Running) -> None:
    probe = probe_on(stage, running)

    look = looked(stage, replace(probe, place=replace(probe.place, secret="")))

    assert look.word is SightingWord.MISCONFIGURED
    assert running.reads == 0


def test_an_entry_that_cannot_be_used_asks_nobody(stage: Stage, running: Running) -> None:
    probe = replace(probe_on(stage, running), config={**stage.config, "colour": "red"})

    look = looked(stage, probe)

    assert look.word is SightingWord.MISCONFIGURED
    assert "colour" in look.why
    assert running.reads == 0
    with pytest.raises(ValueError, match="colour"):
        stage.lookup.read_config(probe.config)


# Many calls at once

_OBJECTS = st.lists(
    st.tuples(
        st.sampled_from([None, *CLAIMS]),
        st.sampled_from(list(Said)),
        st.sampled_from([AMOUNT, AMOUNT - 1]),
    ),
    max_size=5,
)


@pytest.mark.parametrize("stage", SHARED, ids=lambda stage: stage.name)
def test_one_reading_for_many_says_of_each_what_a_look_of_its_own_says(stage: Stage) -> None:
    with stage.open() as running:

        @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
        @given(_OBJECTS)
        def law(objects: list[tuple[UUID | None, Said, int]]) -> None:
            running.show(*_as_shown(stage, objects))
            probes = [probe_on(stage, running, claim) for claim in CLAIMS]
            assert stage.lookup.look_many is not None
            before = running.reads

            scan = stage.lookup.look_many(probes)

            assert scan.reads == running.reads - before
            for probe in probes:
                alone, together = stage.lookup.look(probe), scan.looks[probe.claim_id]
                assert (together.word, set(together.objects)) == (alone.word, set(alone.objects))
                assert is_proof(together) == is_proof(alone)
                assert together.reads == 0, "a scan is counted once"
            known = {shown.id for shown in running_ours(objects)}
            assert not known & {stranger.id for stranger in scan.strangers}

        law()
        assert running.writes == 0


def _as_shown(stage: Stage, objects: list[tuple[UUID | None, Said, int]]) -> Iterator[Shown]:
    for number, (claim, said, amount) in enumerate(objects):
        if said is not Said.THERE and Prop.STATUS in stage.cannot:
            continue
        life = life_of(claim) if claim else None
        yield Shown(
            id=f"obj_{number}", claim=claim or CLAIMS[0], life=life, said=said, amount=amount
        )


def running_ours(objects: list[tuple[UUID | None, Said, int]]) -> list[Shown]:
    return [
        Shown(id=f"obj_{number}", life=life_of(claim))
        for number, (claim, _, _) in enumerate(objects)
        if claim is not None
    ]


@pytest.mark.parametrize("stage", SHARED, ids=lambda stage: stage.name)
@pytest.mark.parametrize("trouble", [Trouble.BROKEN, Trouble.TOO_OFTEN, Trouble.GARBAGE])
def test_a_reading_in_trouble_says_so_to_every_call(stage: Stage, trouble: Trouble) -> None:
    if trouble in stage.spared:
        pytest.skip(f"{stage.name}: {stage.spared[trouble]}")
    with stage.open() as running:
        running.show(*(ours(f"obj_{n}", claim=claim) for n, claim in enumerate(CLAIMS)))
        running.trouble(trouble)
        assert stage.lookup.look_many is not None

        scan = stage.lookup.look_many([probe_on(stage, running, claim) for claim in CLAIMS])

    assert {look.word for look in scan.looks.values()} <= WORDS[trouble]
    assert len(scan.looks) == len(CLAIMS)
    assert not any(b"obj" in (look.raw or b"") for look in scan.looks.values())
