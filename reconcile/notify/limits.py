"""The limits of notifications, in one place; every refusal names the one that it met."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

RULES_MAX: Final = 50
"""Most rules of one workspace that are not retired."""
CHANNELS_MAX: Final = 20
"""Most channels of one workspace that are not retired."""
PEOPLE_MAX: Final = 20
"""Most people whom one channel mails."""
CALLS_NAMED_MAX: Final = 10
"""Most calls that one message names; it counts the others and links to all of them."""
SUBJECTS_MAX: Final = 5_000
"""Most open calls that one look reads, the most urgent first."""
REPEAT_MIN: Final = timedelta(minutes=15)
REPEAT_MAX: Final = timedelta(days=7)
WITHIN_MIN: Final = timedelta(minutes=5)
WITHIN_MAX: Final = timedelta(days=30)
KEPT: Final = timedelta(days=90)
"""How long a notification stays on record, once nothing more happens to it."""
FORGOTTEN_MAX: Final = 500
"""Most notifications that one tick forgets."""
