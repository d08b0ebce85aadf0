"""The fingerprints: what each one rules out, and by which names it is told to people.

A clue speaks only of what is known: no clue follows from a member that is missing, apart from the
one exception that is said where it is made. Strong clues rule out for certain. Weak ones (the gap
among them) count only as far as the strong ones leave a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from effects.core.diagnosis.bands import Constants
from effects.core.diagnosis.evidence import GatewayRecord, Pair, Source
from effects.core.diagnosis.layers import INTENT, LAYERS, RERUN, WIRE, Layer, all_but

GATEWAY_SECONDS_MAX: Final = 5.0
"""How long after a gateway sent a request on the provider may date it: the way, and two clocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """`names` are the fingerprints that together rule out `excludes`."""

    names: tuple[str, ...]
    excludes: frozenset[Layer]
    strong: bool = True


def clues(pair: Pair, constants: Constants) -> list[Clue]:
    """Everything that is known about a pair, the most telling first."""
    found = [clue for read in _READERS for clue in read(pair)]
    return [*found, *_gap(pair, constants)]


def _strong(excludes: frozenset[Layer], *names: str) -> Clue:
    return Clue(names=names, excludes=excludes)


def _weak(excludes: frozenset[Layer], *names: str) -> Clue:
    return Clue(names=names, excludes=excludes, strong=False)


def _both(pair: Pair, member: str) -> tuple[Any, Any] | None:
    """The member of both, or None where one of them does not say it."""
    said = getattr(pair.first, member), getattr(pair.second, member)
    return None if None in said else said


# How the job came


def _delivery(pair: Pair) -> Iterator[Clue]:
    """A count above one that grew is a redelivery, whatever the gap. One that did not grow speaks
    of one delivery (a count above one alone may be that of a worker that never began)."""
    if pair.second.source is not Source.APP:
        return
    before, count = pair.first.delivery_count, pair.second.delivery_count
    if count is None:
        return
    if before is not None and count == before:
        yield _strong(frozenset({Layer.QUEUE_REDELIVERY}), "same_delivery_count")
    elif count > 1 and (before is None or count > before):
        yield _strong(all_but(Layer.QUEUE_REDELIVERY), "delivery_count")
    elif count == 1:
        yield _strong(frozenset({Layer.QUEUE_REDELIVERY}), "first_delivery")


def _worker(pair: Pair) -> Iterator[Clue]:
    """A library and a gateway stay where they are, and a step is repeated where it runs. The same
    worker says nothing: where there is one, everything comes to it."""
    workers = _both(pair, "worker")
    if workers is None or workers[0] == workers[1]:
        return
    yield _strong(WIRE, "worker_changed")
    yield _weak(frozenset({Layer.STEP_RETRY}), "worker_changed")
    checkpoints = _both(pair, "checkpoint")
    if checkpoints and checkpoints[0] == checkpoints[1] and pair.open_before:
        # Taken up elsewhere, from where it was, while the first was running or lost.
        moved = frozenset({Layer.STEP_RETRY})
        yield _strong(moved, "worker_changed", "same_checkpoint")


def _checkpoint(pair: Pair) -> Iterator[Clue]:
    if pair.second.rerun_after_error:
        yield _strong(WIRE | INTENT, "error_and_success_of_one_task")
    if pair.second.resumed:
        yield _strong(all_but(Layer.STEP_RETRY), "resumed_after_interrupt")
    checkpoints = _both(pair, "checkpoint")
    if checkpoints and checkpoints[0] != checkpoints[1]:
        # Whoever runs again begins where the first began.
        yield _weak(RERUN, "other_checkpoint")


def _retries_of_the_job(pair: Pair) -> Iterator[Clue]:
    counts = _both(pair, "retry_count")
    if counts and pair.by_the_application and counts[1] > counts[0]:
        yield _strong(WIRE | INTENT, "retry_count_of_the_job")
        yield _weak(frozenset({Layer.QUEUE_REDELIVERY}), "retry_count_of_the_job")


# What the model did


def _call(pair: Pair) -> Iterator[Clue]:
    """The provider of the model gives every call an id of its own. An id that comes again in
    another turn is no identity (some models give the tool's name)."""
    ids, turns = _both(pair, "call_id"), _both(pair, "turn_index")
    if ids and ids[0] == ids[1] and not (turns and turns[0] != turns[1]):
        yield _strong(INTENT, "same_tool_call_id")
    elif ids and ids[0] != ids[1]:
        yield _strong(WIRE, "other_tool_call_id")


def _turn(pair: Pair) -> Iterator[Clue]:
    """A turn that is asked for again has the number that it had; every further one is a decision
    of the model's with another history."""
    conversations, turns = _both(pair, "conversation"), _both(pair, "turn_index")
    if not conversations or conversations[0] != conversations[1] or not turns:
        return
    if turns[0] != turns[1]:
        yield _strong(WIRE | RERUN, "other_turn")
        return
    places, responses = _both(pair, "position"), _both(pair, "response_id")
    if places and places[0] == places[1]:
        yield _strong(INTENT, "same_turn")
    elif places and responses and responses[0] == responses[1]:
        yield _strong(WIRE | RERUN, "two_places_in_one_response")


def _agent(pair: Pair) -> Iterator[Clue]:
    agents = _both(pair, "agent")
    if agents and agents[0] != agents[1]:
        yield _strong(WIRE | RERUN, "agent_changed")


def _intent(pair: Pair) -> Iterator[Clue]:
    """Whether a second call was meant. The exception: an outcome that was open makes a repeat of
    the model's likely, unless it is known that the user spoke in between."""
    if pair.second.meant:
        yield _strong(all_but(Layer.NONE), "named_as_a_repeat")
    if pair.settled_before and pair.second.user_spoke:
        model = frozenset({Layer.MODEL_REEMISSION})
        yield _strong(model, "prior_outcome_known", "user_message_between")
    if pair.open_before and not pair.second.user_spoke:
        yield _weak(frozenset({Layer.NONE}), "prior_outcome_open")


# What was on the wire


def _gateway(pair: Pair) -> Iterator[Clue]:
    """The gateway's own log: one request that it sent on twice, or two that came to it."""
    if not pair.on_the_wire:
        return
    one = [record for record in pair.gateway if _carried(record, pair)]
    if one:
        yield _strong(all_but(Layer.GATEWAY_RETRY), "gateway_log")
        return
    first, second = (
        {place for place, record in enumerate(pair.gateway) if _sent_on(record, one.at)}
        for one in (pair.first, pair.second)
    )
    if any(one != two for one in first for two in second):
        yield _strong(frozenset({Layer.GATEWAY_RETRY}), "gateway_log")


def _carried(record: GatewayRecord, pair: Pair) -> bool:
    """Whether both requests are tries of this one, each by a server of its own."""
    tries = sorted(upstream.at for upstream in record.upstreams)
    return any(
        _is_on_time((pair.first.at - one).total_seconds())
        and _is_on_time((pair.second.at - two).total_seconds())
        for number, one in enumerate(tries)
        for two in tries[number + 1 :]
    )


def _sent_on(record: GatewayRecord, at: datetime) -> bool:
    return any(_is_on_time((at - one.at).total_seconds()) for one in record.upstreams)


def _is_on_time(late_seconds: float) -> bool:
    return -GATEWAY_SECONDS_MAX / 5 <= late_seconds <= GATEWAY_SECONDS_MAX


def _requests_sent(pair: Pair) -> Iterator[Clue]:
    if not pair.on_the_wire or pair.requests_sent is None or not _same_attempt(pair):
        return
    if pair.requests_sent == 1:
        yield _strong(all_but(Layer.GATEWAY_RETRY), "http_requests_sent")
    elif pair.requests is not None and pair.requests_sent >= pair.requests:
        yield _strong(frozenset({Layer.GATEWAY_RETRY}), "http_requests_sent")


def _retry_header(pair: Pair) -> Iterator[Clue]:
    """The library's own count in its requests. A gateway repeats the count as well."""
    counts = _both(pair, "retry_count")
    if not counts or not pair.on_the_wire:
        return
    if counts[1] > counts[0]:
        yield _strong(all_but(Layer.SDK_RETRY), "retry_count_header")
    else:
        yield _strong(frozenset({Layer.SDK_RETRY}), "retry_count_header")


def _client_request(pair: Pair) -> Iterator[Clue]:
    """One call of a library has one id for all its tries. A gateway passes it on, too; where one
    repeats requests its log or the number of requests sent shows that, and outweighs this."""
    ids = _both(pair, "client_request_id")
    if not ids or not pair.on_the_wire:
        return
    if ids[0] == ids[1]:
        yield _strong(RERUN | INTENT, "same_client_request_id")
        yield _weak(frozenset({Layer.GATEWAY_RETRY}), "same_client_request_id")
    else:
        yield _strong(WIRE, "other_client_request_id")


def _bytes(pair: Pair) -> Iterator[Clue]:
    """A library and a gateway repeat what was built once, headers included. Our keys differ for
    two calls that the model made."""
    bodies, keys = _both(pair, "body"), _both(pair, "key")
    if bodies and bodies[0] != bodies[1]:
        yield _strong(WIRE, "other_body")
    if keys:
        same = keys[0] == keys[1]
        yield _strong(INTENT, "same_key") if same else _strong(WIRE, "other_key")


# Who did it


def _attempts(pair: Pair) -> Iterator[Clue]:
    if pair.by_the_application:
        yield _strong(WIRE, "asked_by_the_application")
    elif None not in pair.attempts:
        if _same_attempt(pair):
            yield _strong(RERUN | INTENT, "same_attempt")
        else:
            yield _strong(WIRE, "another_attempt")


def _same_attempt(pair: Pair) -> bool:
    first, second = pair.attempts
    return first is not None and first == second


def _gap(pair: Pair, constants: Constants) -> Iterator[Clue]:
    unfit = frozenset(layer for layer in LAYERS if not constants.fits(layer, pair.gap_seconds))
    if unfit:
        yield _weak(unfit, "gap")


_READERS: Final[tuple[Callable[[Pair], Iterator[Clue]], ...]] = (
    *(_delivery, _worker, _checkpoint, _retries_of_the_job),
    *(_call, _turn, _agent, _intent),
    *(_gateway, _requests_sent, _retry_header, _client_request, _bytes, _attempts),
)
