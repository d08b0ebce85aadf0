"""The sheet of keys, as the person who looks at the page has them."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.template.context import Context

from effects.pages.keys import ANYWHERE, ON_A_CALL, ROWS, own_keys, shown
from effects.pages.shell import Entry

register = template.Library()

DECISIONS_BEGIN = "Pick decision "


@register.simple_tag(takes_context=True)
def key_sheet(context: Context, entries: tuple[Entry, ...]) -> dict[str, Any]:
    """The sections of the sheet, and the same for the script: which key does what."""
    keys = own_keys(context.get("request"))
    decisions = [key for words, key in shown(keys, ON_A_CALL) if words.startswith(DECISIONS_BEGIN)]
    return {
        "on": keys.on,
        "by_key": json.dumps(keys.by_key),
        "rows": shown(keys, ROWS),
        "anywhere": shown(keys, ANYWHERE),
        "call": [
            (words, key)
            for words, key in shown(keys, ON_A_CALL)
            if not words.startswith(DECISIONS_BEGIN)
        ],
        "decisions": decisions,
        "go": keys.of("g"),
        "entries": entries,
    }
