"""How long the desk's pages take with very many calls, beside the same pages with ten thousand.

Server time of the whole request through Django's own client: middleware, statements, template. Each
figure is the median of many warm requests, over several calls and turns. Both sizes hold the same
number of undecided calls: the queue is about those, and its time may grow with them alone.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from django.test import Client

    from effects.models import Workspace
    from reconcile.sandbox.seeding import Seeded

CLAIMS_FEW: Final = 10_000
UNDECIDED: Final = 1000
ATTEMPTS: Final = 50_000
"""Of the one call that was tried very often, where there are very many calls."""
WARM: Final = 3
REQUESTS: Final = 15
PLACES: Final = 5
"""Different calls and turns that are looked at in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFigure:
    """One line of the results. `ratio_to_10k` is None where the smaller record has no such page."""

    name: str = "page"
    page: str
    claims: int
    ms: float
    ratio_to_10k: float | None
    queries: int

    def line(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def measure(claims: int, say: Callable[[str], object]) -> list[PageFigure]:
    """The figures of both sizes. Django must be set up, on a database that may be filled."""
    few = _seeded("few", CLAIMS_FEW, 0, say)
    many = _seeded("many", claims, ATTEMPTS, say)
    with_few = dict(_pages(*few[:2]))
    said = []
    for name, addresses in _pages(*many[:2]):
        sides = [(few[2], with_few[name])] if name in with_few else []
        ms, counts = _time([*sides, (many[2], addresses)])
        if sides:
            said.append(_figure(name, CLAIMS_FEW, ms[0], counts[0], ms[0]))
        said.append(_figure(name, claims, ms[-1], counts[-1], ms[0] if sides else None))
        say(table(said[-2:]).splitlines()[-1])
    return said


def _figure(page: str, claims: int, ms: float, queries: int, few: float | None) -> PageFigure:
    ratio = None if few is None else round(ms / few, 2)
    return PageFigure(
        page=page, claims=claims, ms=round(ms, 1), ratio_to_10k=ratio, queries=queries
    )


def _seeded(
    slug: str, claims: int, attempts: int, say: Callable[[str], object]
) -> tuple[Workspace, Seeded, Client]:
    from django.contrib.auth.models import User  # noqa: PLC0415 - Django is set up only now
    from django.test import Client  # noqa: PLC0415 - as above

    from effects.core.vocabulary import Role  # noqa: PLC0415 - as above
    from effects.models import Membership, Workspace  # noqa: PLC0415 - as above
    from ledger import queries  # noqa: PLC0415 - as above
    from reconcile.sandbox import seeding  # noqa: PLC0415 - as above

    workspace = Workspace.objects.create(
        name=slug.title(), slug=slug, mode=Workspace.Mode.TEST, created_at=queries.clock()
    )
    seed = seeding.Seed(
        claims=claims,
        undecided=min(UNDECIDED, claims // 4),
        attempts=attempts,
        large_bytes=5 * 1024 * 1024 if attempts else 0,
    )
    made = seeding.make(workspace, seed, say=lambda said: say(f"{slug}: {said}"))
    user = User.objects.create_user(username=f"ada-{slug}")
    Membership.objects.create(workspace=workspace, user=user, role=Role.ADMIN)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return workspace, made, client


def _pages(workspace: Workspace, made: Seeded) -> Iterator[tuple[str, Sequence[str]]]:
    """Each page that is measured, with the addresses that stand for it."""
    from ledger.models import Due  # noqa: PLC0415 - Django is set up only now

    undecided = Due.objects.filter(workspace=workspace, why="person").exclude(
        claim_id__in=[one for one in (made.often, made.large) if one]
    )
    calls = list(undecided.order_by("claim_id").values_list("claim_id", flat=True)[:PLACES])
    turns = [made.conversation(40 + 10 * number) for number in range(PLACES)]
    yield "queue", ["/queue/"]
    yield "queue_search", [f"/queue/?q={calls[0]}"]
    yield "queue_all", ["/queue/?view=all"]
    yield "call", [f"/calls/{claim_id}" for claim_id in calls]
    yield "turn", [f"/turns/?conversation={name}&turn=3" for name in turns]
    yield "conversation", [f"/turns/?conversation={made.long_conversation}"]
    yield "registry", ["/tools/"]
    if made.often:
        yield "call_50000_attempts", [f"/calls/{made.often}"]
        yield "turn_50000_attempts", [f"/turns/?conversation={made.tag}-often&turn=0"]
    if made.large:
        yield "call_5_mb", [f"/calls/{made.large}"]


def _time(sides: Sequence[tuple[Client, Sequence[str]]]) -> tuple[list[float], list[int]]:
    """For each side the median of warm requests in milliseconds, and how many statements one takes.

    The sides take turns, so that a machine that is busy for a moment is busy for both.
    """
    from django.db import connection  # noqa: PLC0415 - Django is set up only now
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415 - as above

    counts = []
    for client, addresses in sides:
        for number in range(max(WARM, len(addresses))):
            answer = client.get(addresses[number % len(addresses)])
            assert answer.status_code == 200, f"{addresses[0]} answered {answer.status_code}"
        with CaptureQueriesContext(connection) as captured:
            client.get(addresses[0])
        counts.append(len(captured))
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(REQUESTS):
        for mine, (client, addresses) in zip(taken, sides, strict=True):
            began = time.perf_counter()
            client.get(addresses[number % len(addresses)])
            mine.append(time.perf_counter() - began)
    return [statistics.median(mine) * 1000 for mine in taken], counts


def write(said: Sequence[PageFigure], path: Path) -> None:
    """Adds a line for each figure to the results."""
    with path.open("a", encoding="utf-8") as results:
        results.writelines(f"{json.dumps(one.line())}\n" for one in said)


def table(said: Sequence[PageFigure]) -> str:
    rows = [f"{'page':<20} {'claims':>10} {'ms':>8} {'to 10k':>7} {'queries':>8}"]
    for one in said:
        ratio = "" if one.ratio_to_10k is None else f"{one.ratio_to_10k:.2f}"
        rows.append(f"{one.page:<20} {one.claims:>10,} {one.ms:>8.1f} {ratio:>7} {one.queries:>8}")
    return "\n".join(rows)
