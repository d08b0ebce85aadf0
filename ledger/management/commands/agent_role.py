"""`manage.py agent_role`: database roles for agents that speak to PostgreSQL themselves."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, override

from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError

from effects.core.problems import LedgerBehind
from effects.models import Workspace
from ledger import agents


class Command(BaseCommand):
    help = "Make, list or revoke database roles of one workspace's agents."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, help="the workspace's slug")
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a role and print its address, once")
        create.add_argument("name", help="who or what will use it")
        create.add_argument(
            "--address",
            metavar="HOST[:PORT]",
            help="where agents find the database; without it, where this command does",
        )
        create.add_argument(
            "--connections",
            type=int,
            default=agents.CONNECTIONS_DEFAULT,
            help="most connections of the role at once (%(default)s)",
        )
        verbs.add_parser("list", help="every role of the workspace, without its password")
        revoke = verbs.add_parser("revoke", help="close a role for ever")
        revoke.add_argument("role", help="the name that `list` prints")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {options['workspace']!r}.")
        try:
            if options["verb"] == "create":
                self._create(workspace, options)
            elif options["verb"] == "list":
                self._list(workspace)
            else:
                self._revoke(workspace, options["role"])
        except ProgrammingError as error:
            raise CommandError(
                f"The database refuses: {error}. Run this as the owner of the tables, with the"
                " right to make roles (alter role … createrole)."
            ) from error

    def _create(self, workspace: Workspace, options: dict[str, Any]) -> None:
        try:
            made = agents.create(
                workspace,
                options["name"],
                address=options["address"],
                connections_max=options["connections"],
            )
        except (ValueError, LedgerBehind) as error:
            raise CommandError(str(error)) from error
        # Only the address on standard output, so that a script can take it as it is.
        self.stderr.write(
            f"Role {made.role} for {options['name']} in {workspace.name}. Not shown again."
        )
        self.stdout.write(made.url)

    def _list(self, workspace: Workspace) -> None:
        for role in agents.roles(workspace):
            state = f"revoked {role.revoked_at:%Y-%m-%d %H:%M}" if role.revoked_at else "open"
            self.stdout.write(f"{role.role}  {role.name}  {state}")

    def _revoke(self, workspace: Workspace, role: str) -> None:
        if not agents.revoke(workspace, role):
            raise CommandError(f"{role} is no open role of {workspace.name}.")
        self.stdout.write(f"{role} is revoked.")
