"""Tokens: made once, kept as a hash, bound to a workspace, good for what they were issued for."""

import io
import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from effects.core.vocabulary import TokenScope
from ledger import auth
from ledger.models import ApiToken

READER = (TokenScope.READ,)


def test_a_token_opens_its_workspace_and_nothing_of_it_can_be_read_back(shop):
    token, plain = auth.issue(shop, " billing agent ", READER, user=None)

    bearer = auth.bearer(plain, TokenScope.READ)

    assert bearer.workspace_id == shop.pk
    assert bearer.name == "billing agent"
    (kept,) = ApiToken.objects.filter(pk=token.pk).values()
    assert plain.split("_")[2] not in repr(kept)
    assert plain.startswith(f"cf_{token.prefix}_")


@pytest.mark.parametrize(
    "presented",
    [
        pytest.param("", id="nothing"),
        pytest.param("cf_00000000_", id="no secret"),
        pytest.param("cf_00000000_" + "0" * 64, id="nobody's"),
        pytest.param("cf_00000000_" + "0" * 64 + "\n", id="with a line end"),
        pytest.param("CF_00000000_" + "0" * 64, id="another prefix"),
        pytest.param("cf_00000000_" + "\u0660" * 64, id="digits that are not ASCII"),
    ],
)
def test_what_is_no_token_of_ours_is_refused(db, presented):
    with pytest.raises(auth.TokenRefused):
        auth.bearer(presented, TokenScope.READ)


def test_a_changed_character_makes_it_another_token(shop):
    _, plain = auth.issue(shop, "agent", READER, user=None)
    changed = plain[:-1] + ("0" if plain[-1] != "0" else "1")

    with pytest.raises(auth.TokenRefused):
        auth.bearer(changed, TokenScope.READ)


def test_a_revoked_token_is_refused_from_then_on(shop, neighbour):
    token, plain = auth.issue(shop, "agent", READER, user=None)

    assert not auth.revoke(neighbour, token.pk), "another workspace's token is not found"
    assert auth.revoke(shop, token.pk)
    assert not auth.revoke(shop, token.pk), "it is closed already"
    with pytest.raises(auth.TokenRefused):
        auth.bearer(plain, TokenScope.READ)


def test_a_token_is_good_for_the_scopes_that_it_was_issued_for(shop):
    _, plain = auth.issue(shop, "agent", READER, user=None)

    bearer = auth.bearer(plain, TokenScope.CLAIM, TokenScope.READ)
    assert bearer.scopes == {TokenScope.READ}, "one of several is enough"
    with pytest.raises(auth.ScopeMissing) as missing:
        auth.bearer(plain, TokenScope.CLAIM)
    assert missing.value.scopes == (TokenScope.CLAIM,)


@pytest.mark.parametrize(("name", "scopes"), [("", READER), ("  ", READER), ("agent", ())])
def test_a_token_needs_a_name_and_a_scope(shop, name, scopes):
    with pytest.raises(ValueError, match="name and at least one scope"):
        auth.issue(shop, name, scopes, user=None)


def test_use_is_noted_at_most_once_a_minute(shop, django_assert_num_queries):
    token, plain = auth.issue(shop, "agent", READER, user=None)
    # The token is found by a prepared statement that is not counted here; the note is.
    with django_assert_num_queries(1):
        auth.bearer(plain, TokenScope.READ)
    with django_assert_num_queries(0):
        auth.bearer(plain, TokenScope.READ)
    first = ApiToken.objects.get(pk=token.pk).last_used_at
    assert first is not None

    ApiToken.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(seconds=61))
    auth.bearer(plain, TokenScope.READ)

    again = ApiToken.objects.get(pk=token.pk).last_used_at
    assert again is not None
    assert again > first


def test_the_command_issues_lists_and_revokes(shop):
    out, err = io.StringIO(), io.StringIO()
    call_command(
        "token",
        "--workspace",
        "shop",
        "issue",
        "billing",
        "--scope",
        "claim",
        stdout=out,
        stderr=err,
    )
    plain = out.getvalue().strip()
    assert auth.bearer(plain, TokenScope.CLAIM).name == "billing"

    out = io.StringIO()
    call_command("token", "--workspace", "shop", "list", stdout=out)
    (line,) = out.getvalue().splitlines()
    assert re.fullmatch(r"\d+  cf_[0-9a-f]{8}_…  billing  claim  used .+  open", line)
    assert plain not in line

    call_command("token", "--workspace", "shop", "revoke", line.split()[0], stdout=io.StringIO())
    with pytest.raises(auth.TokenRefused):
        auth.bearer(plain, TokenScope.CLAIM)
    with pytest.raises(CommandError, match="no open token"):
        call_command("token", "--workspace", "shop", "revoke", line.split()[0])


def test_the_command_says_that_a_workspace_is_unknown(db):
    with pytest.raises(CommandError, match="no workspace 'nowhere'"):
        call_command("token", "--workspace", "nowhere", "list")
