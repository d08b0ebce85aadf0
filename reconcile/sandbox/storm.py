"""A storm: many real agents, everything going wrong, and afterwards the account of it.

The account is made against the provider's own truth. With the ledger it must show no effect that
nobody meant and no word that is not true; without the ledger the same world must show both.
"""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from django.core.management import call_command
from django.db import connections

from effects.core.vocabulary import ClaimState, EffectClass, Role
from reconcile import tasks
from reconcile.sandbox import surroundings
from reconcile.sandbox.agents import checkout
from reconcile.sandbox.conduct import Direction, Played, play
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.havoc import Havoc, Progress, striking
from reconcile.sandbox.jobs import World
from reconcile.sandbox.reading import read_board, read_truth
from reconcile.sandbox.scoreboard import Row, rows, summary
from reconcile.sandbox.seed import seed
from reconcile.sandbox.stories import (
    ASKED_AGAIN_SHARE,
    EACH_FAULT_MIN,
    EACH_MISHAP_MIN,
    REQUEST_SECONDS_MAX,
    Operation,
    storm,
)
from reconcile.sandbox.surroundings import Surroundings
from reconcile.sandbox.tools import STORM_BOUNDS, ToolName

AT_ONCE_MAX: Final = 16
"""How many conversations go on at the same time."""
WAIT_SECONDS_MAX: Final = 20.0
"""How long an agent waits for an outcome before it gives the turn back."""
SETTLE_SECONDS_MAX: Final = 20.0
SETTLE_POLL_SECONDS: Final = 0.5
UNKNOWN_SHARE_MAX: Final = 0.10
"""Most keyed claims that may still be unknown at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a storm came to. `violations` are sentences; none means that it held."""

    figures: Mapping[str, Any]
    violations: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            **self.figures,
            "violations": list(self.violations),
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What kind of storm it is to be. Without `claims` there is no ledger, and nothing to kill.

    `settle_seconds`: how long afterwards is waited for what comes by itself. It says nothing of how
    many claims are still unknown if that is shorter than the lease of a look-up whose worker was
    killed.
    """

    conversations: int
    seed: int
    claims: bool = True
    havoc: Havoc = Havoc()  # noqa: RUF009 - it is frozen.
    settle_seconds: float = SETTLE_SECONDS_MAX


def run(forecast: Forecast, folder: Path, *, say: Callable[[str], None]) -> Account:
    """Raise a storm in `folder` and account for it.

    Raises ValueError if it is too small for its faults, or too much is to be killed.
    """
    operations = storm(forecast.conversations, forecast.seed)
    blows = forecast.havoc.blows(forecast.seed)
    started = time.monotonic()

    def progress(what: str) -> None:
        say(f"{time.monotonic() - started:5.1f} s  {what}")

    with _around(forecast)(folder) as place:
        progress("the surroundings stand")
        workspace_id, token = _prepare(place, folder) if forecast.claims else (0, "")
        direction = Direction(
            world=World(
                provider_url=place.provider_url,
                ledger_url=place.api_url,
                token=token,
                request_seconds_max=REQUEST_SECONDS_MAX,
                wait_seconds_max=WAIT_SECONDS_MAX,
            ),
            conversation_prefix=f"storm-{forecast.seed}",
            lease_seconds=STORM_BOUNDS.lease_seconds,
            payments=_checkout(place, operations),
        )
        progress(f"{len(operations)} operations in {forecast.conversations} conversations begin")
        done = Progress(operations=len(operations))
        with striking(place, blows, done, progress) as struck:
            played = _play_all(direction, operations, done)
        progress("every worker has ended")
        connections.close_all()  # The database at their other end may have been killed since.
        board = (
            _settled_board(workspace_id, place, forecast.settle_seconds)
            if forecast.claims
            else rows([], _unmarked(read_truth(place.truth_folder)))
        )
        progress("nothing more is to come by itself")
        met = json.loads(surroundings.ask_provider(place.provider_url, "/_sandbox/requests"))
        unsound = _unsound() if forecast.claims else []
    figures = account(played, board, met["faults"])
    figures["havoc"] = {"wanted": len(blows), "struck": [blow.to_json() for blow in struck]}
    figures["unsound"] = unsound
    figures["waited_for_all"] = not blows or forecast.settle_seconds > tasks.LEASE_SECONDS
    return Account(
        figures=figures,
        violations=tuple(violations(figures)),
        seconds=time.monotonic() - started,
    )


def _around(
    forecast: Forecast,
) -> Callable[[Path], AbstractContextManager[Surroundings]]:
    if not forecast.claims:
        return surroundings.provider_alone
    return surroundings.breakable if forecast.havoc.any else surroundings.whole


def _unsound() -> list[str]:
    """What `manage.py verify_ledger --all` finds wrong with the record of the storm."""
    told = io.StringIO()
    with suppress(SystemExit):
        call_command("verify_ledger", "--all", "--json", stdout=told)
    return [
        f"{check['id']} {difference['of']}: {difference['says']}"
        for check in json.loads(told.getvalue())["checks"]
        for difference in check["differences"]
    ]


def _prepare(place: Surroundings, folder: Path) -> tuple[int, str]:
    seeded = seed(folder, place.provider_url, STORM_BOUNDS, slug="storm", roles=[Role.ADMIN])
    return seeded.workspace.pk, seeded.token_path.read_text(encoding="utf-8").strip()


def _checkout(place: Surroundings, operations: Iterable[Operation]) -> dict[str, str]:
    """The payments that the refunds will refund; the shop's own till took them."""
    return {
        operation.order: checkout(place.provider_url, operation)
        for operation in operations
        if operation.tool is ToolName.REFUND_PAYMENT
    }


def _play_all(
    direction: Direction, operations: Iterable[Operation], done: Progress
) -> list[Played]:
    """All conversations, many at once; the operations of one follow each other."""
    conversations = [
        list(part) for _, part in groupby(operations, key=lambda operation: operation.conversation)
    ]
    with ThreadPoolExecutor(AT_ONCE_MAX) as pool:
        parts = pool.map(partial(_play_conversation, direction, done), conversations)
        return [played for part in parts for played in part]


def _play_conversation(
    direction: Direction, done: Progress, operations: list[Operation]
) -> list[Played]:
    played = []
    for operation in operations:
        played.append(play(direction, operation))
        done.one_more()
    return played


def _settled_board(workspace_id: int, place: Surroundings, settle_seconds: float) -> list[Row]:
    """The board once nothing more is to be expected by itself, or the time for it is over."""
    until = time.monotonic() + settle_seconds
    while True:
        board = read_board(workspace_id, place.truth_folder)
        waiting = [
            claim
            for row in board
            for claim in row.claims
            if claim.state in {ClaimState.IN_FLIGHT, ClaimState.UNKNOWN} and not claim.needs_person
        ]
        if not waiting or time.monotonic() >= until:
            return board
        time.sleep(SETTLE_POLL_SECONDS)


def _unmarked(truth: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without a ledger there are no claims, so no effect can be blamed for having none."""
    return [{**effect, "marker": None} for effect in truth]


def account(played: list[Played], board: list[Row], met: Mapping[str, int]) -> dict[str, Any]:
    """The figures of a storm."""
    claims = [claim for row in board for claim in row.claims]
    keyed = [claim for claim in claims if claim.effect_class is EffectClass.KEYED_WRITE]
    per_operation = Counter(len(row.effects) for row in board)
    mishaps = Counter(str(each.operation.trouble.mishap) for each in played)
    return {
        **summary(board),
        "operations_asked": len(played),
        "asked_again": sum(each.asked_again for each in played),
        "effects_per_operation": {str(n): per_operation[n] for n in sorted(per_operation)},
        "too_many_effects": [row.to_json() for row in board if row.too_many],
        "effects_without_claim": _sentences(board, "happened without a claim") if claims else [],
        "false_words": _sentences(board, "the provider has"),
        "claims": dict(Counter(str(claim.state) for claim in claims)),
        "keyed_claims": len(keyed),
        "keyed_unknown": sum(claim.state is ClaimState.UNKNOWN for claim in keyed),
        "with_claims": bool(claims),
        "faults": {name: count for name, count in met.items() if name != Fault.NONE},
        "mishaps": {name: count for name, count in mishaps.items() if name != "none"},
        "killed": sum(each.deliveries[0].was_killed for each in played),
        "told": dict(Counter(_last_word(each) for each in played)),
    }


def _sentences(board: Iterable[Row], ending: str) -> list[str]:
    return [said for row in board for said in row.disagreements if ending in said]


def _last_word(played: Played) -> str:
    last = played.deliveries[-1].last
    return last.status if last else "killed"


def violations(figures: Mapping[str, Any]) -> Iterable[str]:
    """Everything that must not be, and everything that must have been for the rest to count."""
    yield from _too_little_trouble(figures)
    for row in figures["too_many_effects"]:
        yield f"{row['order']} happened {len(row['effects'])} times: {', '.join(row['effects'])}"
    havoc = figures["havoc"]
    if len(havoc["struck"]) < havoc["wanted"]:
        yield f"only {len(havoc['struck'])} of {havoc['wanted']} services were killed"
    if figures["with_claims"]:
        yield from figures["unsound"]
        yield from figures["effects_without_claim"]
        yield from figures["false_words"]
        too_many = figures["keyed_unknown"] > UNKNOWN_SHARE_MAX * figures["keyed_claims"]
        if too_many and figures["waited_for_all"]:
            yield (
                f"{figures['keyed_unknown']} of {figures['keyed_claims']} keyed claims are unknown"
            )


def _too_little_trouble(figures: Mapping[str, Any]) -> Iterable[str]:
    for name, count in figures["faults"].items():
        if count < EACH_FAULT_MIN:
            yield f"the fault {name} was met {count} times, not {EACH_FAULT_MIN}"
    for name, count in figures["mishaps"].items():
        if count < EACH_MISHAP_MIN:
            yield f"{name} befell {count} workers, not {EACH_MISHAP_MIN}"
    meant = sum(count for name, count in figures["mishaps"].items() if name.startswith("killed"))
    if figures["killed"] != meant:
        yield f"{figures['killed']} workers were killed, {meant} should have been"
    if figures["asked_again"] < ASKED_AGAIN_SHARE * figures["operations_asked"]:
        yield f"only {figures['asked_again']} of {figures['operations_asked']} were asked again"
