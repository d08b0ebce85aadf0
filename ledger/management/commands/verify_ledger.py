"""`manage.py verify_ledger`: is the record what its own events say, whole and unchanged?"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, override

from django.core.management.base import BaseCommand

from ledger.management.invariants.base import Check, Difference
from ledger.management.verification import checks, further_checks

DIFFERENCES_SHOWN_MAX: Final = 100


class Command(BaseCommand):
    help = "Verify every invariant of the record. Exits with 1 if one does not hold."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="also every transition, work list and date, and a search for secrets: slower",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
        parser.add_argument(
            "--clock-may-move",
            action="store_true",
            help="accept a replaced ledger_clock(): for demos and tests, never for production",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        asked = checks(clock_may_move=options["clock_may_move"])
        if options["all"]:
            asked += further_checks()
        found = [_run(check) for check in asked]
        sound = all(not outcome["differences"] for outcome in found)
        if options["json"]:
            self.stdout.write(json.dumps({"sound": sound, "checks": found}, indent=1))
        else:
            self._show(found, sound=sound)
        if not sound:
            sys.exit(1)

    def _show(self, found: Iterable[dict[str, Any]], *, sound: bool) -> None:
        for outcome in found:
            mark = "differs" if outcome["differences"] else "holds"
            self.stdout.write(f"{mark:8} {outcome['id']:10} {outcome['sentence']}")
            for difference in outcome["differences"]:
                self.stdout.write(f"         {difference['of']}: {difference['says']}")
            if outcome["more"]:
                self.stdout.write(f"         and more than these {DIFFERENCES_SHOWN_MAX}")
        self.stdout.write("The record is sound." if sound else "The record is not sound.")


def _run(check: Check) -> dict[str, Any]:
    # One more than is shown tells that there are more, without reading a broken table to its end.
    found: list[Difference] = list(islice(check.find(), DIFFERENCES_SHOWN_MAX + 1))
    return {
        "id": check.id,
        "sentence": check.sentence,
        "differences": [{"of": d.of, "says": d.says} for d in found[:DIFFERENCES_SHOWN_MAX]],
        "more": len(found) > DIFFERENCES_SHOWN_MAX,
    }
