"""Notes as people write them: a small part of Markdown, made into HTML of which every mark is ours.

The text is escaped before anything is looked for in it, so nothing that somebody wrote can become
markup: only the few patterns below put elements around text that is inert by then. What is no
pattern of ours stays as it was typed. There are paragraphs, line breaks, lists by "- ", quotes by
"> ", `code`, fenced code, **strong**, *stressed*, links to http(s) addresses, and @names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from reconcile.reading import visible

NAME: Final = re.compile(r"(?<![\w@.])@([\w.+-]{1,150}(?:@[\w-]+(?:\.[\w-]+)+)?)")
"""A person who is named: "@" and the name that they sign in with."""

_FENCE: Final = "```"
_CODE: Final = re.compile(r"`([^`\n]+)`")
# In text that is escaped already: an ampersand is "&amp;", and no quote or bracket is left.
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,200})\]\((https?://[^\s()<>]{1,1000})\)")
_ADDRESS: Final = re.compile(r"(?<![\w/(])(https?://[^\s<>()]{1,1000}[^\s<>().,;:!?])")
_STRONG: Final = re.compile(r"\*\*(?=\S)(.{1,1000}?)(?<=\S)\*\*")
_STRESSED: Final = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,1000}?)(?<=\S)\*(?![\w*])")


def names_in(text: str) -> set[str]:
    """The names that a text mentions, as they are written, in lower case; none from code."""
    plain = _CODE.sub(" ", re.sub(rf"{_FENCE}.*?({_FENCE}|\Z)", " ", text, flags=re.DOTALL))
    found = {name.lower() for name in NAME.findall(plain)}
    # A name at the end of a sentence is followed by its full stop.
    return found | {name.rstrip(".-+") for name in found}


def rendered(text: str, people: Mapping[str, str]) -> SafeString:
    """The note as HTML. `people`: addresses by the lower-case names that can be mentioned."""
    return mark_safe("".join(_blocks(text, people)))  # noqa: S308 - every text in it was escaped


def _blocks(text: str, people: Mapping[str, str]) -> Iterator[str]:
    lines = visible(text).replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(_FENCE):
            end = next(
                (n for n in range(at + 1, len(lines)) if lines[n].startswith(_FENCE)), len(lines)
            )
            yield f"<pre><code>{escape(chr(10).join(lines[at + 1 : end]))}</code></pre>"
            at = end + 1
        elif not line.strip():
            at += 1
        else:
            kind = _kind(line)
            end = at
            while end < len(lines) and lines[end].strip() and _kind(lines[end]) == kind:
                end += 1
            yield _block(kind, lines[at:end], people)
            at = end


def _kind(line: str) -> str:
    if line.startswith(("- ", "* ")):
        return "list"
    if line.startswith(_FENCE):
        return "fence"
    return "quote" if line.startswith("> ") else "text"


def _block(kind: str, lines: list[str], people: Mapping[str, str]) -> str:
    if kind == "list":
        items = "".join(f"<li>{_inline(line[2:], people)}</li>" for line in lines)
        return f"<ul>{items}</ul>"
    if kind == "quote":
        said = "<br>".join(_inline(line[2:], people) for line in lines)
        return f"<blockquote>{said}</blockquote>"
    return f"<p>{'<br>'.join(_inline(line, people) for line in lines)}</p>"


def _inline(line: str, people: Mapping[str, str]) -> str:
    """One line: code is left as it is, the rest is looked through outside of it."""
    said: list[str] = []
    last = 0
    for code in _CODE.finditer(line):
        said.append(_words(line[last : code.start()], people))
        said.append(f"<code>{escape(code[1])}</code>")
        last = code.end()
    return "".join(said) + _words(line[last:], people)


def _words(text: str, people: Mapping[str, str]) -> str:
    """Links first, each put aside, so that no other pattern reaches into an address."""
    aside: list[str] = []

    def put(markup: str) -> str:
        aside.append(markup)
        return f"\x00{len(aside) - 1}\x00"

    def link(found: re.Match[str]) -> str:
        return put(_anchor(found[2], found[1]))

    def address(found: re.Match[str]) -> str:
        return put(_anchor(found[1], found[1]))

    def mention(found: re.Match[str]) -> str:
        name = found[1].rstrip(".-+")
        where = people.get(name.lower())
        if where is None:
            return found[0]
        rest = found[1][len(name) :]
        return put(f'<a class="mention" href="{escape(where)}">@{name}</a>') + rest

    inert = str(escape(text.replace("\x00", "")))
    inert = _ADDRESS.sub(address, _LINK.sub(link, inert))
    inert = NAME.sub(mention, inert)
    inert = _STRONG.sub(r"<strong>\1</strong>", inert)
    inert = _STRESSED.sub(r"<em>\1</em>", inert)
    return re.sub("\x00(\\d+)\x00", lambda found: aside[int(found[1])], inert)


def _anchor(address: str, words: str) -> str:
    return f'<a href="{address}" rel="noopener noreferrer nofollow" target="_blank">{words}</a>'
