"""`manage.py accept_restore`: look at a database that was set back, and let it grant again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, override

from django.core.management.base import BaseCommand, CommandError

from ledger import restore_fence


class Command(BaseCommand):
    help = "Show what a restored database has forgotten; with --reason, let it grant again."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reason", help="why it is safe to grant again; kept for ever")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            mark = restore_fence.read_mark()
        except restore_fence.MarkUnreadableError as error:
            self.stdout.write(
                f"{error}. The database stands at {restore_fence.head()}; what this machine has "
                "seen of it is not known. Compare with the agents' logs and the providers before "
                "you accept; then the database as it is becomes the mark."
            )
        else:
            if mark is None:
                self.stdout.write("This machine has no mark yet: there is nothing to compare with.")
                return
            if not restore_fence.is_behind():
                self.stdout.write("The database is not behind: grants go on.")
                return
            self.stdout.write(
                f"The database stands at {restore_fence.head()}, this machine has seen "
                f"{mark.counter}, about one a second, until {mark.at}. The newest claim then was "
                f"{mark.newest_claim}. Claims and reports since the restored instant are "
                "forgotten: compare with the agents' logs and the providers before you accept."
            )
        reason = (options["reason"] or "").strip()
        if not reason:
            raise CommandError("Nothing is accepted yet. Say why with --reason.")
        try:
            restore_fence.accept(reason)
        except OSError as error:
            raise CommandError(
                f"Nothing is accepted: {error}. Let this user write into COUNTERFOIL_VAR."
            ) from error
        self.stdout.write("Accepted. Grants go on.")
