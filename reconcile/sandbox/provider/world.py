"""Everything that the provider is: clock, store, keys, fault plan, and what was asked of it."""

from collections import Counter, deque
from pathlib import Path
from typing import Final

from reconcile.sandbox.faults import Asked, ChosenFault, Fault, Plan, choose
from reconcile.sandbox.provider.clock import SandboxClock, iso
from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.flights import Flights
from reconcile.sandbox.provider.keys import KeyLayer
from reconcile.sandbox.provider.messages import Json, Request
from reconcile.sandbox.provider.reads import ReadAllocation
from reconcile.sandbox.provider.recipes import SEARCH_LAG_SECONDS, Recipe
from reconcile.sandbox.provider.store import Batch, Store

LATE_TABLE: Final = "late_commits"
CLOCK_TABLE: Final = "clock"
REQUESTS_KEPT_MAX: Final = 20_000


class World:
    """One provider's whole state. ``folder`` holds its journal and its truth files."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self.store = Store(folder, fsync=fsync)
        clock = self.store.table(CLOCK_TABLE).get("clock", {"advanced_seconds": 0.0})
        self.clock = SandboxClock(clock["advanced_seconds"])
        self.store.clock = self.clock.now
        self.keys = KeyLayer(self.store)
        self.flights = Flights()
        self.reads = ReadAllocation(self.store)
        self.plan = Plan()
        self.search_lag_seconds = SEARCH_LAG_SECONDS
        self.webhook_recipe = Recipe()
        self.webhook_counts: Counter[str] = Counter()
        self._requests: deque[Json] = deque(maxlen=REQUESTS_KEPT_MAX)
        self._sends: Counter[tuple[str, str]] = Counter()
        self._arrived: Counter[str] = Counter()
        self._faults: Counter[Fault] = Counter()

    def advance_clock(self, seconds: float) -> None:
        """Move the clock, and remember it: a provider that restarts does not get younger."""
        self.clock.advance(seconds)
        with self.store.batch() as batch:
            batch.put(CLOCK_TABLE, "clock", {"advanced_seconds": self.clock.advanced_seconds})

    def choose_fault(self, asked: Asked) -> ChosenFault:
        """The fault for this request. Counts it as one more send of the same thing.

        Raises PlanRefused if the request's fault header cannot be read.
        """
        with self.store.lock:
            sent = (asked.operation, asked.identity)
            numbered = Asked(
                operation=asked.operation,
                is_write=asked.is_write,
                idempotency_key=asked.idempotency_key,
                reference=asked.reference,
                marker=asked.marker,
                fault_header=asked.fault_header,
                send_number=self._sends[sent],
            )
            chosen = choose(self.plan, numbered)
            if asked.is_write:
                self._sends[sent] += 1
                self._arrived[asked.marker or ""] += 1
            self._faults[chosen.kind] += 1
            return chosen

    def arrived(self, marker: str) -> int:
        """How many writes with this marker have arrived, those that are still worked on too."""
        with self.store.lock:
            return self._arrived[marker]

    def note(self, asked: Asked, fault: Fault, *, status: int | None, outcome: str) -> None:
        """Keep what was asked and what the caller saw, for people and tests."""
        with self.store.lock:
            self._requests.append(
                {
                    "at": iso(self.clock.now()),
                    "operation": asked.operation,
                    "idempotency_key": asked.idempotency_key,
                    "reference": asked.reference,
                    "marker": asked.marker,
                    "api_version": asked.api_version,
                    "fault": fault,
                    "status": status,
                    "outcome": outcome,
                }
            )

    def requests(self) -> Json:
        """The last requests and how often each fault was met since the provider started."""
        with self.store.lock:
            met = {kind.value: self._faults[kind] for kind in Fault}
            return {"faults": met, "requests": list(self._requests)}

    def commit_later(self, batch: Batch, *, seconds: float, request: Request) -> None:
        """Remember a request that was answered with a 500 and will be applied all the same."""
        due_at = self.clock.now() + seconds
        batch.put(LATE_TABLE, new_id("late"), {"due_at": due_at, "request": request.to_json()})

    def due_late_commits(self) -> list[tuple[str, Request]]:
        """The late commits whose time has come. Call it under the store's lock."""
        now = self.clock.now()
        late = self.store.table(LATE_TABLE)
        return [
            (key, Request.from_json(row["request"]))
            for key, row in late.items()
            if row["due_at"] <= now
        ]
