"""The diagnosis in sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from effects.core.diagnosis import Layer

LAYERS: Final[Mapping[Layer, str]] = {
    Layer.SDK_RETRY: "Retry by the library",
    Layer.GATEWAY_RETRY: "Repeat by a gateway",
    Layer.STEP_RETRY: "Step ran again",
    Layer.QUEUE_REDELIVERY: "Job handed out again",
    Layer.MODEL_REEMISSION: "Model asked again",
    Layer.NONE: "Two calls, both meant",
    Layer.UNDETERMINED: "Undetermined",
}
REMEDIES: Final[Mapping[Layer, str]] = {
    Layer.SDK_RETRY: "Send our key with every request, or turn the library's retries off.",
    Layer.GATEWAY_RETRY: "Let the gateway repeat no POST, and send our key with every request.",
    Layer.STEP_RETRY: "Claim before the step acts; its second run is then answered from here.",
    Layer.QUEUE_REDELIVERY: "Give the queue a longer time than the job takes, or heartbeats.",
    Layer.MODEL_REEMISSION: "Tell the model that an outcome is unknown, and let it ask first.",
    Layer.NONE: "Nothing: the second call was meant.",
    Layer.UNDETERMINED: "Bring the evidence that is missing; nothing is guessed.",
}
CLUES: Final[Mapping[str, str]] = {
    "delivery_count": "the delivery count is above one and grew",
    "same_delivery_count": "both ran in one delivery",
    "first_delivery": "the second was a first delivery",
    "worker_changed": "another worker ran it",
    "same_checkpoint": "both began from one checkpoint",
    "error_and_success_of_one_task": "the checkpoint holds an error and a success of one task",
    "resumed_after_interrupt": "the run was resumed after an interrupt",
    "other_checkpoint": "they began from two checkpoints",
    "retry_count_of_the_job": "the job counts a retry",
    "same_tool_call_id": "both carry one tool-call id",
    "other_tool_call_id": "they carry two tool-call ids",
    "same_turn": "both stand at one place of one turn",
    "other_turn": "they stand in two turns",
    "two_places_in_one_response": "one response holds both",
    "agent_changed": "another agent made the second",
    "named_as_a_repeat": "the agent named the first as repeated on purpose",
    "prior_outcome_known": "the first outcome was known before the second",
    "prior_outcome_open": "the first outcome was open when the second came",
    "user_message_between": "the user spoke in between",
    "gateway_log": "the gateway's log",
    "http_requests_sent": "the number of requests that the client sent",
    "retry_count_header": "the library's own retry count",
    "same_client_request_id": "both carry one client request id",
    "other_client_request_id": "they carry two client request ids",
    "other_body": "their bodies differ",
    "same_key": "both carry one key",
    "other_key": "they carry two keys",
    "asked_by_the_application": "the application asked for both",
    "same_attempt": "both belong to one attempt",
    "another_attempt": "they belong to two attempts",
    "gap": "the time between them",
}
MISSING: Final[Mapping[str, str]] = {
    "delivery_count": "the queue's delivery count (pass `delivery_count` with the claim)",
    "worker": "the worker's name (pass `worker` with the claim)",
    "checkpoint": "the checkpoint that each run began from",
    "checkpoint_writes": "the checkpoint table of the runtime (import it)",
    "gateway_log": "the gateway's log (import it)",
    "http_requests_sent": "how many requests the client sent",
    "retry_count_header": "the library's retry count in the provider's log",
    "client_request_id": "the client request id in the provider's log",
    "attempts_of_the_application": "which attempt each request belongs to",
    "tool_call_id": "the tool-call id of both",
    "turn": "the turn of both",
    "prior_outcome": "the outcome of the first before the second began",
    "user_message_between": "whether the user spoke in between (pass `user_spoke`)",
}


def clue(name: str) -> str:
    return CLUES.get(name, name)


def lack(name: str) -> str:
    return MISSING.get(name, name)
