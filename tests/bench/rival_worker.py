"""`rival_worker.py NAME URL`: one rival, measured when a line on standard input says so.

Runs in the rival's own environment. Each thread has a store of its own, because a store of either
is one connection behind a lock.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.bench.clients import rate

ARGUMENTS = {"amount": 14900, "currency": "eur", "customer": "cus_9X2", "order": "8841"}
RESULT = {"id": "pi_3QweRtY7Lm", "status": "succeeded"}

Work = Callable[[str], None]


def agent_once(url: str) -> tuple[Work, Callable[[], None]]:
    from once import Once  # noqa: PLC0415 - the one that was asked for
    from once.postgres import PostgresStore  # noqa: PLC0415 - as above

    store = PostgresStore(url)
    keeper: Any = Once(store=store)

    def pay(**_: Any) -> dict[str, str]:
        return RESULT

    def work(key: str) -> None:
        assert keeper.execute(pay, key=key, tool_name="pay", **ARGUMENTS) == RESULT

    return work, store.close


def exactly_once(url: str) -> tuple[Work, Callable[[], None]]:
    from exactly_once import Store, once  # noqa: PLC0415 - the one that was asked for

    store: Any = Store.postgres(url)

    def work(key: str) -> None:
        with once(store, key=key) as guard:
            if guard.fresh:
                guard.result = RESULT
        assert guard.result == RESULT

    return work, store.close


MAKERS = {"agent-once": agent_once, "exactly-once": exactly_once}


def work_of(work: Work, asked: dict[str, Any], key: str) -> None:
    work("known" if asked["what"] == "again" else f"{asked['tag']}-{key}")


class Own(threading.local):
    work: Work | None = None
    close: Callable[[], None] | None = None


def main(name: str, url: str) -> None:
    own = Own()

    def work(key: str) -> None:
        if own.work is None:
            own.work, own.close = MAKERS[name](url)
        own.work(key)

    def end_thread() -> None:
        if own.close is not None:
            own.close()

    work("known")  # Makes its table before the threads would all try to.
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        ops_s = rate(
            partial(work_of, work, asked),
            end_thread,
            clients=asked["clients"],
            seconds=asked["seconds"],
        )
        sys.stdout.write(json.dumps({"ops_s": ops_s}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
