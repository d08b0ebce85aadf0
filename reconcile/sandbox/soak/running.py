"""Runs a soak: calls get lost, time passes, the product finds out, the account is made."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from effects.core.messages import ClaimRequest, Unknown
from effects.core.vocabulary import EffectClass, Outcome
from ledger import append, claiming
from reconcile import tasks
from reconcile.sandbox.soak.account import Account, Played, account
from reconcile.sandbox.soak.clocks import say
from reconcile.sandbox.soak.fates import Case, Fate, cast
from reconcile.sandbox.soak.rail import CURRENCY, LATE_SECONDS, Order, paid
from reconcile.sandbox.soak.rails import RAILS
from reconcile.sandbox.soak.stage import Stage, staged

WAVES_MAX: Final = 8
WAVE_LEAST: Final = 20
"""The calls are made in up to so many waves of at least so many, and time passes between them."""
BETWEEN_WAVES_SECONDS: Final = 90.0
PERIOD_SECONDS: Final = 4 * 60 * 60
"""How long the product has for finding out, by the moved clocks: longer than PayPal's report is
late, and shorter than any window but Zendesk's."""
MENDED_AFTER_SECONDS: Final = 30 * 60
"""When somebody enters the right secret for the connections that ask the wrong account."""
STEP_LEAST_SECONDS: Final = 2.0
"""An account that is asked about one call at a time is asked so often."""
STEP_MOST_SECONDS: Final = 300.0
BUSY_SECONDS: Final = 60 * 60
"""After so long little is due at once, and time passes in large steps."""
LAST_TICKS: Final = 4
REST_SECONDS_MAX: Final = 60.0
"""How long, in real time, is waited at the end for webhooks that are still on their way."""
SAID_EVERY_SECONDS: Final = 10.0
OTHER_BY: Final = 100
STATUSES: Final = {
    Fate.SERVER_ERROR: 500,
    Fate.LATE_AFTER_ERROR: 500,
    Fate.TURNED_AWAY: 429,
    Fate.DECLINED: 402,
}
"""What the agent's library told of the answer; of the other fates it told nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """What is to be played."""

    claims: int
    seed: int
    period_seconds: float = PERIOD_SECONDS


def run(soak: Soak, folder: Path, *, say_so: Callable[[str], None]) -> Account:
    """Plays the soak in `folder` and accounts for it.

    Raises ValueError for fewer claims than rails, and for too many.
    """
    cases = cast(soak.claims, soak.seed, list(RAILS))
    began = time.monotonic()

    def progress(what: str) -> None:
        say_so(f"{time.monotonic() - began:6.1f} s  {what}")

    with staged(folder, soak.seed) as stage:
        progress("the stage stands")
        played = _play(stage, cases, progress)
        _let_find_out(stage, soak.period_seconds, progress)
        _come_to_rest(stage)
        truth = say(stage.provider_url, "/_sandbox/truth")["effects"]
        told = account(played, truth, stage.witness.seen)
        told.figures["hours"] = round(stage.clocks.advanced_seconds / 3600, 2)
    told.figures["seconds"] = round(time.monotonic() - began, 1)
    told.figures["violations"] = list(_too_little(told, cases))
    return told


# The calls


def _play(stage: Stage, cases: Sequence[Case], progress: Callable[[str], None]) -> list[Played]:
    played: list[Played] = []
    size = max(WAVE_LEAST, -(-len(cases) // WAVES_MAX))
    for begin in range(0, len(cases), size):
        played += [_made(stage, case) for case in cases[begin : begin + size]]
        progress(f"{len(played)} calls were made")
        _find_out(stage)
        stage.clocks.advance(BETWEEN_WAVES_SECONDS)
    stage.bank.quiet_from = stage.clocks.advanced_seconds + 2 * LATE_SECONDS
    return played


def _made(stage: Stage, case: Case) -> Played:
    """One call from the claim to the agent's last word, if there is one."""
    rail = RAILS[case.rail]
    misplaced = case.misplaced and (case.rail, True) in stage.tools
    tool = stage.tools[case.rail, misplaced]
    made = rail.prepare(stage.till, case)
    arguments = {"amount": case.amount, "currency": CURRENCY, "order": str(case.number), **made}
    answer = claiming.claim(
        stage.workspace.pk,
        ClaimRequest(
            tool=tool.name,
            effect_class=EffectClass(tool.effect_class),
            arguments=json.dumps(arguments),
            conversation=f"soak-{case.number}",
            turn_index=1,
            call_id=f"call_{case.number:020d}",
            response_id=f"response-{case.number}",
        ),
    )
    assert answer.claim_id is not None and answer.marker is not None, answer  # noqa: PT018 - one
    other = OTHER_BY if case.fate is Fate.OTHER_AMOUNT else 0
    order = Order(
        case=case,
        made=made,
        key=answer.key or answer.marker,
        marker=answer.marker,
        amount=case.amount + other,
    )
    if case.fate.is_sent:
        paid(stage.till, rail, order)
    if case.fate.is_reported:
        report = Unknown(fence=answer.fence, marker_sent=True, http_status=STATUSES.get(case.fate))
        append.report(stage.workspace.pk, answer.claim_id, Outcome.UNKNOWN, report)
    return Played(
        case=case,
        claim_id=answer.claim_id,
        asked_minor=case.amount,
        reference=made.get(rail.by_reference, ""),
    )


# Finding out


def _find_out(stage: Stage) -> None:
    """One tick of the product's own clock work, and the webhooks that have come."""
    stage.bank.copy(stage.clocks.advanced_seconds)
    tasks.tick()
    tasks.webhooks()


def _let_find_out(stage: Stage, period_seconds: float, progress: Callable[[str], None]) -> None:
    begun, said_at, mended = stage.clocks.advanced_seconds, time.monotonic(), False
    mended_after = min(MENDED_AFTER_SECONDS, period_seconds / 2)
    while (passed := stage.clocks.advanced_seconds - begun) < period_seconds:
        if not mended and passed >= mended_after:
            stage.mend()
            mended = True
            progress("somebody has mended the connections that asked the wrong account")
        _find_out(stage)
        due = stage.clocks.next_due_seconds()
        wait = STEP_MOST_SECONDS if due is None or passed > BUSY_SECONDS else due
        stage.clocks.advance(min(max(wait, STEP_LEAST_SECONDS), STEP_MOST_SECONDS))
        if time.monotonic() - said_at >= SAID_EVERY_SECONDS:
            said_at = time.monotonic()
            progress(f"{passed / 60:.0f} minutes have passed there")


def _come_to_rest(stage: Stage) -> None:
    """What was on its way when the time was over still arrives, and is looked at."""
    stage.witness.calm = True
    until = time.monotonic() + REST_SECONDS_MAX
    while stage.webhooks_waiting() and time.monotonic() < until:
        stage.clocks.advance(BETWEEN_WAVES_SECONDS)
        _find_out(stage)
        time.sleep(0.2)
    for _ in range(LAST_TICKS):
        _find_out(stage)
        stage.clocks.advance(STEP_MOST_SECONDS)


def _too_little(told: Account, cases: Sequence[Case]) -> list[str]:
    """Everything that must have been for the rest to count."""
    figures = told.figures
    asked = {name: row["looked"] for name, row in figures["rails"].items()}
    wanted = {case.rail for case in cases}
    return [
        *(f"nobody was asked about {name}" for name in sorted(wanted) if not asked.get(name)),
        *(["nothing was settled by rule"] if not figures["settled_by_rule"] else []),
        *(["no webhook was taken"] if not figures["webhooks"]["events"] else []),
    ]
