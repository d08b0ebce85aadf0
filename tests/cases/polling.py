"""Cases about a status that never settles: asked as often as the schedule wants it, to its end."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Final

from effects.core.vocabulary import Outcome
from ledger import queries
from reconcile.runs import ending
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.provider_stories import status_endpoint
from tests.cases.stub import Reply
from tests.cases.words import STATES, moment
from tests.cases.world import SEND_SECONDS, Setting, World, a_world

LOOKS_MAX: Final = 200
DAY_SECONDS: Final = 86_400
_ALWAYS: Final = re.compile(r"always (?P<body>\{.*\})")


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    """Asks as the schedule says until it says no more, or until `now`."""
    operation = Fields(given.at("operation"), given.take("operation", dict))
    poll = Fields(given.at("poll"), given.take("poll", dict))
    said = _ALWAYS.fullmatch(given.take("provider_replies", str))
    if said is None:
        raise Fault(given.at("provider_replies"), "is not interpreted")
    body = json.loads(said["body"])
    started, now = moment(operation.take("first_attempt_at", str)), moment(given.take("now", str))
    if started is None or now is None:
        raise Fault(given.where, "names no moment")
    # How often it is asked is our schedule's to say; that it ends is what the case is about.
    poll.take("every_s", int)
    age = poll.take("max_age_s", int)
    operation.pass_over("key")
    for one in (operation, poll):
        one.finish()
    state, flags = expected.take("state", str), expected.take("flags", list, [])
    days = max(1, age // DAY_SECONDS)
    setting = Setting(
        lookup_kind="http",
        lookup=status_endpoint({str(body.get("status")): "pending"}, []),
        policy={"horizon_days": days},
    )
    with a_world(setting, started_at=started) as world:
        poll_until(world, Reply(status=200, body=body), now)
        came = str(queries.status(world.claim, now=world.clock.now).state)
        end = ending.of_call(world.workspace.pk, world.claim_id)
    if state not in STATES:
        raise Fault("expected.state", f"{state!a} is no state")
    found.check("expected.state", state, came, holds=came == STATES[state])
    rests = end is not None and end.open and end.ended_at <= now
    came_flags = ["reconciliation_ended"] if rests else []
    for flag in flags:
        found.check("expected.flags", str(flag), came_flags, holds=flag in came_flags)


def poll_until(world: World, reply: Reply, now: datetime) -> int:
    """Asks as often as the schedule wants it until `now`; answers how often."""
    world.later(SEND_SECONDS)
    world.report(Outcome.UNKNOWN)
    world.stub.pages = [reply]
    for looks in range(1, LOOKS_MAX):
        looked = world.look()
        if looked.next_at is None or looked.next_at > now:
            world.at(now)
            return looks
        world.at(looked.next_at)
    return LOOKS_MAX
