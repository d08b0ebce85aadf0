"""One changing request, sent by the SDKs and by the clients that are awaited. Imported only where
it is used: these libraries take seconds to load."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import aiohttp
import anthropic
import anthropic.types
import botocore.config
import botocore.session
import openai
import stripe

from tests.effects.senders import BODY, PATH, TIMEOUT_SECONDS, Sender
from tests.support.awaiting import awaited

AIOHTTP_TIMEOUT = aiohttp.ClientTimeout(
    total=None, sock_connect=TIMEOUT_SECONDS, sock_read=TIMEOUT_SECONDS
)
A_QUESTION: anthropic.types.MessageParam = {"role": "user", "content": "refund"}


def aiohttp_sender(method: str = "POST", **how: Any) -> Sender:
    """`how` is for the request, except `session` and `read`."""
    session_of: Callable[[], aiohttp.ClientSession] = how.pop(
        "session", lambda: aiohttp.ClientSession(timeout=AIOHTTP_TIMEOUT)
    )

    def send(url: str) -> object:
        async def ask() -> object:
            try:
                async with (
                    session_of() as session,
                    session.request(method, url + PATH, json=BODY, **how) as response,
                ):
                    response.raise_for_status()
                    return await response.text()
            finally:
                if url.startswith("https"):
                    # A connection over TLS is closed a little after its session.
                    await asyncio.sleep(0.02)

        return awaited(ask())

    return send


def openai_sender(retries: int = 0, *, headers: dict[str, str] | None = None, **how: Any) -> Sender:
    def send(url: str) -> object:
        with openai.OpenAI(
            api_key="sk-not-real", base_url=url, max_retries=retries, timeout=TIMEOUT_SECONDS, **how
        ) as client:
            return client.post(
                "/files", cast_to=object, body=BODY, options={"headers": headers or {}}
            )

    return send


def openai_stream(url: str, retries: int = 0) -> object:
    with openai.OpenAI(
        api_key="sk-not-real", base_url=url, max_retries=retries, timeout=TIMEOUT_SECONDS
    ) as client:
        return list(client.responses.create(model="m", input="refund", stream=True))


def anthropic_sender(
    retries: int = 0, *, headers: dict[str, str] | None = None, **how: Any
) -> Sender:
    def send(url: str) -> object:
        with anthropic.Anthropic(
            api_key="sk-not-real", base_url=url, max_retries=retries, timeout=TIMEOUT_SECONDS, **how
        ) as client:
            return client.post(
                "/v1/files", cast_to=object, body=BODY, options={"headers": headers or {}}
            )

    return send


def anthropic_stream(url: str, retries: int = 0) -> object:
    with anthropic.Anthropic(
        api_key="sk-not-real", base_url=url, max_retries=retries, timeout=TIMEOUT_SECONDS
    ) as client:
        return list(
            client.messages.create(model="m", max_tokens=9, messages=[A_QUESTION], stream=True)
        )


@functools.cache
def _aws() -> botocore.session.Session:
    """One for all: it reads the descriptions of the services from the disk."""
    return botocore.session.Session()


def aws_queue(url: str, *, retries: int = 0, **how: Any) -> Any:
    """A client of a queue service at `url`, which has never heard of Amazon."""
    config = botocore.config.Config(
        connect_timeout=TIMEOUT_SECONDS,
        read_timeout=TIMEOUT_SECONDS,
        retries={"total_max_attempts": retries + 1, "mode": "standard"},
        **how.pop("config", {}),
    )
    keys = {"aws_access_key_id": "not-real", "aws_secret_access_key": "not-real"}
    return _aws().create_client(
        "sqs", region_name="eu-west-1", endpoint_url=url, config=config, **{**keys, **how}
    )


def botocore_sender(retries: int = 0, **how: Any) -> Sender:
    def send(url: str) -> object:
        client = aws_queue(url, retries=retries, **how)
        answer = client.send_message(QueueUrl=f"{url}/queue", MessageBody="refund")
        return answer["MessageId"]  # A cut body is not noticed: the field tells.

    return send


def by_stripe_over_aiohttp(url: str) -> object:
    async def create() -> object:
        transport = stripe.AIOHTTPClient(timeout=AIOHTTP_TIMEOUT)
        try:
            client = stripe.StripeClient(
                "sk_test_not_real", base_addresses={"api": url}, http_client=transport
            )
            return await client.v1.payment_intents.create_async(
                {"amount": 1200, "currency": "eur"}, {"idempotency_key": "k-1"}
            )
        finally:
            await transport.close_async()

    return awaited(create())


SDK_SENDERS: dict[str, Sender] = {
    "aiohttp": aiohttp_sender(),
    "openai": openai_sender(),
    "anthropic": anthropic_sender(),
    "botocore": botocore_sender(),
    "stripe over aiohttp": by_stripe_over_aiohttp,
}
"""Those that send one request and never repeat it; all raise an error status as an exception."""
