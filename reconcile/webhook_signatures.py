"""Whether a webhook was signed by who shares our secret, over exactly these bytes, just now. Pure.

Stripe signs ``"{t}.{body}"`` with HMAC-SHA256 and sends ``t`` and one or several ``v1`` in one
header; its own package checks that, but lets any age pass unless told, and a time in the future
always (https://docs.stripe.com/webhooks/signature). Other senders follow Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md); their
package judges the age by this machine's clock and takes texts only, so here their rule is applied
to the bytes, and the tests sign with the package.

GoCardless and Checkout.com sign the body alone, so nothing says when. An old copy of theirs is the
same delivery as its original, and orders one more look at most.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import stripe

from effects.core.problems import BadRequest

AGE_SECONDS_MAX: Final = 300
"""Oldest signature that is taken. A delivery that is sent anew is signed anew."""
AHEAD_SECONDS_MAX: Final = 300
"""How far a sender's clock may be ahead of ours. One that lies further ahead would make a copy
that somebody kept usable for as long as it pleased."""
SIGNATURES_MAX: Final = 20

_SIGNED_AT = re.compile(r"(?:^|,)t=([0-9]{1,12})(?:,|$)")
_SECONDS = re.compile(r"[0-9]{1,12}")


class SignatureRefused(BadRequest):
    """The webhook's signature is not right, so nothing was kept. If it is yours, compare the
    signing secret on both sides, and the clocks."""

    code = "signature_refused"


def check_stripe(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], *, now: datetime
) -> None:
    """Raises `SignatureRefused` unless one of `secrets` signed the body, not too long ago."""
    header = headers.get("Stripe-Signature", "")
    if header.count(",") >= SIGNATURES_MAX:
        raise SignatureRefused(f"The signature holds more than SIGNATURES_MAX={SIGNATURES_MAX}.")

    def right(secret: str) -> bool:
        try:
            return bool(stripe.WebhookSignature.verify_header(body, header, secret))
        except (stripe.SignatureVerificationError, UnicodeDecodeError):
            return False

    _one_of(secrets, right)
    signed_at = _SIGNED_AT.search(header)
    _check_age(signed_at[1] if signed_at else "", now=now)


def check_standard(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], *, now: datetime
) -> None:
    """The same for Standard Webhooks: ``webhook-id``, ``-timestamp`` and ``-signature``."""
    event_id = headers.get("Webhook-Id", "")
    signed_at = headers.get("Webhook-Timestamp", "")
    given = [part for part in headers.get("Webhook-Signature", "").split() if part[:3] == "v1,"]
    if len(given) > SIGNATURES_MAX:
        raise SignatureRefused(f"The signature holds more than SIGNATURES_MAX={SIGNATURES_MAX}.")
    if not event_id or "." in event_id:
        raise SignatureRefused("The header webhook-id is missing, or holds a dot.")
    signed = f"{event_id}.{signed_at}.".encode() + body

    def right(secret: str) -> bool:
        digest = hmac.new(_standard_key(secret), signed, hashlib.sha256).digest()
        wanted = b"v1," + base64.b64encode(digest)
        return any(hmac.compare_digest(wanted, one.encode()) for one in given)

    _one_of(secrets, right)
    _check_age(signed_at, now=now)


def check_gocardless(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], *, now: datetime
) -> None:
    """The same for GoCardless: ``Webhook-Signature`` holds the HMAC-SHA256 of the body, in hex
    (https://developer.gocardless.com/api-reference/#webhooks-overview)."""
    del now  # Nothing in the signature says when it was made.
    _check_body(body, headers.get("Webhook-Signature", ""), secrets)


def check_checkout(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], *, now: datetime
) -> None:
    """The same for Checkout.com: ``Cko-Signature``, the HMAC-SHA256 of the body in hex
    (https://www.checkout.com/docs/developer-resources/webhooks/manage-webhooks)."""
    del now  # As above.
    _check_body(body, headers.get("Cko-Signature", ""), secrets)


def _check_body(body: bytes, given: str, secrets: Sequence[str]) -> None:
    said = given.strip().lower().encode("utf-8", "replace")

    def right(secret: str) -> bool:
        wanted = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted.encode(), said)

    _one_of(secrets, right)


def _one_of(secrets: Sequence[str], right: Callable[[str], bool]) -> None:
    # Every secret is tried, so that the time taken does not tell which one is in use.
    if True not in [right(secret) for secret in secrets]:
        raise SignatureRefused("No signature of this webhook was made with our secret.")


def _check_age(signed_at: str, *, now: datetime) -> None:
    if not _SECONDS.fullmatch(signed_at):
        raise SignatureRefused("The signature does not say when it was made.")
    age = now - datetime.fromtimestamp(int(signed_at), UTC)
    if age > timedelta(seconds=AGE_SECONDS_MAX):
        raise SignatureRefused(
            f"It was signed {age.total_seconds():.0f} s ago; AGE_SECONDS_MAX is {AGE_SECONDS_MAX}. "
            "Have it sent anew."
        )
    if age < -timedelta(seconds=AHEAD_SECONDS_MAX):
        raise SignatureRefused(
            f"It was signed {-age.total_seconds():.0f} s in the future; AHEAD_SECONDS_MAX is "
            f"{AHEAD_SECONDS_MAX}. Compare the clocks."
        )


def _standard_key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()
