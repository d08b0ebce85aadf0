"""Stripe's error bodies, in the wording and with the fields that its SDK reads.

Source: https://docs.stripe.com/api/errors, https://docs.stripe.com/error-low-level and
https://docs.stripe.com/api/idempotent_requests.
"""

from typing import Final

from reconcile.sandbox.provider.messages import Answer, Json, Refused

NO_EFFECT_IN_RETRYING: Final = {"Stripe-Should-Retry": "false"}
"""The answer is stored with the key: the same request gets the same answer for ever."""


def _error(status: int, error: Json, headers: dict[str, str] | None = None) -> Answer:
    given = {name: value for name, value in error.items() if value is not None}
    return Answer(status=status, body={"error": given}, headers=headers or {})


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Refused:
    """400 for parameters that cannot be right. It comes before execution and is not stored."""
    error = {"type": "invalid_request_error", "message": message, "param": param, "code": code}
    return Refused(_error(400, error), stored=False)


def unexpected_state(message: str, *, code: str, param: str | None = None) -> Refused:
    """400 that only executing the request could find out; stored with the key."""
    error = {"type": "invalid_request_error", "message": message, "param": param, "code": code}
    return Refused(_error(400, error, NO_EFFECT_IN_RETRYING), stored=True)


def no_such(noun: str, object_id: str, *, param: str, status: int = 404, hint: str = "") -> Refused:
    """The id names nothing in this account and mode: 404 in a path, 400 in a parameter."""
    error = {
        "type": "invalid_request_error",
        "code": "resource_missing",
        "message": f"No such {noun}: '{object_id}'{hint}",
        "param": param,
    }
    return Refused(_error(status, error), stored=False)


def unrecognized_url(method: str, path: str) -> Answer:
    """404 for an endpoint that this provider does not have."""
    message = f"Unrecognized request URL ({method}: {path})."
    return _error(404, {"type": "invalid_request_error", "message": message})


def unauthorized(message: str) -> Answer:
    """401: no key or one that nobody knows."""
    return _error(401, {"type": "invalid_request_error", "message": message})


def forbidden() -> Answer:
    """403: a restricted key may read, not write."""
    message = "The provided key does not have the required permissions for this endpoint."
    return _error(403, {"type": "invalid_request_error", "message": message})


def no_access(account: str) -> Answer:
    """403: this key and that account have nothing to do with each other."""
    message = (
        f"The provided key does not have access to account '{account}' (or that account does not "
        "exist). Application access may have been revoked."
    )
    error = {"type": "invalid_request_error", "code": "account_invalid", "message": message}
    return _error(403, error)


def reads_used_up(allowed: int) -> Answer:
    """429: more reads than the account's transactions allow. It says nothing about any object."""
    message = (
        f"You have used your allocation of {allowed} read requests for the last 30 days. Listen to "
        "webhooks, or retry with exponential backoff."
    )
    error = {"type": "invalid_request_error", "code": "rate_limit", "message": message}
    return _error(429, error, {"Retry-After": "60"})


def too_many_requests() -> Answer:
    """429 from the limiter, which stands before the key layer."""
    message = "Request rate limit exceeded. Retry with exponential backoff."
    return _error(429, {"type": "invalid_request_error", "code": "rate_limit", "message": message})


def card_declined(code: str | None, decline_code: str, payment_intent: Json) -> Answer:
    """402: executed, declined and stored. The PaymentIntent exists and comes with the error."""
    error = {
        "type": "card_error",
        "code": code or "card_declined",
        "decline_code": decline_code,
        "message": "Your card was declined.",
        "payment_intent": payment_intent,
        "charge": payment_intent["latest_charge"],
    }
    return _error(402, error, NO_EFFECT_IN_RETRYING)


def refused_refund() -> Answer:
    """402 for a refund that the balance does not cover; stored."""
    message = "Insufficient funds in your Stripe balance to refund this amount."
    error = {"type": "card_error", "code": "balance_insufficient", "message": message}
    return _error(402, error, NO_EFFECT_IN_RETRYING)


def charge_declined(decline_code: str, charge_id: str) -> Answer:
    """402 for a charge without a PaymentIntent; the failed charge exists, and this is stored."""
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": decline_code,
        "message": "Your card was declined.",
        "charge": charge_id,
    }
    return _error(402, error, NO_EFFECT_IN_RETRYING)


def setup_declined(decline_code: str, setup_intent: Json) -> Answer:
    """402: the SetupIntent exists and comes with the error; stored."""
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": decline_code,
        "message": "Your card was declined.",
        "setup_intent": setup_intent,
    }
    return _error(402, error, NO_EFFECT_IN_RETRYING)


def invoice_declined(decline_code: str) -> Answer:
    """402: the invoice's payment was declined; stored."""
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": decline_code,
        "message": "Your card was declined.",
    }
    return _error(402, error, NO_EFFECT_IN_RETRYING)


def refused_payout() -> Answer:
    """400 for a payout that the balance does not cover; only executing it finds out, so stored."""
    message = "You have insufficient funds in your Stripe account for this transfer."
    error = {"type": "invalid_request_error", "code": "balance_insufficient", "message": message}
    return _error(400, error, NO_EFFECT_IN_RETRYING)


def server_error() -> Answer:
    """500: the outcome is indeterminate, and this answer is stored with the key."""
    message = "An unknown error occurred. Contact support if the problem persists."
    return _error(500, {"type": "api_error", "message": message}, NO_EFFECT_IN_RETRYING)


def key_in_use(key: str) -> Answer:
    """409: the first request with this key is still being worked on."""
    message = (
        "There is currently another in-progress request using this Idempotent Key (that probably "
        f"means you submitted twice, and the other request is still going through): {key}. "
        "Please try again later."
    )
    error = {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": message}
    return _error(409, error)


def key_for_other_parameters(key: str) -> Answer:
    """400: this key was first used with other parameters."""
    message = (
        "Keys for idempotent requests can only be used with the same parameters they were first "
        f"used with. Try using a key other than '{key}' if you meant to execute a different "
        "request."
    )
    return _error(400, {"type": "idempotency_error", "message": message})


def key_for_other_endpoint(key: str, *, first: str, now: str) -> Answer:
    """400: this key was first used for another endpoint. Keys belong to the whole account."""
    message = (
        "Keys for idempotent requests can only be used for the same endpoint they were first used "
        f"for ('{now}' vs '{first}'). Try using a key other than '{key}' if you meant to execute "
        "a different request."
    )
    return _error(400, {"type": "idempotency_error", "message": message})
