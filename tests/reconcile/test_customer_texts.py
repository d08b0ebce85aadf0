"""What customers may be told: built in, written by admins, and never more than is known."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from reconcile import queries
from reconcile.customer import texts
from reconcile.customer.kinds import PLACEHOLDERS, Tell, fault_of, filled
from reconcile.customer.texts import Faulty
from reconcile.models import CustomerText
from tests.support import desk


@pytest.fixture
def shop(db: None) -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


@pytest.fixture
def ada(shop: Workspace) -> User:
    return desk.a_person(shop, Role.ADMIN, "ada")


@pytest.fixture
def lost(charge: Tool) -> UUID:
    return desk.a_lost_call(charge, arguments={"customer": "cus_9X2"})


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def told(tool: Tool, claim_id: UUID, kind: Tell = Tell.UNKNOWN) -> texts.Words:
    return texts.words_for(queries.call(tool.workspace_id, claim_id), kind)


UNSURE = {Tell.UNKNOWN, Tell.RELEASED, Tell.RELEASED_NEW_KEY, Tell.CLOSED}


@pytest.mark.parametrize("kind", Tell)
def test_a_built_in_text_names_nothing_and_what_nobody_knows_is_said_so(kind: Tell) -> None:
    assert fault_of(kind.built_in) == ""
    assert filled(kind.built_in, {}) == kind.built_in
    assert kind.must_not
    if kind in UNSURE:
        assert "do not know" in kind.built_in or "could not find out" in kind.built_in


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("About {amount} of {when}.", ""),
        ("{{braces}}", ""),
        ("{secret}", "{secret} is no placeholder"),
        ("{}", "{} is no placeholder"),
        ("{amount.__class__}", "is no placeholder"),
        ("{amount[0]}", "is no placeholder"),
        ("{amount!r}", "is no placeholder"),
        ("{amount:>9}", "is no placeholder"),
        ("{amount", "not closed"),
        ("amount}", "not closed"),
        ("x" * 1001, "At most 1,000 characters."),
    ],
)
def test_a_text_with_a_fault_is_refused_with_what_is_wrong(text: str, fault: str) -> None:
    said = fault_of(text)
    assert fault in said if fault else said == ""


def test_the_tools_text_counts_before_everybodys_and_that_before_the_built_in_one(
    shop: Workspace, charge: Tool, ada: User, lost: UUID
) -> None:
    def write(text: str, tool_id: int | None) -> None:
        texts.write(shop.pk, tool_id=tool_id, kind=Tell.UNKNOWN, text=text, user_id=ada.pk)

    assert told(charge, lost).text == Tell.UNKNOWN.built_in
    write("We look for {amount}.", None)
    assert told(charge, lost).text == "We look for 149.00 EUR."
    write("{customer}: we look for {amount}.", charge.pk)
    assert told(charge, lost).text == "cus_9X2: we look for 149.00 EUR."
    other = desk.a_keyed_tool(shop, name="refund")
    assert told(other, desk.a_lost_call(other)).text == "We look for 149.00 EUR."
    write("", charge.pk)
    assert told(charge, lost).text == "We look for 149.00 EUR."
    write("", None)
    assert told(charge, lost).text == Tell.UNKNOWN.built_in
    assert CustomerText.objects.count() == 4


def test_a_text_that_names_what_is_not_known_gives_way_to_the_next(
    shop: Workspace, charge: Tool, ada: User
) -> None:
    texts.write(
        shop.pk, tool_id=None, kind=Tell.UNKNOWN, text="We look for {amount}.", user_id=ada.pk
    )
    nothing = desk.a_lost_call(charge, arguments={"amount": None})
    words = told(charge, nothing)
    assert words.text == Tell.UNKNOWN.built_in
    assert words.passed_over


def test_a_faulty_text_is_never_put_in_force(shop: Workspace, ada: User) -> None:
    with pytest.raises(Faulty):
        texts.write(shop.pk, tool_id=None, kind=Tell.UNKNOWN, text="{x}", user_id=ada.pk)
    assert not CustomerText.objects.exists()


def test_an_admin_previews_writes_and_goes_back_and_the_page_keeps_who_wrote_what(
    charge: Tool, ada: User, lost: UUID
) -> None:
    hers = desk_of(ada)
    form = {"kind": "unknown", "tool": charge.pk, "text": "About {amount}: we ask."}
    shown = hers.post("/customer-texts/", form | {"act": "preview"})
    assert f"About {PLACEHOLDERS['amount']}: we ask." in shown.text
    assert not CustomerText.objects.exists()
    faulty = hers.post("/customer-texts/", form | {"text": "{nothing}", "act": "save"})
    assert faulty.status_code == 422
    assert "{nothing} is no placeholder" in faulty.text
    hers.post("/customer-texts/", form | {"act": "save"})
    page = hers.get(f"/calls/{lost}").text
    assert "About 149.00 EUR: we ask." in page
    assert "nothing is sent" in page
    hers.post("/customer-texts/", form | {"act": "built_in"})
    assert "About 149.00 EUR" not in hers.get(f"/calls/{lost}").text
    history = hers.get(f"/customer-texts/?tool={charge.pk}").text
    assert "back to the text before it in line" in history
    assert "“About {amount}: we ask.”" in history


def test_only_admins_write_and_everybody_may_read(shop: Workspace, charge: Tool) -> None:
    ana = desk.a_person(shop, Role.SUPPORT, "ana")
    page = desk_of(ana).get("/customer-texts/?kind=unknown")
    assert "You can read the texts, but not change them." in page.text
    sent = desk_of(ana).post("/customer-texts/", {"kind": "unknown", "text": "x", "act": "save"})
    assert sent.status_code == 403
    foreign = desk.a_keyed_tool(desk.a_workspace("other"))
    assert desk_of(ana).get(f"/customer-texts/?tool={foreign.pk}").status_code == 404


def test_a_name_that_a_model_wrote_is_text_in_what_is_told(
    charge: Tool, shop: Workspace, ada: User
) -> None:
    texts.write(shop.pk, tool_id=None, kind=Tell.UNKNOWN, text="To {customer}", user_id=ada.pk)
    claim_id = desk.a_lost_call(charge, arguments={"customer": "<b>{amount}</b>"})
    page = desk_of(ada).get(f"/calls/{claim_id}").text
    assert "To &lt;b&gt;{amount}&lt;/b&gt;" in page
