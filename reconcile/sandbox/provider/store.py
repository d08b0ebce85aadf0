"""What the provider remembers: named tables in memory, and a journal that survives the process.

One batch is one line of the journal, so a provider that is killed between two writes of one
request remembers all of them or none. Effects are part of the batch; the truth files are
written from it, and completed from the journal if the process died in between.
"""

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from reconcile.sandbox.provider.messages import Json

JOURNAL_NAME: Final = "journal.jsonl"
SEARCHABLE: Final = ("/payment_intents", "/charges", "/invoices", "/subscriptions")
"""Tables whose changes are also kept with their time, for search, which shows them late."""


@dataclass(slots=True)
class Batch:
    """What one request changes; it happens whole, when the block that made it ends well."""

    puts: list[tuple[str, str, Json | None]] = field(default_factory=list)
    effects: list[tuple[str, Json]] = field(default_factory=list)

    def put(self, table: str, key: str, value: Json) -> None:
        """Write one row, new or changed. A changed row keeps its place in the order."""
        self.puts.append((table, key, value))

    def remove(self, table: str, key: str) -> None:
        """Forget one row."""
        self.puts.append((table, key, None))

    def effect(self, file: str, effect: Json) -> None:
        """Record that the world was changed, in the truth file of that name."""
        self.effects.append((file, effect))


class StoreClosedError(OSError):
    """The provider has stopped; whatever was still being worked on does not happen any more."""


class Store:
    """Tables of JSON objects in the order of their creation, guarded by one lock."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self.lock = threading.RLock()
        self._folder = folder
        self._fsync = fsync
        self._tables: dict[str, dict[str, Json]] = {}
        self._effects: dict[str, list[Json]] = {}
        self._effects_written: dict[str, int] = {}
        self._open_files: dict[Path, TextIO] = {}
        self._closed = False
        self.clock: Callable[[], float] = lambda: 0.0
        self.versions: dict[str, deque[tuple[float, str, Json]]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._load()

    def close(self) -> None:
        """Close the files. A batch that comes afterwards raises StoreClosedError."""
        with self.lock:
            self._closed = True
            for file in self._open_files.values():
                file.close()
            self._open_files.clear()

    def table(self, name: str) -> dict[str, Json]:
        """One table, oldest row first. Read it under the lock, change it through a batch."""
        return self._tables.setdefault(name, {})

    def effects(self, file: str) -> list[Json]:
        """All effects of one truth file, in the order in which they happened."""
        with self.lock:
            return list(self._effects.get(file, []))

    def truth_path(self, file: str) -> Path:
        """Where the truth file of this name lies."""
        return self._folder / f"{file}.jsonl"

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Hold the lock, collect changes, apply them together. An exception applies nothing."""
        with self.lock:
            batch = Batch()
            yield batch
            if self._closed:
                raise StoreClosedError("the provider has stopped")
            if batch.puts or batch.effects:
                line = {"puts": batch.puts, "effects": batch.effects}
                self._append(self._folder / JOURNAL_NAME, line)
                self._apply(batch)
                for file in {file for file, _ in batch.effects}:
                    self._complete_truth_file(file)

    def _apply(self, batch: Batch) -> None:
        for table, key, value in batch.puts:
            rows = self.table(table)
            if value is not None and table.endswith(SEARCHABLE):
                self.versions.setdefault(table, deque()).append((self.clock(), key, value))
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        for file, effect in batch.effects:
            known = self._effects.setdefault(file, [])
            known.append({"seq": len(known) + 1, **effect})

    def _load(self) -> None:
        for line in _whole_lines(self._folder / JOURNAL_NAME):
            raw = json.loads(line)
            puts = [(table, key, value) for table, key, value in raw["puts"]]
            effects = [(file, effect) for file, effect in raw["effects"]]
            self._apply(Batch(puts=puts, effects=effects))
        for file in self._effects:
            self._effects_written[file] = len(_whole_lines(self.truth_path(file)))
            self._complete_truth_file(file)

    def _complete_truth_file(self, file: str) -> None:
        """Append the effects that the truth file does not have yet; it is never rewritten."""
        written = self._effects_written.get(file, 0)
        for effect in self._effects[file][written:]:
            self._append(self.truth_path(file), effect)
        self._effects_written[file] = len(self._effects[file])

    def _append(self, path: Path, line: object) -> None:
        file = self._open_files.get(path)
        if file is None:
            file = self._open_files[path] = path.open("a", encoding="utf-8")
        file.write(json.dumps(line, separators=(",", ":")) + "\n")
        file.flush()
        if self._fsync:
            os.fsync(file.fileno())


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of a file; a last line that was torn by a kill is cut off, it never happened."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content.rpartition(b"\n")[0]
    if content and not content.endswith(b"\n"):
        os.truncate(path, len(whole) + 1 if whole else 0)
    return whole.splitlines()
