"""`manage.py workspace`: make a workspace, and let people into it."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any, override

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug

from effects.core.vocabulary import Role
from effects.models import MemberChange, Membership, Workspace

PASSWORD_BYTES = 12


class Command(BaseCommand):
    help = "Make a workspace, or give a person a role in one."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a workspace")
        create.add_argument("slug", help="its short name: letters, digits, hyphens")
        create.add_argument("name", help="its name as people read it")
        create.add_argument("--mode", choices=Workspace.Mode.values, default=Workspace.Mode.TEST)
        member = verbs.add_parser("member", help="give a person a role; make the person if need be")
        member.add_argument("slug")
        member.add_argument("login")
        member.add_argument("role", choices=[str(role) for role in Role])

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "create":
            self._create(options["slug"], options["name"], options["mode"])
        else:
            self._member(options["slug"], options["login"], Role(options["role"]))

    def _create(self, slug: str, name: str, mode: str) -> None:
        validate_slug(slug)
        if Workspace.objects.filter(slug=slug).exists():
            raise CommandError(f"There is a workspace {slug!r} already.")
        Workspace.objects.create(slug=slug, name=name, mode=mode, created_at=datetime.now(UTC))
        self.stdout.write(f"Made the {mode} workspace {slug}.")

    def _member(self, slug: str, login: str, role: Role) -> None:
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {slug!r}. Make it with `workspace create`.")
        user, is_new = User.objects.get_or_create(username=login)
        if is_new:
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            user.set_password(password)
            user.save()
            self.stdout.write(f"Made {login} with the password {password} (not shown again).")
        before = Membership.objects.filter(workspace=workspace, user=user).first()
        Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": role})
        MemberChange.objects.create(
            workspace=workspace,
            user=user,
            kind=MemberChange.Kind.ROLE if before else MemberChange.Kind.ADDED,
            role_before=str(before.role) if before else "",
            role_after=str(role),
            changed_at=datetime.now(UTC),
        )
        self.stdout.write(f"{login} is {role} in {slug}.")
