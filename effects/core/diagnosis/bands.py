"""Which gaps between two executions the tenant's own constants allow for a layer.

The constants belong to libraries, clients, queues and platforms that the tenant configures, so the
tenant's figures are what counts; the defaults are those of widely used software in the versions
that were looked at. Bands overlap (a queue's 30 s is a client's 30 s), which is why a gap decides
nothing as long as two layers fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from effects.core.diagnosis.layers import Layer

SECONDS_MAX: Final = 14 * 86_400.0
"""No queue keeps a message longer (SQS: 14 days)."""
FIGURES_MAX: Final = 20
SLACK: Final = 0.1
"""A tenth more or less still fits: timers are late, and work before a call takes its own time."""
QUEUE_WAIT: Final = 0.5
"""How much later than its time a job may be taken, as a part of it: a worker must be free."""

Seconds = Annotated[float, Field(gt=0, le=SECONDS_MAX, allow_inf_nan=False)]


class Constants(BaseModel):
    """Every figure in seconds. An empty list of redelivery times means that no queue and no
    platform hands these calls out again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sdk_backoff_min: Seconds = 0.375
    sdk_backoff_max: Seconds = 8.0
    client_timeout: Seconds = 80.0
    gateway_timeout: Seconds = 60.0
    step_backoff_min: Seconds = 0.5
    redelivery: Annotated[tuple[Seconds, ...], Field(max_length=FIGURES_MAX)] = (
        *(30.0, 180.0, 1_800.0, 3_600.0),
    )

    def bands(self, layer: Layer) -> tuple[tuple[float, float], ...]:
        """The gaps from begin to begin that fit a layer: least and most seconds of each band. A
        repeat follows what came before at once, or when its time is over, and then a pause."""
        match layer:
            case Layer.SDK_RETRY:
                return ((self.sdk_backoff_min, self.client_timeout + self.sdk_backoff_max),)
            case Layer.GATEWAY_RETRY:
                return ((0.0, self.gateway_timeout),)
            case Layer.QUEUE_REDELIVERY:
                return tuple((least, least * (1 + QUEUE_WAIT)) for least in self.redelivery)
            case Layer.STEP_RETRY:
                # No end: what a person interrupts is taken up again when they answer.
                return ((self.step_backoff_min, float("inf")),)
            case _:
                return ((0.0, float("inf")),)

    def fits(self, layer: Layer, gap_seconds: float) -> bool:
        """Whether the layer can leave this gap."""
        return any(
            least * (1 - SLACK) <= gap_seconds <= most * (1 + SLACK)
            for least, most in self.bands(layer)
        )


DEFAULTS: Final = Constants()

SOURCES: Final[Mapping[str, str]] = {
    "sdk_backoff_min": "openai and anthropic wait 0.375 s at least, stripe 0.5 s",
    "sdk_backoff_max": "openai and anthropic wait 8 s at most, stripe 5 s",
    "client_timeout": "stripe 80 s; httpx 5 s, openai and anthropic 600 s, MCP 30 s",
    "gateway_timeout": "nginx's proxy_read_timeout, 60 s",
    "step_backoff_min": "LangGraph's RetryPolicy begins with 0.5 s, Temporal with 1 s",
    "redelivery": (
        "SQS 30 s; LangGraph's platform sweeps after about 180 s; Celery on SQS 1800 s, on Redis "
        "3600 s"
    ),
}
"""Where the default of each figure comes from, for the page on which it is changed."""
