"""Secrets that everybody knows: names of members, shapes in texts, and card numbers.

They need no rule of a workspace. What is looked for is narrow on purpose: `idempotency_key` and
`page_token` are no secrets, and a text that hides too much is read by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final

__all__ = [
    "EVERY_SECRET",
    "Secret",
    "is_stand_in",
    "may_hold_a_secret",
    "names_a_secret",
    "secrets_in_words",
    "stand_in",
]


class Secret(StrEnum):
    """One kind of secret that is found without a rule."""

    NAME = "name"
    ADDRESS = "address"
    WORDS = "words"
    CARD = "card"


EVERY_SECRET: Final = frozenset(Secret)

STAND_IN: Final = "...."
"""What is shown for a value. Of a long number the last four digits follow it."""
LAST_DIGITS_OF_MIN: Final = 12
_LONG_NUMBER: Final = re.compile(r"[0-9](?:[ -]?[0-9])+")
_STAND_IN: Final = re.compile(r"\.{4}(?:[0-9]{4})?")


def stand_in(value: str) -> str:
    """What is shown in place of a value: `....4242` for a long number, else `....`."""
    digits = value.replace(" ", "").replace("-", "")
    if len(digits) >= LAST_DIGITS_OF_MIN and _LONG_NUMBER.fullmatch(value):
        return STAND_IN + digits[-4:]
    return STAND_IN


def is_stand_in(value: str) -> bool:
    return _STAND_IN.fullmatch(value) is not None


# Names of members

_NAMES: Final = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "credentials"),
        *("authorization", "proxyauthorization", "apikey", "xapikey", "apisecret", "appsecret"),
        *("token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "xauthtoken"),
        *("bearertoken", "sessiontoken", "apitoken", "privatekey", "secretkey", "signingkey"),
        *("encryptionkey", "secretaccesskey", "clientsecret", "webhooksecret", "cookie"),
        *("setcookie", "cvc", "cvv", "cvv2", "cardcvc", "securitycode", "xcsrftoken"),
    }
)
_ENDS: Final = (
    *("password", "passwd", "passphrase", "apikey", "accesstoken", "refreshtoken", "authtoken"),
    *("clientsecret", "secretkey", "secretaccesskey", "privatekey", "apitoken", "sharedsecret"),
)
_NAME_CHARACTERS_MAX: Final = 60


def _squeezed(lower: str) -> str:
    return lower.replace("_", "").replace("-", "")


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether a member of this name holds a credential, in whatever way it is written."""
    if len(name) > _NAME_CHARACTERS_MAX:
        return False
    plain = _squeezed(name.lower())
    return plain in _NAMES or plain.endswith(_ENDS)


# Shapes in texts

_BEFORE: Final = r"(?i)(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]{0,40}?"
_SAID: Final = r"(?:passwords?|passwd|passphrase|pwd)"
_OTHERS: Final = (
    r"(?:secret|api[_-]?key|(?:access|refresh|auth|session)[_-]?token|(?:private|secret)[_-]?key"
    r"|(?<![A-Za-z0-9_.-])(?:token|(?:proxy-)?authorization|(?:set-)?cookie))"
)
_ANY: Final = rf"(?:{_SAID}|{_OTHERS})"
_IS: Final = r"\\*[\"']?\s{0,3}[:=]\s{0,3}"
_END: Final = r"\s&;,\"'<>\\}\]"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://"
_HOST: Final = r"\s/?#@\"'<>"
_KEYS: Final = r"(?:(?:sk|rk|whsec|ghp|gho|xox[abpr])[_-]|AKIA)[A-Za-z0-9_-]{12,}"
_PART: Final = r"[A-Za-z0-9_-]{8,}"
_SHAPES: Final[tuple[tuple[Secret, re.Pattern[str]], ...]] = (
    (Secret.ADDRESS, re.compile(rf"{_SCHEME}[^:{_HOST}]{{0,200}}:([^{_HOST}]{{1,500}})@")),
    (Secret.ADDRESS, re.compile(rf"{_SCHEME}([^:{_HOST}]{{8,500}})@")),
    *(
        (Secret.WORDS, re.compile(shape, re.DOTALL))
        for shape in (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(.{1,20000}?)(?=-----END|\Z)",
            # "A basic plan" and "bearer bonds" are no credentials: one has a digit, or padding.
            r"(?i)\bbearer\s+((?=[A-Z._~+/-]*[0-9])[A-Z0-9._~+/-]{6,}=*)",
            r"(?i)\bbasic\s+((?=[A-Z+/]*[0-9=])[A-Z0-9+/]{8,}=*)",
            rf"\b({_KEYS})",
            rf"\b(eyJ{_PART}\.{_PART}\.{_PART})",
            # Name and value: a query, a form, a header, a broken piece of JSON.
            rf"{_BEFORE}{_ANY}{_IS}\\*\"((?:[^\"\\]|\\.){{1,2000}})",
            rf"{_BEFORE}{_ANY}=([^{_END}]{{1,2000}})",
            rf"{_BEFORE}{_SAID}{_IS}([^{_END}]{{1,2000}})",
            rf"{_BEFORE}{_OTHERS}{_IS}((?=[^{_END}]*[0-9]|[^{_END}]{{16}})[^{_END}]{{1,2000}})",
        )
    ),
)
# An authorization in words is `Bearer ...`; the word itself is no secret.
_SCHEMES: Final = frozenset({"bearer", "basic", "digest", "null", "true", "false"})

_CARD: Final = re.compile(r"[2-6][0-9 -]{13,23}")
_CARD_DIGITS: Final = re.compile(r"(?<![0-9A-Za-z_.-])[2-6](?:[ -]?[0-9]){13,18}(?![0-9A-Za-z_-])")
_CARD_BEGINS: Final = re.compile(
    r"4[0-9]{15}|4[0-9]{18}"  # ISO/IEC 7812: the first digits say whose card it is
    r"|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|62[0-9]{14,17}"
)

_NAME_HINTS: Final = (
    *("passw", "passp", "passc", "pwd", "secret", "authoriz", "apikey", "token", "privatekey"),
    *("signingkey", "encryptionkey", "cookie", "cvc", "cvv", "credential", "securitycode"),
)
"""At least one is in every name above, in lower case and without separators."""
_SHAPE_HINTS: Final = (
    *("bearer", "basic", "private key", "sk_", "sk-", "rk_", "rk-", "whsec", "ghp", "gho", "xox"),
    *("akia", "eyj"),
)


def may_hold_a_secret(text: str) -> bool:
    """A quick look: whether it is worth reading the text. It never misses what is found below."""
    lower = text.lower()
    squeezed = _squeezed(lower)
    for hint in _NAME_HINTS:
        if hint in squeezed:
            return True
    for hint in _SHAPE_HINTS:
        if hint in lower:
            return True
    if "\\" in text and "\\u" in lower:
        return True  # A name may be written with escapes.
    return ("://" in text and "@" in text) or _CARD.search(text) is not None


def secrets_in_words(text: str, kinds: frozenset[Secret]) -> Iterator[tuple[int, int, Secret]]:
    """Where secrets stand in a text, by their shape: beginning, end and kind, in no order."""
    for kind, shape in _SHAPES:
        if kind in kinds:
            for match in shape.finditer(text):
                value = match[1]
                if not is_stand_in(value) and value.lower() not in _SCHEMES:
                    yield match.start(1), match.end(1), kind
    if Secret.CARD in kinds:
        for match in _CARD_DIGITS.finditer(text):
            if is_card_number(match[0]):
                yield match.start(), match.end(), Secret.CARD


def is_card_number(text: str) -> bool:
    """Digits that a card may have: a known beginning, its length, and the check digit."""
    digits = text.replace(" ", "").replace("-", "")
    return _CARD_BEGINS.fullmatch(digits) is not None and _luhn(digits)


def _luhn(digits: str) -> bool:
    """The check digit of ISO/IEC 7812-1, annex B."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0
