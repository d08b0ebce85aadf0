"""The layers at which one call is executed again."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Layer(StrEnum):
    """Where a second execution was born."""

    SDK_RETRY = "sdk_retry"  # the provider's library sent its request again
    GATEWAY_RETRY = "gateway_retry"  # a proxy on the way sent one request on twice
    STEP_RETRY = "step_retry"  # the application ran the step, the node or the whole run again
    QUEUE_REDELIVERY = "queue_redelivery"  # the job was handed out again, by a queue or a platform
    MODEL_REEMISSION = "model_reemission"  # the model asked a second time for what it wanted once
    NONE = "none"  # two calls that were both meant
    UNDETERMINED = "undetermined"  # more than one of these fits, or none does


LAYERS: Final = frozenset(Layer) - {Layer.UNDETERMINED}
"""What a pair can turn out to be; `UNDETERMINED` is the absence of an answer."""
WIRE: Final = frozenset({Layer.SDK_RETRY, Layer.GATEWAY_RETRY})
"""Below the application: the request is repeated, the code that built it does not run again."""
RERUN: Final = frozenset({Layer.STEP_RETRY, Layer.QUEUE_REDELIVERY})
"""The application's code runs again for a call that the model made once."""
INTENT: Final = frozenset({Layer.MODEL_REEMISSION, Layer.NONE})
"""The model made two calls."""


def all_but(*layers: Layer) -> frozenset[Layer]:
    return LAYERS - frozenset(layers)
