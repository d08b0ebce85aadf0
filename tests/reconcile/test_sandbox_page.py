"""The sandbox's page: both sides counted from where they really stand, and a lie shown as one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Unknown
from effects.core.vocabulary import EffectClass, Outcome, Role
from effects.models import Membership, Tool, Workspace
from ledger import append, claiming
from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.seed import WORKSPACE_SLUG
from tests.reconcile.sandbox.customer import Customer

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    workspace = Workspace.objects.create(
        name="Halden Outdoor", slug=WORKSPACE_SLUG, created_at=datetime.now(UTC)
    )
    Tool.objects.create(
        workspace=workspace,
        name="charge_card",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
    )
    return workspace


@pytest.fixture
def support(workspace: Workspace) -> Client:
    user = User.objects.create_user("support")
    Membership.objects.create(workspace=workspace, user=user, role=Role.SUPPORT)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def shopper(tmp_path: Path, settings: Any) -> Iterator[Customer]:
    settings.COUNTERFOIL_VAR = tmp_path
    with Provider(tmp_path / "sandbox") as provider:
        customer = Customer(provider.url)
        yield customer
        customer.close()


def claim(workspace: Workspace, order: str) -> ClaimAnswer:
    request = ClaimRequest(
        tool="charge_card",
        effect_class=EffectClass.KEYED_WRITE,
        arguments=f'{{"amount":14900,"order":"{order}"}}',
        conversation=order,
        turn_index=1,
    )
    return claiming.claim(workspace.pk, request)


def report(workspace: Workspace, answer: ClaimAnswer, outcome: Outcome) -> None:
    assert answer.claim_id
    settle = Complete(fence=1) if outcome is Outcome.COMPLETED else Unknown(fence=1)
    append.report(workspace.pk, answer.claim_id, outcome, settle)


def charge(shopper: Customer, answer: ClaimAnswer) -> None:
    shopper.pay(answer.key or "", metadata={"counterfoil": answer.marker or ""})


def test_both_sides_are_counted_and_agree(
    support: Client, workspace: Workspace, shopper: Customer
) -> None:
    done, lost = claim(workspace, "8841"), claim(workspace, "8842")
    charge(shopper, done)
    charge(shopper, lost)
    report(workspace, done, Outcome.COMPLETED)
    report(workspace, lost, Outcome.UNKNOWN)
    page = support.get("/sandbox/")
    assert page.status_code == 200
    figures = page.context["figures"]
    assert (figures["operations"], figures["effects"], figures["disagreements"]) == (2, 2, 0)
    assert "They agree" in page.content.decode()
    unknown = support.get("/sandbox/?show=unknown")
    assert [row.order for row in unknown.context["rows"]] == ["8842"]


def test_a_call_that_is_said_to_have_happened_without_an_effect_disagrees(
    support: Client, workspace: Workspace, shopper: Customer
) -> None:
    report(workspace, claim(workspace, "8841"), Outcome.COMPLETED)
    page = support.get("/sandbox/?show=disagreeing")
    assert page.context["figures"]["disagreements"] == 1
    assert "1 disagreement" in page.content.decode()


def test_an_effect_without_a_call_disagrees(
    support: Client, workspace: Workspace, shopper: Customer
) -> None:
    shopper.pay("k", metadata={"order": "9000"})
    page = support.get("/sandbox/")
    assert "happened without a claim" in page.content.decode()


def test_where_there_is_no_sandbox_the_page_says_how_to_get_one(
    support: Client, tmp_path: Path, settings: Any
) -> None:
    settings.COUNTERFOIL_VAR = tmp_path
    assert "make demo" in support.get("/sandbox/").content.decode()


def test_the_page_counts_webhooks_and_reads_as_the_provider_does(
    workspace: Workspace, support: Client, tmp_path: Path, settings: Any
) -> None:
    settings.COUNTERFOIL_VAR = tmp_path
    with Provider(tmp_path / "sandbox") as provider:
        customer = Customer(provider.url)
        customer.pay("k1")
        customer.stripe.v1.payment_intents.list()
        customer.close()

    page = support.get("/sandbox/").content.decode()

    assert "acct_halden/test" in page
    assert '<b class="strong">1</b> of 10000' in page
    assert 'Webhooks: <b class="strong">0</b> sent' in page
