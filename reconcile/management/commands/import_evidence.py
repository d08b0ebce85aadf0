"""`manage.py import_evidence`: brings in what others recorded about who executed a call again."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, override
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from effects.core.problems import ClaimNotFound
from effects.models import Connection, Workspace
from ledger import queries
from reconcile.duplicates.importers import jsonlines, langgraph, stripe
from reconcile.duplicates.importers.keeping import CannotImport, Line, keep
from reconcile.models import ImportedEvidence

FILES = {
    "provider": ImportedEvidence.Source.PROVIDER,
    "gateway": ImportedEvidence.Source.GATEWAY,
    "deliveries": ImportedEvidence.Source.DELIVERIES,
}
DAYS_USUAL = 7


class Command(BaseCommand):
    """Each line is kept once: the same file may be given again. Nothing is written elsewhere."""

    help = "Import evidence about duplicates: logs as JSON lines, LangGraph's checkpoints, Stripe."

    @override
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", choices=[*FILES, "langgraph", "stripe"])
        parser.add_argument("file", nargs="?", type=Path, help="JSON lines; not for stripe")
        parser.add_argument("--workspace", required=True, help="the workspace's short name")
        parser.add_argument("--claim", type=UUID, help="the call that every line is about")
        parser.add_argument(
            "--database-url-variable",
            metavar="NAME",
            help="langgraph: the variable that holds the address of its database, which is read",
        )
        parser.add_argument("--thread", help="langgraph: one thread only")
        parser.add_argument("--connection", help="stripe: the name of the connection")
        parser.add_argument(
            "--since", type=_moment, help=f"stripe: from when on; {DAYS_USUAL} days ago if not said"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {options['workspace']}.")
        try:
            imported = keep(workspace.pk, _lines(workspace, options), claim_id=options["claim"])
        except (CannotImport, ClaimNotFound) as error:
            raise CommandError(f"Nothing was kept. {error}") from None
        self.stdout.write(
            f"{imported.new} new, {imported.known} known before,"
            f" {imported.without_a_call} that name no call of this workspace."
        )


def _lines(workspace: Workspace, options: dict[str, Any]) -> Iterable[Line]:
    source, file = options["source"], options["file"]
    if source == "stripe":
        connection = Connection.objects.filter(workspace=workspace, name=options["connection"])
        since = options["since"] or queries.clock() - timedelta(days=DAYS_USUAL)
        if (found := connection.first()) is None:
            raise CommandError("Name a connection of this workspace with --connection.")
        return stripe.read_events(found, since=since)
    if source == "langgraph" and options["database_url_variable"]:
        url = os.environ.get(options["database_url_variable"], "")
        if not url:
            raise CommandError(f"The variable {options['database_url_variable']} is not set.")
        return langgraph.read_tables(url, thread=options["thread"])
    if file is None:
        raise CommandError("Give a file of JSON lines.")
    return (
        langgraph.read_export(file)
        if source == "langgraph"
        else jsonlines.read(file, FILES[source])
    )


def _moment(said: str) -> datetime:
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{said} is no moment") from None
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError("write it with an offset, 2026-03-02T10:00:00Z")
    return at
