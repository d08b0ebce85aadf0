"""Effects that no call accounts for: when one is listed, when it leaves, and what people say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from effects.core.identity import marker
from effects.core.vocabulary import Role, SightingWord
from effects.models import Connection
from ledger import queries
from reconcile.adapters.base import Stranger
from reconcile.ghosts import listing, noting
from reconcile.models import Ghost, GhostSaid
from reconcile.runs import making, working
from reconcile.runs.making import NewRun, Scope
from tests.reconcile.finding_out import Shop, open_shop
from tests.support.desk import (
    a_call,
    a_keyed_tool,
    a_lost_call,
    a_person,
    a_workspace,
    claim_id_of,
    complete,
    see,
)

NOBODYS = "cf_0197f0000000700080000000000000aa_1"
"""Our marker, of a call that is not in this record."""


@pytest.fixture
def account(db: None) -> Connection:
    a_keyed_tool(a_workspace())
    return Connection.objects.get(kind="stripe")


def met(account: Connection, *strangers: Stranger) -> int:
    return noting.note_strangers(account, strangers, queries.clock())


def an_effect(name: str = "pi_1", **changes: str) -> Stranger:
    return Stranger(id=name, noun="PaymentIntent", created_at=queries.clock(), **changes)


# Which strangers are ghosts


def test_an_effect_with_our_marker_and_no_call_is_a_ghost(account: Connection) -> None:
    assert met(account, an_effect(marker=NOBODYS, status="succeeded", amount="42.00 EUR")) == 1

    ghost = Ghost.objects.get()
    assert (ghost.object_id, ghost.noun, ghost.amount, ghost.state) == (
        "pi_1",
        "PaymentIntent",
        "42.00 EUR",
        "new",
    )


def test_effects_of_calls_are_none_whatever_names_them(account: Connection) -> None:
    tool = account.tool_set.get()
    done = a_call(tool)
    complete(tool, done, "pi_done")
    lost = a_lost_call(tool)
    see(tool, lost, SightingWord.FOUND, objects=("pi_seen",))
    also = a_call(tool)

    made = met(
        account,
        an_effect("pi_done"),
        an_effect("pi_seen"),
        an_effect("pi_marked", marker=marker(claim_id_of(also), 1)),
    )

    assert made == 0
    assert not Ghost.objects.exists()


def test_a_call_of_another_workspace_at_the_same_account_accounts_for_it(
    account: Connection,
) -> None:
    there, elsewhere = (a_keyed_tool(a_workspace(name)) for name in ("beside", "elsewhere"))
    far = Connection.objects.filter(workspace=elsewhere.workspace)
    far.update(base_url="https://another.example")
    ours, theirs = (marker(claim_id_of(a_call(tool)), 1) for tool in (there, elsewhere))

    met(account, an_effect("pi_ours", marker=ours), an_effect("pi_theirs", marker=theirs))

    assert [ghost.object_id for ghost in Ghost.objects.all()] == ["pi_theirs"]


def test_an_effect_that_is_met_again_is_one_ghost_seen_twice(account: Connection) -> None:
    met(account, an_effect(status="processing"))
    first = Ghost.objects.get()
    later = first.first_seen_at + timedelta(hours=1)
    noting.note_strangers(account, [an_effect(status="succeeded")], later)

    ghost = Ghost.objects.get()
    assert (ghost.times_seen, ghost.status) == (2, "succeeded")
    assert (ghost.first_seen_at, ghost.last_seen_at) == (first.first_seen_at, later)


def test_where_there_is_room_for_few_those_with_our_marker_come_first(
    account: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noting, "OPEN_MAX", 2)
    unmarked = [an_effect(f"pi_{number}") for number in range(5)]

    met(account, *unmarked, an_effect("pi_marked", marker=NOBODYS))

    assert {ghost.object_id for ghost in Ghost.objects.all()} == {"pi_marked", "pi_0"}


# When a ghost leaves


@pytest.mark.parametrize("named_by", ["marker", "object"])
def test_a_ghost_whose_call_appears_later_leaves_by_itself(
    account: Connection, named_by: str
) -> None:
    tool = account.tool_set.get()
    late = a_call(tool)
    own = marker(claim_id_of(late), 1)
    ghost = Ghost.objects.create(
        connection=account,
        object_id="pi_late",
        noun="PaymentIntent",
        marker=own if named_by == "marker" else "",
        first_seen_at=queries.clock(),
        last_seen_at=queries.clock(),
        look_at=queries.clock(),
    )
    early = noting.look_again() if named_by == "object" else 0
    Ghost.objects.update(look_at=queries.clock())
    complete(tool, late, "pi_late")

    found = noting.look_again()

    ghost.refresh_from_db()
    assert (early, found) == (0, 1)
    assert (ghost.state, ghost.claim_id, ghost.look_at) == ("linked", claim_id_of(late), None)


def test_a_ghost_is_looked_for_ever_more_slowly(account: Connection) -> None:
    met(account, an_effect())
    now = queries.clock()
    pauses = []
    for hours in (0, 1, 1000):
        seen = now - timedelta(hours=hours)
        Ghost.objects.update(first_seen_at=seen, look_at=now)
        noting.look_again()
        pauses.append((Ghost.objects.get().look_at or now) - now)

    assert timedelta(seconds=29) < pauses[0] < timedelta(seconds=35)
    assert timedelta(minutes=12) <= pauses[1] < timedelta(minutes=13)
    assert timedelta(hours=6) <= pauses[2] < timedelta(hours=6, minutes=1)


# Met by a real reading


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.mark.django_db(transaction=True)
def test_a_scan_lists_what_nobody_claimed_and_merges_nothing(shop: Shop) -> None:
    nobodys = shop.customer.pay("nobodys-key", metadata={"counterfoil": NOBODYS}).id
    loose = shop.customer.pay("loose-key", metadata={}).id
    answer = shop.claim(shop.charge)
    paid = shop.pay(answer)
    claim_id = shop.unknown(answer)

    run = making.start(NewRun(workspace_id=shop.workspace.pk, scope=Scope(claim_ids=(claim_id,))))
    working.work(run.pk)

    ghosts = {one.object_id: one for one in Ghost.objects.all()}
    assert set(ghosts) == {nobodys, loose}
    assert paid not in ghosts
    assert (ghosts[nobodys].marker, ghosts[loose].marker) == (NOBODYS, "")
    assert ghosts[nobodys].amount == "42.00 EUR"
    assert {one.state for one in ghosts.values()} == {"new"}
    assert queries.claim(shop.workspace.pk, claim_id).object == paid


# What people say


def signed_in(account: Connection, role: Role = Role.SUPPORT) -> Client:
    client = Client()
    client.force_login(a_person(account.workspace, role))
    return client


def test_an_explained_ghost_leaves_the_list_and_can_be_put_back(account: Connection) -> None:
    met(account, an_effect(marker=NOBODYS))
    ghost, client = Ghost.objects.get(), signed_in(account)
    say = reverse("ghost-say", args=[ghost.pk])

    client.post(say, {"does": "note", "reason": "Asked the shop."})
    noted = client.get(reverse("ghosts"))
    client.post(say, {"does": "dismiss", "reason": "A test of the <b>old</b> system."})
    gone = client.get(reverse("ghosts"))
    explained = client.get(reverse("ghosts"), {"show": "explained"})
    met(account, an_effect(marker=NOBODYS))
    again = client.get(reverse("ghosts"))
    client.post(say, {"does": "note", "reason": "It was none."})
    back = client.get(reverse("ghosts"))

    assert [len(page.context["rows"]) for page in (noted, gone, explained, again, back)] == [
        1,
        0,
        1,
        0,
        1,
    ]
    assert "old&lt;/b&gt; system" in explained.text
    kept = GhostSaid.objects.order_by("pk").values_list("reason", "dismissed")
    assert [dismissed for _, dismissed in kept] == [False, True, False], "all that was said is kept"
    assert all(one.said_by_id for one in GhostSaid.objects.all())


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("  ", "give a reason"),
        ("x" * 501, "at most 500 characters"),
    ],
)
def test_without_a_reason_nothing_is_kept(account: Connection, reason: str, says: str) -> None:
    met(account, an_effect())
    say = reverse("ghost-say", args=[Ghost.objects.get().pk])

    page = signed_in(account).post(say, {"does": "dismiss", "reason": reason}, follow=True)

    assert says in page.text
    assert Ghost.objects.get().state == "new"


def test_a_ghost_has_a_limit_of_what_is_said(
    account: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SAID_MAX", 1)
    met(account, an_effect())
    person = a_person(account.workspace)
    listing.say(Ghost.objects.get(), user_id=person.pk, reason="One.", dismissed=False)

    with pytest.raises(listing.CannotSay, match="At most 1 things"):
        listing.say(Ghost.objects.get(), user_id=person.pk, reason="Two.", dismissed=False)


def test_who_only_looks_explains_nothing_and_strangers_see_nothing(account: Connection) -> None:
    met(account, an_effect())
    say = reverse("ghost-say", args=[Ghost.objects.get().pk])
    form = {"does": "dismiss", "reason": "Mine."}
    neighbour = Client()
    neighbour.force_login(a_person(a_workspace("elsewhere"), Role.ADMIN))

    assert signed_in(account, Role.VIEWER).post(say, form).status_code == 403
    assert neighbour.post(say, form).status_code == 404
    assert neighbour.get(reverse("ghosts")).context["rows"] == []
    assert Ghost.objects.get().state == "new"


def test_the_list_is_filtered_by_its_address_and_goes_on_below_the_last(
    account: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS_MAX", 2)
    bank = Connection.objects.create(
        workspace=account.workspace, name="Bank", kind="http", base_url="https://bank.example"
    )
    met(account, *(an_effect(f"pi_{number}") for number in range(4)))
    met(bank, an_effect("t_1", marker=NOBODYS))
    client, address, seen = signed_in(account), "?", []
    while address:
        page = client.get(reverse("ghosts") + address)
        seen += [row.object_id for row in page.context["rows"]]
        address = page.context["older"]
    marked = client.get(reverse("ghosts"), {"show": "marked"})
    there = client.get(reverse("ghosts"), {"connection": bank.pk})

    assert seen == ["t_1", "pi_3", "pi_2", "pi_1", "pi_0"]
    assert [row.object_id for row in marked.context["rows"]] == ["t_1"]
    assert [row.object_id for row in there.context["rows"]] == ["t_1"]
    assert there.context["tabs"][0]["count"] == 5


def test_an_empty_list_says_what_would_be_on_it(account: Connection) -> None:
    assert "No ghosts here" in signed_in(account).get(reverse("ghosts")).text
