"""`manage.py sandbox`: a provider that misbehaves, agents that meet it, and the account of it."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final, override

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from effects.local.ports import LOOPBACK
from effects.models import Workspace
from reconcile import tasks
from reconcile.sandbox import agents, reading, scoreboard, seeding, storm
from reconcile.sandbox.havoc import Havoc
from reconcile.sandbox.provider import __main__ as provider
from reconcile.sandbox.seed import TOKEN_FILE, WORKSPACE_SLUG, seed
from reconcile.sandbox.soak import running as soak
from reconcile.sandbox.tools import DEMO_BOUNDS
from reconcile.sandbox.wiring import connect_webhooks

KILLED_IN_CHAOS: Final = 3


class Command(BaseCommand):
    help = "The sandbox: seed, provider, agents, status, storm, soak."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        seeded = verbs.add_parser("seed", help="the demo's workspace, people, tools and token")
        _add_many(seeded)
        served = verbs.add_parser("provider", help="serve the provider until it is stopped")
        served.add_argument("--port", type=int, default=settings.COUNTERFOIL_SANDBOX_PORT)
        verbs.add_parser("agents", help="real agents with continuous, modest traffic")
        status = verbs.add_parser("status", help="the provider's truth beside the ledger's word")
        status.add_argument("--json", action="store_true")
        raised = verbs.add_parser("storm", help="everything goes wrong at once, then the account")
        raised.add_argument("--conversations", type=int, default=40)
        raised.add_argument("--seed", type=int, default=7)
        raised.add_argument("--json", action="store_true")
        raised.add_argument("--without-claims", action="store_true", help="the same, no ledger")
        _add_havoc(raised)
        soaked = verbs.add_parser("soak", help="every adapter under faults, then the account")
        soaked.add_argument("--claims", type=int, default=2000)
        soaked.add_argument("--seed", type=int, default=7)
        soaked.add_argument("--hours", type=float, help="how long the product may find out for")
        soaked.add_argument("--json", action="store_true")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.COUNTERFOIL_VAR)
        match options["verb"]:
            case "seed":
                self._seed(folder, options)
            case "provider":
                served = folder / reading.PROVIDER_FOLDER
                provider.main(["--folder", str(served), "--port", str(options["port"])])
            case "agents":
                self._agents(folder)
            case "status":
                self._status(folder, as_json=options["json"])
            case "soak":
                self._soak(options)
            case _:
                self._storm(options)

    def _seed(self, folder: Path, options: dict[str, Any]) -> None:
        if options["workspace"] and options["claims"] is None:
            raise CommandError("--workspace is where --claims are made. Say how many.")
        if options["claims"] is not None:
            self._make_many(folder, options)
            return
        seeded = seed(folder, _provider_url(), DEMO_BOUNDS)
        self.stdout.write(f"Sign in to {seeded.workspace.name} at {settings.COUNTERFOIL_DESK_URL}:")
        for login, password in seeded.passwords.items():
            self.stdout.write(f"  {login:<9} {password}")
        self.stdout.write("Look at the queue first: calls of which nobody knows what they did.")

    def _make_many(self, folder: Path, options: dict[str, Any]) -> None:
        slug = options["workspace"] or WORKSPACE_SLUG
        if slug == WORKSPACE_SLUG:
            seed(folder, _provider_url(), DEMO_BOUNDS)
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {slug}. `manage.py workspace` makes one.")
        wanted = seeding.Seed(
            claims=options["claims"],
            undecided=min(options["undecided"], options["claims"]),
            attempts=options["attempts"],
            large_bytes=options["large_bytes"],
        )
        try:
            made = seeding.make(workspace, wanted, say=self.stdout.write)
        except ValueError as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(
            f"Made in {workspace.name} in {made.seconds:.0f} s. There are no decisions among them, "
            "nothing in flight, and no names by which another ledger would go on."
        )

    def _agents(self, folder: Path) -> None:
        path = folder / TOKEN_FILE
        if not path.exists():
            raise CommandError(f"There is no token at {path}. Run `manage.py sandbox seed` first.")
        # What the agents print is what is worth reading; their libraries are quiet.
        logging.getLogger().setLevel(logging.WARNING)
        try:
            connect_webhooks(_provider_url())
        except OSError as error:
            # Look-ups find out all the same, only later.
            self.stderr.write(f"The provider was not told where its webhooks go: {error}")
        agents.work(
            _provider_url(),
            settings.COUNTERFOIL_API_URL,
            path.read_text(encoding="utf-8").strip(),
            seed=time.time_ns(),
        )

    def _status(self, folder: Path, *, as_json: bool) -> None:
        workspace = Workspace.objects.filter(slug=WORKSPACE_SLUG).first()
        if workspace is None:
            raise CommandError("There is no demo workspace. Run `manage.py sandbox seed` first.")
        board = reading.read_board(workspace.pk, folder / reading.PROVIDER_FOLDER)
        figures = scoreboard.summary(board)
        provider_says = reading.read_counters(folder / reading.PROVIDER_FOLDER)
        if as_json:
            self.stdout.write(json.dumps({**figures, "provider": provider_says}))
        else:
            self._write_board(board, figures)
            for line in reading.counter_lines(provider_says):
                self.stdout.write(line)
        if figures["disagreements"]:
            sys.exit(1)

    def _write_board(self, board: list[scoreboard.Row], figures: dict[str, int]) -> None:
        for row in board:
            said = ", ".join(f"{claim.tool} {claim.state}" for claim in row.claims) or "no claim"
            happened = ", ".join(effect["object_id"] for effect in row.effects) or "nothing"
            self.stdout.write(f"{row.order:<12} ledger: {said:<40} provider: {happened}")
            for sentence in row.disagreements:
                self.stdout.write(f"{'':<12} DISAGREES: {sentence}")
        self.stdout.write(", ".join(f"{name} {count}" for name, count in figures.items()))

    def _soak(self, options: dict[str, Any]) -> None:
        # What goes wrong there is meant to; libraries that say so would drown the account.
        logging.getLogger().setLevel(logging.CRITICAL)
        hours = options["hours"]
        wanted = soak.Soak(
            claims=options["claims"],
            seed=options["seed"],
            **({} if hours is None else {"period_seconds": hours * 3600}),
        )
        with tempfile.TemporaryDirectory(prefix="counterfoil-soak-") as folder:
            try:
                told = soak.run(wanted, Path(folder), say_so=self.stderr.write)
            except ValueError as refusal:
                raise CommandError(str(refusal)) from None
        self._write_figures(told.to_json(), as_json=options["json"])
        if not told.held:
            sys.exit(1)

    def _write_figures(self, told: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(told, indent=1))
            return
        for name, value in told.items():
            self.stdout.write(f"{name}: {value}")

    def _storm(self, options: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="counterfoil-storm-") as folder:
            try:
                account = storm.run(_forecast(options), Path(folder), say=self.stderr.write)
            except ValueError as refusal:
                raise CommandError(str(refusal)) from None
        self._write_figures(account.to_json(), as_json=options["json"])
        if account.violations:
            sys.exit(1)


def _add_many(seeded: ArgumentParser) -> None:
    usual = seeding.Seed(claims=1)
    seeded.add_argument(
        "--claims", type=int, metavar="N", help="make so many calls at once; only for measuring"
    )
    seeded.add_argument("--workspace", metavar="SLUG", help="where; its mode must be test (demo)")
    seeded.add_argument("--undecided", type=int, default=usual.undecided, help="of them (3000)")
    seeded.add_argument(
        "--attempts", type=int, default=usual.attempts, help="of one call more (50000)"
    )
    seeded.add_argument(
        "--large-bytes", type=int, default=usual.large_bytes, help="of one call's arguments (5 MB)"
    )


def _add_havoc(raised: ArgumentParser) -> None:
    raised.add_argument("--kill-workers", type=int, default=0, metavar="N", help="in the middle")
    raised.add_argument("--restart-broker", action="store_true", help="kill and start it again")
    raised.add_argument("--restart-database", action="store_true", help="kill and start it again")
    raised.add_argument(
        "--chaos", action="store_true", help="three workers, the broker and the database"
    )
    raised.add_argument(
        "--settle-seconds",
        type=float,
        help="how long to wait afterwards for what comes by itself",
    )


def _forecast(options: dict[str, Any]) -> storm.Forecast:
    everything = options["chaos"]
    havoc = Havoc(
        kill_workers=options["kill_workers"] or (KILLED_IN_CHAOS if everything else 0),
        restart_broker=options["restart_broker"] or everything,
        restart_database=options["restart_database"] or everything,
    )
    # A look-up that was in the hands of a killed worker is due again only after its lease.
    usual = (
        tasks.LEASE_SECONDS + storm.SETTLE_SECONDS_MAX if havoc.any else storm.SETTLE_SECONDS_MAX
    )
    return storm.Forecast(
        conversations=options["conversations"],
        seed=options["seed"],
        claims=not options["without_claims"],
        havoc=havoc,
        settle_seconds=usual if options["settle_seconds"] is None else options["settle_seconds"],
    )


def _provider_url() -> str:
    return f"http://{LOOPBACK}:{settings.COUNTERFOIL_SANDBOX_PORT}"
