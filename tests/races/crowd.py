"""Many processes that ask at the same instant.

    python -m tests.races.crowd < rounds.json

Standard input is a list of rounds; a round is a list of claim requests, as keyword arguments with a
`workspace`. For each round one process a request is forked, all wait at one barrier, and all ask.
Printed: for each round the list of codes, fences and claims.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402 - the models need the set-up before

from effects.core.messages import ClaimRequest  # noqa: E402
from ledger import claiming  # noqa: E402

Asked = dict[str, Any]


def asker(asked: Asked, barrier: Barrier, answers: Connection) -> None:
    workspace = asked.pop("workspace")
    request = ClaimRequest.model_validate_json(json.dumps(asked))
    connection.ensure_connection()
    barrier.wait(timeout=60)
    try:
        answer = claiming.claim(workspace, request)
        answers.send([answer.code, answer.fence, str(answer.claim_id)])
    except Exception as error:  # noqa: BLE001 - whatever it is, the test must read it
        answers.send([f"{type(error).__name__}: {error}", 0, ""])
    finally:
        connection.close()


def one_round(requests: list[Asked]) -> list[Any]:
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(len(requests))
    crowd = []
    for asked in requests:
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=asker, args=(asked, barrier, sender))
        process.start()
        crowd.append((process, receiver))
    said = [receiver.recv() for _, receiver in crowd]
    for process, _ in crowd:
        process.join()
    return said


if __name__ == "__main__":
    print(json.dumps([one_round(requests) for requests in json.load(sys.stdin)]))
