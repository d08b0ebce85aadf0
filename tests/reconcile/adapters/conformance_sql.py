"""The stages of the SQL adapter: the tests' own PostgreSQL, behind a proxy that makes trouble."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from reconcile.adapters.base import Place
from reconcile.adapters.door import Limits, Way, origin_of
from reconcile.lookups import LOOKUPS
from tests import settings as test_settings
from tests.reconcile.adapters.conformance import Prop, Shown, Trouble
from tests.reconcile.adapters.conformance_http import READING, STATUS

ROLE, PASSWORD = "stage_reader", "stage_halden_password"
COLUMNS = "id, reference, status, amount, currency, livemode"
_PREPARE = f"""
DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}';
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
CREATE TABLE IF NOT EXISTS public.stage_payments (id text, reference text, status text,
    amount bigint, currency text, livemode boolean);
GRANT ALL ON public.stage_payments TO {ROLE};
TRUNCATE public.stage_payments;
CREATE OR REPLACE FUNCTION public.stage_is_well() RETURNS boolean LANGUAGE sql AS 'SELECT true';
"""
_BREAK = """
CREATE OR REPLACE FUNCTION public.stage_is_well() RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'io_error', MESSAGE = 'the disk is gone'; END $$;
"""


@dataclass(slots=True)
class Proxy:
    """Passes on to PostgreSQL what comes, and counts who comes."""

    to_port: int
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    came: int = 0
    trouble: Trouble | None = None
    open: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):  # The listener is closed at the end.
            while True:
                caller, _ = self.listener.accept()
                self.came += 1
                self._welcome(caller)

    def _welcome(self, caller: socket.socket) -> None:
        self.open.append(caller)
        if self.trouble is Trouble.GARBAGE:
            caller.recv(1024)
            caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            caller.close()
            return
        there = socket.create_connection(("127.0.0.1", self.to_port))
        self.open.append(there)
        cut = self.trouble is Trouble.CUT
        for source, target, most in ((caller, there, None), (there, caller, 400 if cut else None)):
            threading.Thread(target=_pass_on, args=(source, target, most), daemon=True).start()

    def stop(self) -> None:
        for each in (self.listener, *self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _pass_on(source: socket.socket, target: socket.socket, most: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
            passed += len(data)
            if most is not None and passed > most:
                break
        for end in (source, target):
            end.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class SqlRunning:
    proxy: Proxy
    owner: psycopg.Connection
    shown: tuple[Shown, ...] = ()
    changed: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        url = f"postgresql://127.0.0.1:{self.proxy.port}/counterfoil"
        way = Way(origin=origin_of(url), private=True, limits=Limits(seconds=5.0))
        place = Place(way=way, base_url=url, mode="test", account=ROLE, secret=PASSWORD)
        return replace(place, **self.changed) if self.changed else place

    @property
    def reads(self) -> int:
        return self.proxy.came

    @property
    def writes(self) -> int:
        kept = self.owner.execute("SELECT id FROM public.stage_payments").fetchall()
        return len({row[0] for row in kept} ^ {one.id for one in self.shown})

    def show(self, *shown: Shown) -> None:
        self.shown = shown
        self.owner.execute("TRUNCATE public.stage_payments")
        with self.owner.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO public.stage_payments VALUES (%s, %s, %s, %s, 'eur', %s)",
                [(s.id, s.marker, STATUS[s.said], s.amount, s.live) for s in shown],
            )

    def trouble(self, trouble: Trouble, *, from_read: int = 1) -> None:
        assert from_read == 1, "a SELECT has no pages"
        match trouble:
            case Trouble.REFUSED:
                self.changed = {"secret": f"not {PASSWORD}"}
            case Trouble.FORBIDDEN:
                self.owner.execute(f"REVOKE ALL ON public.stage_payments FROM {ROLE}")
            case Trouble.BROKEN:
                self.owner.execute(_BREAK)
            case Trouble.OTHER_ACCOUNT:
                port = self.proxy.port
                dsn = f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:{port}/counterfoil"
                self.changed = {"secret": dsn, "account": "somebody_else"}
            case _:
                self.proxy.trouble = trouble


class SqlStage:
    """One SELECT, at a role that could write."""

    lookup = LOOKUPS["sql"]
    secrets = (PASSWORD,)
    spared = {
        Trouble.TOO_OFTEN: "a database does not ask for fewer questions",
        Trouble.MOVED: "a database sends nobody elsewhere",
        Trouble.SILENT: "the shortest time in which libpq gives up is two seconds: see test_sql",
    }

    def __init__(self, name: str, where: str, cannot: dict[Prop, str] | None = None) -> None:
        self.name = f"sql {name}"
        self.cannot = {Prop.PAGES: "a SELECT has no pages", **(cannot or {})}
        self.config: dict[str, Any] = {
            **READING,
            "query": f"SELECT {COLUMNS} FROM public.stage_payments WHERE "
            f"public.stage_is_well() AND {where} ORDER BY id",
            "reference_field": "reference",
            "absent_when": {"empty": True},
        }

    @contextmanager
    def open(self) -> Iterator[SqlRunning]:
        with psycopg.connect(test_settings.TEST_POSTGRES.url, autocommit=True) as owner:
            owner.execute(_PREPARE)
            proxy = Proxy(test_settings.TEST_POSTGRES.port)
            threading.Thread(target=proxy.serve, daemon=True).start()
            running = SqlRunning(proxy, owner)
            try:
                yield running
            finally:
                proxy.stop()


STAGES = (
    SqlStage(
        "for one",
        "reference = %(reference)s",
        {Prop.OTHERS: "what is filtered by reference shows nobody else's"},
    ),
    SqlStage(
        "for many",
        "reference = ANY (%(references)s)",
        {Prop.OTHERS: "what is filtered by references shows nobody else's"},
    ),
    SqlStage("list", "%(since)s::timestamptz < now()"),
)
