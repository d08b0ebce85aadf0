"""`manage.py token`: issue, list and revoke the tokens with which agents speak to the API."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, override

from django.core.management.base import BaseCommand, CommandError

from effects.core.vocabulary import TokenScope
from effects.models import Workspace
from ledger import auth


class Command(BaseCommand):
    help = "Issue, list or revoke API tokens of one workspace."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, help="the workspace's slug")
        verbs = parser.add_subparsers(dest="verb", required=True)
        issue = verbs.add_parser("issue", help="make a token and print it, once")
        issue.add_argument("name", help="who or what will use it")
        issue.add_argument(
            "--scope",
            action="append",
            choices=[str(scope) for scope in TokenScope],
            help="may be given again; without it: claim and read",
        )
        verbs.add_parser("list", help="every token of the workspace, without its text")
        revoke = verbs.add_parser("revoke", help="close a token for ever")
        revoke.add_argument("id", type=int, help="the number that `list` prints")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {options['workspace']!r}.")
        if options["verb"] == "issue":
            self._issue(workspace, options["name"], options["scope"])
        elif options["verb"] == "list":
            self._list(workspace)
        else:
            self._revoke(workspace, options["id"])

    def _issue(self, workspace: Workspace, name: str, scopes: list[str] | None) -> None:
        wanted = [TokenScope(scope) for scope in scopes or ("claim", "read")]
        token, plain = auth.issue(workspace, name, wanted, user=None)
        # Only the token on standard output, so that a script can take it as it is.
        self.stderr.write(
            f"Token {token.pk} for {token.name} in {workspace.name}. Not shown again."
        )
        self.stdout.write(plain)

    def _list(self, workspace: Workspace) -> None:
        for token in auth.tokens(workspace):
            used = f"{token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never"
            state = f"revoked {token.revoked_at:%Y-%m-%d %H:%M}" if token.revoked_at else "open"
            scopes = ",".join(token.scopes)
            self.stdout.write(
                f"{token.pk}  cf_{token.prefix}_…  {token.name}  {scopes}  used {used}  {state}"
            )

    def _revoke(self, workspace: Workspace, token_id: int) -> None:
        if not auth.revoke(workspace, token_id):
            raise CommandError(f"Token {token_id} is no open token of {workspace.name}.")
        self.stdout.write(f"Token {token_id} is revoked.")
