"""The first workspace and its first person, made from a shell."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from effects.models import Membership, Workspace

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("workspace", *arguments, stdout=said)
    return said.getvalue()


def test_a_new_member_can_sign_in_with_the_password_that_was_printed() -> None:
    run("create", "shop", "My shop")
    printed = run("member", "shop", "ilse", "admin")
    password = printed.split("password ")[1].split(" ")[0]
    assert Client().login(username="ilse", password=password)
    assert Membership.objects.get().role == "admin"


def test_a_known_member_gets_another_role_and_keeps_the_password() -> None:
    run("create", "shop", "My shop", "--mode", "live")
    run("member", "shop", "ilse", "support")
    before = User.objects.get().password
    assert "password" not in run("member", "shop", "ilse", "lead")
    assert (Membership.objects.get().role, User.objects.get().password) == ("lead", before)


def test_a_workspace_is_made_once_and_missing_ones_are_named() -> None:
    run("create", "shop", "My shop")
    with pytest.raises(CommandError, match="already"):
        run("create", "shop", "Another")
    with pytest.raises(CommandError, match="no workspace 'shopp'"):
        run("member", "shopp", "ilse", "admin")
    assert Workspace.objects.count() == 1
