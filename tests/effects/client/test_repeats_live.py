"""What a library repeated, on its way to a real ledger: over HTTP and straight in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from effects.client import Call, Ledger, ToolCall, effect
from effects.core.vocabulary import EffectClass
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import queries
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.client.ways import Way
from tests.effects.faulty_server import answers, closed_port, faulty

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_call_is_one_attempt_whatever_its_library_repeated(way: Way, transactional_db: None):
    shop = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    RegisteredTool.objects.create(
        workspace=shop,
        name="send_payment",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
    )
    gone = answers(307, location=f"http://127.0.0.1:{closed_port()}/")
    with faulty(gone) as provider, Ledger(*way.to(shop), patience=QUICK) as ledger:

        @effect(ledger, effect_class="keyed_write")
        def send_payment(call: Call) -> object:
            return httpx2.post(provider.url, follow_redirects=True)

        told = send_payment(ToolCall(conversation="c-1", turn_index=3, retry_count=7))
    assert told.status == "unknown"
    assert told.claim_id
    (attempt,) = queries.claim(shop.pk, told.claim_id).attempts.all()
    assert attempt.data
    assert attempt.granted_data
    assert attempt.data["retry_count"] == 1
    assert attempt.granted_data["retry_count"] == 7
