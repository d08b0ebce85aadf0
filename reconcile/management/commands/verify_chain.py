"""`manage.py verify_chain`: does every decision follow from the one before it, unchanged?"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any, override

from django.core.management.base import BaseCommand, CommandError

from effects.models import Workspace
from reconcile.audit import chain


class Command(BaseCommand):
    help = "Verify each workspace's chain of decisions. Exits with 1 if a link does not hold."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", metavar="SLUG", help="only this one")
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        workspaces = Workspace.objects.order_by("slug")
        if options["workspace"]:
            workspaces = workspaces.filter(slug=options["workspace"])
            if not workspaces:
                raise CommandError(f"There is no workspace {options['workspace']}.")
        found = [self._verify(workspace) for workspace in workspaces]
        holds = all(one["holds"] for one in found)
        if options["json"]:
            self.stdout.write(json.dumps({"holds": holds, "chains": found}, indent=1))
        else:
            for one in found:
                word = "holds " if one["holds"] else "BROKEN"
                head = f", head {one['head']}" if one["head"] else ""
                self.stdout.write(f"{word} {one['workspace']}: {one['decisions']} decisions{head}")
                if one["fault"]:
                    self.stdout.write(f"       {one['fault']}")
        if not holds:
            sys.exit(1)

    def _verify(self, workspace: Workspace) -> dict[str, Any]:
        check = chain.verify(workspace.pk)
        return {
            "workspace": workspace.slug,
            "decisions": check.decisions,
            "head": bytes(check.head).hex() if check.head else None,
            "holds": not check.fault,
            "fault": check.fault,
        }
