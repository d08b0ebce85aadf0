"""Addresses of the desk."""

from django.urls import URLPattern, URLResolver, path

from reconcile.pages import (
    aside,
    call,
    contracts,
    decision,
    outbox,
    queue,
    request,
    sandbox,
    second_person,
    take,
    tools,
    webhooks,
)
from reconcile.webhooks import receive

urlpatterns: list[URLPattern | URLResolver] = [
    path("queue/", queue.queue, name="queue"),
    path("calls/<uuid:claim_id>", call.call, name="call"),
    path("calls/<uuid:claim_id>/decide", decision.decide, name="call-decide"),
    path("calls/<uuid:claim_id>/undo", decision.undo, name="call-undo"),
    path("calls/<uuid:claim_id>/hold", decision.hold_longer, name="call-hold"),
    path(
        "calls/<uuid:claim_id>/requests/<int:proposal_id>/answer",
        request.answer,
        name="call-second-answer",
    ),
    path(
        "calls/<uuid:claim_id>/requests/<int:proposal_id>/take-back",
        request.take_back,
        name="call-second-take-back",
    ),
    path("calls/<uuid:claim_id>/take", take.take, name="call-take"),
    path("calls/<uuid:claim_id>/give-back", take.give_back, name="call-give-back"),
    path("calls/<uuid:claim_id>/snooze", aside.snooze, name="call-snooze"),
    path("calls/<uuid:claim_id>/wake", aside.wake, name="call-wake"),
    path(
        "calls/<uuid:claim_id>/cases/<int:case_id>/close", aside.close_case, name="call-case-close"
    ),
    path("second-person/", second_person.second_person, name="second-person"),
    path("second-person/retire/", second_person.retire, name="second-person-retire"),
    path("calls/<uuid:claim_id>/ask", call.ask, name="call-ask"),
    path("calls/<uuid:claim_id>/answer", call.answer, name="call-answer"),
    path("calls/<uuid:claim_id>/note", call.note, name="call-note"),
    path("calls/<uuid:claim_id>/bodies/<int:seq>/<str:name>", call.body, name="call-body"),
    path("webhooks/", webhooks.webhooks, name="webhooks"),
    path("webhooks/<str:public_id>", receive, name="webhook"),
    path("webhooks/deliveries/<int:delivery_id>/again", webhooks.again, name="webhook-again"),
    path("webhooks/deliveries/<int:delivery_id>/body", webhooks.body, name="webhook-body"),
    path("webhooks/addresses/<int:connection_id>", webhooks.address, name="webhook-address"),
    path("outbox/", outbox.outbox, name="outbox"),
    path("outbox/addresses", outbox.add, name="outbox-add"),
    path("outbox/addresses/<int:address_id>/retire", outbox.retire, name="outbox-retire"),
    path("outbox/addresses/<int:address_id>/test", outbox.trial, name="outbox-trial"),
    path("outbox/deliveries/<int:delivery_id>/again", outbox.again, name="outbox-again"),
    path("outbox/deliveries/<int:delivery_id>/body", outbox.body, name="outbox-body"),
    path("sandbox/", sandbox.sandbox, name="sandbox"),
    path("contracts/", contracts.contracts, name="tool-contracts"),
    path("contracts/<str:contract_name>/", contracts.contract, name="tool-contract"),
    path("tools/", tools.tools, name="tools"),
    path("tools/new/", tools.new_tool, name="tool-new"),
    path("tools/<int:tool_id>/", tools.tool, name="tool"),
]
