"""Every form that was sent is kept with its fate, and the chain is verified on the spot."""

import json
from io import StringIO
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from effects.core.vocabulary import Role, SightingWord
from effects.models import Tool, Workspace
from ledger.models import Decision
from reconcile.audit import chain
from reconcile.models import ChainCheck, Submission
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


@pytest.fixture
def ada(shop: Workspace) -> User:
    return desk.a_person(shop, Role.ADMIN, "ada")


@pytest.fixture
def lost(charge: Tool) -> UUID:
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def token_on(client: Client, claim_id: UUID) -> str:
    page = client.get(f"/calls/{claim_id}?dialog=close")
    return str(page.context["review"]["token"])


def send(client: Client, claim_id: UUID, token: str, **changes: str) -> int:
    form = {"token": token, "action": "close", "reason": "Enough."} | changes
    return int(client.post(f"/calls/{claim_id}/decide", form).status_code)


def damage(decision_id: int) -> None:
    """Somebody with the keys of the database changes a reason, and says that triggers rest."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE ledger_decision SET reason = 'Another.' WHERE id = %s", [decision_id]
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


def decisions(client: Client, tool: Tool, many: int) -> list[int]:
    for claim_id in [desk.a_lost_call(tool) for _ in range(many)]:
        assert send(client, claim_id, token_on(client, claim_id)) == 302
    return list(Decision.objects.order_by("chain_number").values_list("pk", flat=True))


def test_a_chain_that_holds_is_said_to_on_both_pages(charge: Tool, ada: User) -> None:
    hers = desk_of(ada)
    first, *_ = decisions(hers, charge, 3)
    said = hers.post("/chain/verify/", follow=True).text
    assert "The chain of 3 decisions holds." in said
    assert "Chain of 3 decisions verified" in said
    decided = Decision.objects.get(pk=first).claim_id
    assert "chain of 3 decisions verified" in hers.get(f"/calls/{decided}").text


def test_a_decision_that_was_changed_by_hand_breaks_the_chain_and_is_named(
    shop: Workspace, charge: Tool, ada: User
) -> None:
    hers = desk_of(ada)
    _, second, _ = decisions(hers, charge, 3)
    damage(second)
    check = chain.verify(shop.pk)
    assert check.fault == f"dec_{second}: its content is not what was hashed"
    assert "The chain of decisions is broken" in hers.post("/chain/verify/", follow=True).text


def test_the_command_verifies_every_workspace_and_ends_with_1_where_one_is_broken(
    shop: Workspace, charge: Tool, ada: User
) -> None:
    desk.a_workspace("other")
    first, _ = decisions(desk_of(ada), charge, 2)
    said = StringIO()
    call_command("verify_chain", stdout=said)
    assert "holds  halden: 2 decisions, head " in said.getvalue()
    assert "holds  other: 0 decisions" in said.getvalue()
    damage(first)
    broken = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify_chain", "--json", "--workspace", "halden", stdout=broken)
    assert ended.value.code == 1
    (found,) = json.loads(broken.getvalue())["chains"]
    assert not found["holds"]
    assert ChainCheck.objects.filter(workspace=shop).count() == 2


def test_only_an_admin_has_it_verified(shop: Workspace) -> None:
    lea = desk.a_person(shop, Role.LEAD, "lea")
    assert desk_of(lea).post("/chain/verify/").status_code == 403
    assert not ChainCheck.objects.exists()


@pytest.mark.case("U12")
def test_a_form_that_was_sent_is_kept_with_its_session_its_version_and_its_digest(
    charge: Tool, ada: User, lost: UUID
) -> None:
    hers = desk_of(ada)
    token = token_on(hers, lost)
    assert send(hers, lost, token) == 302
    (made,) = Decision.objects.all()
    (kept,) = Submission.objects.all()
    assert (kept.outcome, kept.decision_id, kept.sent_by) == ("made", made.pk, ada)
    assert kept.version == made.claim_version
    assert bytes(kept.screen_hash) == bytes(made.screen_hash or b"")
    assert len(bytes(kept.session)) == 16
    assert hers.session.session_key is not None
    assert hers.session.session_key.encode() not in bytes(kept.session)


def test_two_sessions_of_one_person_are_told_apart(charge: Tool, ada: User) -> None:
    for client in (desk_of(ada), desk_of(ada)):
        decisions(client, charge, 1)
    assert len({bytes(one.session) for one in Submission.objects.all()}) == 2


def test_a_form_that_has_to_be_put_right_is_not_kept_as_sent(ada: User, lost: UUID) -> None:
    hers = desk_of(ada)
    assert send(hers, lost, token_on(hers, lost), reason="") == 422
    assert not Submission.objects.exists()
