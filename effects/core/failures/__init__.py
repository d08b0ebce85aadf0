"""What an exception proves about the request that a tool was sending.

The libraries of the providers are not imported here: their exceptions are recognised by package
and name, along the whole chain of causes and contexts, so that a tool may use any of them. The
table is in `rows_http`, `rows_python` and `rows_sdk`; `python -m effects.core.failures` prints it
as the page docs/errors.md.

NOT_SENT needs a proof that no byte of the request left: the connection was refused, the name did
not resolve, the connection was not ready in time, the TLS handshake failed, no connection was free.
A read timeout, a reset or a cut body comes after the send began and proves nothing, and so does
every exception that is not listed. Two things destroy a proof:

* an earlier request of the same attempt: a library that repeats or follows redirects raises the
  error of its *last* request. The traceback shows whether there was one;
* another exception in the chain that is no part of this one: then something else failed first.
"""

from __future__ import annotations

from effects.core.answers import Contract, classify_answer
from effects.core.failures.chain import CHAIN_LENGTH_MAX
from effects.core.failures.row import ErrorProof
from effects.core.failures.sends import sends_in_result
from effects.core.failures.sorting import Failure, NotSent, SendTooLate, classify_exception
from effects.core.failures.table import ErrorRow, ErrorRules, error_rules

__all__ = [
    "CHAIN_LENGTH_MAX",
    "Contract",
    "ErrorProof",
    "ErrorRow",
    "ErrorRules",
    "Failure",
    "NotSent",
    "SendTooLate",
    "classify_answer",
    "classify_exception",
    "error_rules",
    "sends_in_result",
]
