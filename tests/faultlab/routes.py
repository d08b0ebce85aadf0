"""The routes by which one turn is issued twice: each is run without a memory, then with the record.

The first response is cut after its call was dispatched, so that nothing of it is in the
conversation, and the model asks for the same again under new ids.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, override

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from reconcile.sandbox.faults import Fault
from tests.faultlab import agent
from tests.faultlab.agent import Job
from tests.faultlab.lab import Scene
from tests.faultlab.rows import Section
from tests.faultlab.turns import StreamCut, deliver
from tests.support.model_server import End, Reply, model_server, wants
from tests.support.stack import ROOT

ROUTES: Final = Section("The routes that replay a turn", "mission A10")
PAYS: Final = wants(("transfer", agent.ARGUMENTS))
CUT: Final = PAYS.but(cut_after=b"event: message_delta", end=End.UNFINISHED)
CUT_CLEANLY: Final = CUT.but(end=End.CLEAN)

Route = Callable[[Job, str], list[str]]
"""From a job and a model to what the calls of the last response came to."""


def both(scene: Scene, route: Route, *script: Reply) -> dict[str, Any]:
    with model_server(*script) as model:
        route(scene.other(guarded=False), model.url)
    unguarded = scene.effects
    with model_server(*script) as model:
        told = route(scene.job, model.url)
    return {"unguarded": unguarded, "effects": scene.effects - unguarded, "told": told}


def retried(job: Job, model_url: str) -> list[str]:
    with suppress(StreamCut):
        return deliver(job, model_url)
    return deliver(job, model_url)


@ROUTES.row("a retry policy around the stream", unguarded=2, effects=1, told=["completed"])
def a_retry_policy(scene: Scene) -> dict[str, Any]:
    return both(scene, retried, CUT, PAYS)


@ROUTES.row("a client that reconnects and sends again", unguarded=2, effects=1, told=["completed"])
def a_client_that_reconnects(scene: Scene) -> dict[str, Any]:
    """It waits for nothing and shares nothing with its first try, which ended cleanly."""

    def reconnecting(job: Job, model_url: str) -> list[str]:
        told: list[str] = []
        for _ in range(2):
            line = threading.Thread(target=lambda: told.extend(_told(job, model_url)))
            line.start()
            line.join()
        return told

    return both(scene, reconnecting, CUT_CLEANLY, PAYS)


@ROUTES.row("a queue that delivers again", unguarded=2, effects=1, told=["completed"])
def a_queue(scene: Scene) -> dict[str, Any]:
    """To a process of its own each time."""

    def redelivering(job: Job, model_url: str) -> list[str]:
        argv = [sys.executable, "-m", "tests.faultlab.turns", agent.to_text(job), model_url]
        with suppress(StreamCut):
            deliver(job, model_url)
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
        return [word.strip("'") for word in done.stdout.strip("[]\n").split(", ")]

    return both(scene, redelivering, CUT, PAYS)


@ROUTES.row(
    "a balancer that repeats a POST", unguarded=2, effects=1, told=["completed", "in_flight"]
)
def a_balancer(scene: Scene) -> dict[str, Any]:
    """The agent works on the first when the second comes."""

    def repeated(job: Job, model_url: str) -> list[str]:
        slow = scene.other(guarded=job.guarded, fault=f"{Fault.DELAY}=0.6", request_seconds=5)
        with _Agent(lambda: _told(slow, model_url)) as service:
            with closing(requests.Session()) as balancer:
                repeats = Retry(total=1, read=1, allowed_methods=None, backoff_factor=0)
                balancer.mount("http://", HTTPAdapter(max_retries=repeats))
                with suppress(requests.RequestException):
                    balancer.post(service.url, timeout=0.4)
            assert service.await_turns(2)
            return sorted(service.told)

    return both(scene, repeated, PAYS, PAYS)


@ROUTES.row("a user who sends it again", unguarded=2, effects=1, told=["completed"])
def a_user(scene: Scene) -> dict[str, Any]:
    """The turn failed before their eyes, so that nothing of it is in the conversation."""

    def sent_twice(job: Job, model_url: str) -> list[str]:
        with suppress(StreamCut):
            deliver(job, model_url)
        return deliver(job, model_url)

    return both(scene, sent_twice, CUT_CLEANLY, PAYS)


def _told(job: Job, model_url: str) -> list[str]:
    try:
        return deliver(job, model_url)
    except StreamCut:
        return []


class _Agent(ThreadingHTTPServer):
    """An agent behind HTTP: a POST is one turn."""

    def __init__(self, turn: Callable[[], list[str]]) -> None:
        super().__init__(("127.0.0.1", 0), _Turn)
        self.turn = turn
        self.told: list[str] = []
        self.ended = threading.Semaphore(0)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def await_turns(self, turns: int) -> bool:
        return all(self.ended.acquire(timeout=10) for _ in range(turns))

    @override
    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Turn(BaseHTTPRequestHandler):
    server: _Agent

    def do_POST(self) -> None:
        try:
            self.server.told += self.server.turn()
        finally:
            self.server.ended.release()
        with suppress(OSError):
            self.send_response(204)
            self.end_headers()

    @override
    def log_message(self, format: str, *args: object) -> None: ...
