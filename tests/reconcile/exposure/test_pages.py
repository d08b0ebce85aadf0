"""The pages about exposure say what was measured, and say where nothing was."""

from __future__ import annotations

import pytest
from django.test import Client

from effects.core.vocabulary import Role
from tests.support import desk

pytestmark = pytest.mark.django_db


def signed_in(shop, role=Role.ADMIN):
    client = Client()
    client.force_login(desk.a_person(shop, role))
    return client


@pytest.mark.parametrize(
    "address", ["/exposure/", "/trends/", "/trends/?days=7", "/weekly-report/"]
)
def test_an_empty_desk(address):
    shop = desk.a_workspace()
    answer = signed_in(shop).get(address)
    assert answer.status_code == 200
    print(answer.content.decode()[-6000:])
