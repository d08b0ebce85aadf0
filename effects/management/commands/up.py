"""`manage.py up`: the whole product in one foreground process, stopped by Ctrl-C."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, override

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, SystemCheckError

from effects.checks import judge_environment
from effects.environment import read_environment
from effects.local import stack
from effects.local.ports import PortTaken
from effects.local.processes import NotStarted, Program
from effects.local.supervisor import GaveUp, Stopped, Supervisor

PREPARE_SECONDS_MAX = 300
SEED_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is started besides: all of it named by command, so that nothing here imports it."""

    seed: Program | None = None  # Runs to its end before a door opens; its words are shown last.
    doors: tuple[Program, ...] = ()
    visitors: tuple[Program, ...] = ()  # Come in once every door is open.


class Command(BaseCommand):
    help = "Start database, broker, worker, beat, desk and api here, and stop them with Ctrl-C."
    # `prepare` runs all checks; here they would only make everybody wait twice.
    requires_system_checks = ()

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        self.keep_up(lambda _plan: Extras())

    def keep_up(self, extras_of: Callable[[stack.Plan], Extras]) -> None:
        """Start everything and return when somebody has stopped it."""
        # Not `settings.ENVIRONMENT`: that one also knows what an earlier `up` left behind.
        environment = read_environment(os.environ, base=settings.BASE_DIR)
        nonsense = judge_environment(environment)
        if nonsense:
            raise SystemCheckError("\n\n".join(map(str, nonsense)))
        try:
            with stack.sole_owner(environment.var) as note:
                plan = stack.make_plan(environment, secret_key=settings.SECRET_KEY)
                note(plan.desk_url)
                with Supervisor(say=self.say) as supervisor, stack.findable(plan):
                    self.bring_up(supervisor, plan, extras_of(plan))
                    supervisor.run()
        except Stopped:
            pass
        except (stack.AlreadyRuns, PortTaken, NotStarted, GaveUp) as problem:
            raise CommandError(str(problem)) from None

    def bring_up(self, supervisor: Supervisor, plan: stack.Plan, extras: Extras) -> None:
        started_at = time.monotonic()
        supervisor.start(stack.services(plan))
        supervisor.run_once(stack.prepare(plan), seconds_max=PREPARE_SECONDS_MAX)
        closing_words = []
        if extras.seed:
            closing_words = supervisor.run_once(extras.seed, seconds_max=SEED_SECONDS_MAX)
        supervisor.start([*extras.doors, *stack.doors_and_workers(plan)])
        supervisor.start(extras.visitors)
        self.say("counterfoil", f"everything is up after {time.monotonic() - started_at:.1f} s")
        for line in closing_words:
            self.stdout.write(line)
        self.stdout.write(f"ready: desk {plan.desk_url} api {plan.api_url}")
        self.stdout.flush()

    def say(self, name: str, line: str) -> None:
        self.stdout.write(f"{name:>11} | {line}")
        self.stdout.flush()
