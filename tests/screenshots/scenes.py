"""The data that the pictures show: one shop on one day, always the same but for its instants.

Everything is made as the product makes it (claims, reports, answers, decisions), by a clock that
starts a day ago and arrives at the present.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User

from effects.core.vocabulary import EffectClass, Role, SightingWord, TokenScope
from effects.models import Tool, Workspace
from ledger import append, auth, queries
from reconcile import cards, snoozes, takes
from reconcile import decide as deciding
from reconcile import queries as calls
from reconcile.actions import ActionName
from reconcile.assign import assignments
from reconcile.late import alerts
from reconcile.models import Contradiction, Notification
from reconcile.notes.mentions import keep_note
from reconcile.notify import telling
from reconcile.runs import making
from reconcile.runs.making import NewRun, Scope
from tests.ledger.mirror import event, tell
from tests.reconcile.exposure.a_month import a_month
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.support import desk
from tests.support.clock import ShiftedClock

PEOPLE: Final = {
    "ana": Role.SUPPORT,
    "lea": Role.LEAD,
    "tomas": Role.ENGINEER,
    "ada": Role.ADMIN,
    "vera": Role.VIEWER,
}
HELD_LONGER_TIMES: Final = 3
NO_ANSWER: Final = {"strength": "says_nothing", "why": "The provider answered HTTP 503."}
CONVERSATION: Final = "order-8841"
MODEL: Final = "claude-opus-4-5"


@dataclass(slots=True, kw_only=True)
class Scene:
    """What the addresses of the pictures are made of. `calls` and `ids` by the name of the shot."""

    shop: Workspace
    people: dict[str, User]
    tools: dict[str, Tool] = field(default_factory=dict)
    calls: dict[str, UUID] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    waited: float = 0.0

    def wait(self, seconds: float) -> None:
        """Lets so much of the day pass inside one act."""
        self.clock.advance(seconds)
        self.waited += seconds


def everything() -> Scene:
    """Makes the shop, its day and what came of it."""
    shop = desk.a_workspace("halden-outdoor")
    shop.name = "Halden Outdoor"
    shop.save()
    people = {name: desk.a_person(shop, role, name) for name, role in PEOPLE.items()}
    empty = desk.a_workspace("quiet")
    desk.a_person(empty, Role.SUPPORT, "quinn")
    scene = Scene(shop=shop, people=people | {"quinn": User.objects.get(username="quinn")})
    scene.wait(-27 * 3600.0)
    _register(scene)
    for hours, happens in _DAY:
        scene.wait(hours * 3600.0 - scene.waited)
        happens(scene)
    scene.clock.restore()
    _at_last(scene)
    return scene


def decide(scene: Scene, name: str, who: str, action: ActionName, reason: str) -> None:
    """The decision that somebody makes on the call's page as it is now."""
    call = calls.call(scene.shop.pk, scene.calls[name])
    user = scene.people[who]
    token = deciding.token_for(call, user.pk)
    screen = deciding.read_token(token, claim_id=call.claim.pk, user_id=user.pk)
    assert screen is not None
    filled = deciding.Form(
        action=action,
        screen=screen,
        evidence=tuple(item.number for item in call.situation.evidence),
        reason=reason,
    )
    result = deciding.decide(scene.shop.pk, filled, role=PEOPLE[who])
    assert isinstance(result, deciding.Made | deciding.Asked), result


def hold(scene: Scene) -> None:
    """A decision that can still be taken back while the pictures are taken."""
    shop, claim_id = scene.shop.pk, scene.calls["held"]
    if calls.call(shop, claim_id).claim.pending_at is not None:
        return
    decide(scene, "held", "lea", ActionName.RELEASE_SAME, "The agent asks again, the same key.")
    (decision,) = calls.call(shop, claim_id).decisions
    for _ in range(HELD_LONGER_TIMES):
        deciding.hold_longer(shop, claim_id, decision.pk, scene.people["lea"].pk)


# The tools


def _register(scene: Scene) -> None:
    shop = scene.shop
    scene.tools = {
        "charge": desk.a_keyed_tool(
            shop, owner="payments@halden.example", note="Takes the money for an order."
        ),
        "refund": desk.a_keyed_tool(
            shop,
            name="refund_payment",
            lookup_kind="stripe.refunds",
            summary="Refund {amount} to {customer} for order {order}",
            owner="payments@halden.example",
        ),
        "gift": desk.an_unkeyed_tool(shop, owner="shop@halden.example"),
        "transfer": desk.an_unkeyed_tool(
            shop,
            name="send_transfer",
            summary="Transfer {amount} to {customer} for order {order}",
            amount_is_minor=True,
            currency_field="currency",
        ),
        "letter": desk.an_unkeyed_tool(
            shop, name="send_letter", summary="Letter to {customer} about order {order}",
            amount_field="", currency_field="",
        ),
        "find": Tool.objects.create(
            workspace=shop, name="find_order", effect_class=EffectClass.READ,
            note="Reads an order. Nothing happens.",
        ),
        "seen": Tool.objects.create(
            workspace=shop, name="issue_store_credit", registered=False,
        ),
    }  # fmt: skip


# The day. Each act is named in `_DAY` with the hour (before now) at which it happens.


def _lose(scene: Scene, name: str, tool: str, amount: int, customer: str, **more: Any) -> UUID:
    arguments = {"amount": amount, "customer": customer, **more.pop("arguments", {})}
    scene.calls[name] = desk.a_lost_call(scene.tools[tool], arguments=arguments, **more)
    return scene.calls[name]


def _yesterday(scene: Scene) -> None:
    late = _lose(scene, "late", "charge", 12900, "cus_Vik4471")
    desk.see(scene.tools["charge"], late, SightingWord.LOOKUP_FAILED, data=NO_ANSWER)
    _lose(scene, "gift", "gift", 250, "cus_Berg0091")


def _night(scene: Scene) -> None:
    closing = _lose(scene, "closing", "charge", 6450, "cus_Sund2210")
    desk.see(scene.tools["charge"], closing, SightingWord.ABSENT, data={"strength": "weak"})
    twice = _lose(scene, "twice", "charge", 8900, "cus_Holm7714")
    desk.see(
        scene.tools["charge"], twice, SightingWord.FOUND_MANY,
        objects=("pi_3Qx81aHalden", "pi_3Qx81bHalden"), counts=True,
        data={"why": "Two charges carry this call's marker."},
    )  # fmt: skip
    released = _lose(scene, "released", "refund", 4990, "cus_Lund3312")
    desk.see(scene.tools["refund"], released, SightingWord.ABSENT)
    closed = _lose(scene, "closed", "letter", 0, "cus_Dahl5581", arguments={"amount": None})
    desk.see(scene.tools["letter"], closed, SightingWord.LOOKUP_FAILED,
             data={"strength": "says_nothing"})  # fmt: skip
    decide(scene, "closed", "ana", ActionName.CLOSE, "Nobody can be asked; the letter costs 2 EUR.")


def _morning(scene: Scene) -> None:
    tool = scene.tools["charge"]
    sent = desk.a_call(
        tool, arguments={"amount": 14900, "customer": "cus_Nyg9X2", "order": "8841"},
        conversation=CONVERSATION, turn_index=3, position=1, response_id="msg_01Halden8841",
        call_id="toolu_01HaldenCharge8841",
    )  # fmt: skip
    scene.wait(30)
    unknown = scene.calls["unknown"] = desk.lose(tool, sent)
    scene.wait(15)
    desk.see(tool, unknown, SightingWord.LOOKUP_FAILED, data=NO_ANSWER)
    scene.wait(45)
    desk.see(
        tool, unknown, SightingWord.FOUND_DIFFERENT, objects=("pi_3QwLmHalden",),
        data={
            "strength": "fair",
            "why": "Same customer, same amount, another order.",
            "requested": {"amount": "149.00 EUR", "metadata.order": "8841"},
            "found": {"amount": "149.00 EUR", "metadata.order": "8835", "id": "pi_3QwLmHalden"},
        },
        raw=b'{"object": "list", "has_more": false, "data": [{"id": "pi_3QwLmHalden"}]}',
    )  # fmt: skip
    scene.wait(90)
    desk.see(tool, unknown, SightingWord.ABSENT, data={"strength": "weak", "delay_class": "none"})
    scene.wait(40)
    keep_note(scene.shop.pk, unknown, user_id=scene.people["ana"].pk,
              text="The customer sees no debit yet. @lea, please look.")  # fmt: skip
    _lose(scene, "snoozed", "charge", 2100, "cus_Moen1180")
    _lose(scene, "transfer", "transfer", 99900, "sup_Trek4410", arguments={"currency": "usd"})
    held = _lose(scene, "held", "refund", 3350, "cus_Eide6617")
    desk.see(scene.tools["refund"], held, SightingWord.ABSENT)


def _cut_turn(scene: Scene) -> None:
    granted = queries.claim(scene.shop.pk, scene.calls["unknown"]).granted_at

    def at(seconds: float) -> str:
        return (granted + timedelta(seconds=seconds)).isoformat()

    announced = [
        {"position": 0, "tool": "find_order", "call_id": "toolu_01HaldenFind8841",
         "arguments": '{"order": "8841"}', "complete": True, "ended_at": at(-2.4)},
        {"position": 1, "tool": "charge_card", "call_id": "toolu_01HaldenCharge8841",
         "arguments": '{"amount": 14900, "customer": "cus_Nyg9X2", "order": "8841"}',
         "complete": True, "ended_at": at(-0.1)},
        {"position": 2, "tool": "send_letter", "call_id": "toolu_01HaldenLetter8841",
         "arguments": '{"customer": "cus_Ny', "complete": False},
    ]  # fmt: skip
    told = [
        event("s-8841-3", "stream.recorded", stream="msg_01Halden8841", terminal="cut",
              model=MODEL, response_id="msg_01Halden8841", time=at(1.9), opened_at=at(-4.1),
              closed_at=at(1.9), error="The connection was reset by the peer.", calls=announced,
              conversation=CONVERSATION, turn_index=3),
        event("s-8841-2", "stream.recorded", stream="msg_01Halden8840", terminal="success",
              model=MODEL, response_id="msg_01Halden8840", time=at(-9), opened_at=at(-12),
              closed_at=at(-9),
              calls=[announced[0] | {"call_id": "toolu_01HaldenFind8840", "ended_at": at(-9.2)}],
              conversation=CONVERSATION, turn_index=2),
    ]  # fmt: skip
    tell(scene.shop.pk, *told, streams=True)
    for position in range(2):
        answer = desk.a_call(
            scene.tools["gift"], conversation=CONVERSATION, turn_index=1, position=position,
            arguments={"amount": 25 * (position + 1), "order": "8841"},
            response_id="msg_01Halden8839", call_id=f"toolu_01HaldenGift883{position}",
        )  # fmt: skip
        desk.complete(scene.tools["gift"], answer, f"gift_88{position}")


def _lately(scene: Scene) -> None:
    charge = scene.tools["charge"]
    for number in range(6):
        answer = desk.a_call(charge, arguments={"amount": 4900 + 350 * number})
        scene.calls["completed"] = desk.complete(charge, answer, f"pi_3Qy{number}Halden")
    found = _lose(scene, "found", "charge", 7800, "cus_Aas2281")
    desk.see(charge, found, SightingWord.FOUND, counts=True, objects=("pi_3QzHalden",))
    scene.calls["not_executed"] = desk.not_sent(charge, desk.a_call(charge))
    _lose(scene, "no_amount", "gift", 0, "cus_Ruud8830", arguments={"amount": None})


def _quarter_of_an_hour_ago(scene: Scene) -> None:
    decide(scene, "released", "lea", ActionName.RELEASE_SAME, "Nothing there; it may ask again.")


def _just_now(scene: Scene) -> None:
    answer = desk.a_call(scene.tools["refund"], arguments={"amount": 1990})
    scene.calls["in_flight"] = desk.claim_id_of(answer)
    for told, became, name in (
        ("not_executed", "completed", "found"),
        ("completed", "conflicted", "twice"),
    ):
        Contradiction.objects.create(
            workspace=scene.shop, claim_id=scene.calls[name], version=2, told=told, became=became,
            at=queries.clock() - timedelta(minutes=5),
        )  # fmt: skip
    alerts.tick()


def _at_last(scene: Scene) -> None:
    shop, people = scene.shop.pk, scene.people
    takes.take(shop, scene.calls["twice"], user_id=people["lea"].pk)
    assignments.assign(
        shop, scene.calls["late"], to_id=people["ana"].pk, by_id=people["lea"].pk,
        note="You know the customer.",
    )  # fmt: skip
    snoozes.snooze(
        shop, scene.calls["snoozed"], user_id=people["ana"].pk, role=Role.SUPPORT,
        reason="The bank answers in the afternoon.",
    )  # fmt: skip
    append.note(shop, scene.calls["closing"], people["ana"].pk, "Wrote to the provider's support.")
    auth.issue(scene.shop, "Checkout agent", [TokenScope.CLAIM], people["ada"])
    lost = tuple(scene.calls[name] for name in ("unknown", "closing", "late"))
    scene.ids["run"] = making.start(
        NewRun(workspace_id=shop, scope=Scope(claim_ids=lost), dry=False)
    ).pk
    a_month(scene.shop, scene.tools["charge"], scene.tools["gift"])
    cards.fill(workspace_id=shop)
    _told(scene)


def _told(scene: Scene) -> None:
    lea = scene.people["lea"]
    team = a_channel(scene.shop, "email", lea, name="Payments team", address="pay@example.com")
    quiet = {"quiet_from": time(22), "quiet_until": time(7), "zone": "Europe/Berlin"}
    a_rule(scene.shop, lea, team, within_seconds=2 * 3600, wake_seconds=3600, **quiet)
    a_rule(scene.shop, lea, name="Nobody has it", condition="untaken", within_seconds=1800)
    telling.tell(scene.shop.pk)
    scene.ids["notification"] = Notification.objects.filter(workspace=scene.shop).latest("pk").pk


_DAY: Final = (
    (-26.0, _yesterday),
    (-22.6, _night),
    (-5.0, _morning),
    (-4.9, _cut_turn),
    (-2.0, _lately),
    (-0.25, _quarter_of_an_hour_ago),
    (-0.01, _just_now),
)
