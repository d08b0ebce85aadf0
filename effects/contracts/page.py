"""The page docs/contracts.md, made from the contracts themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from effects.contracts.load import CONTRACTS
from effects.contracts.reading import Line, lines_of, promise_words
from effects.contracts.shape import Terms

__all__ = ["contract_page"]

_HEAD: Final = """\
# What providers promise

Made from `effects/contracts/data` by `python -m effects.contracts`; not edited by hand.

A tool of the registry points at one contract. The desk shows the same pages under *Tools →
Contracts*, together with what each tool does otherwise.

- Every statement names its source, how it is known, and when that was looked at. *Not published*
  says that somebody looked. What could not be verified is shown as such and used as if it were not
  published.
- A tool may promise less than its contract: a shorter window, a longer time in which the provider
  may still be at work. A longer window is refused, unless the contract's figure is a minimum or is
  not published; then the registry says that it is the admin's own.
- Where a tool enters nothing, the contract's figure is written into the tool's row when it is
  saved. The row is what calls are granted by: the deadline of a call is its first possible send,
  plus the window, less the margin.
- A window that is not published counts as closed: no call is repeated with its key, and the pages
  and the answers to agents say so.
- *Proves a refusal* lists the answers after which nothing was done, on the first send of an
  attempt. A code in the body outranks the status, and an answer of a host that is not the
  provider's proves nothing. A contract can only take rows away from the table it begins with.

A contract is one file. To add one, copy a file of `effects/contracts/data`, give every part the id
of one of its sources, and run `python -m effects.contracts > docs/contracts.md`. A mistake in a
file stops the start and names the file and the member.
"""


def contract_page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([_HEAD, *_overview(), *(_contract(terms) for terms in CONTRACTS.values())])


def _overview() -> Iterator[str]:
    yield "## All of them\n"
    yield "| contract | key | window |"
    yield "|---|---|---|"
    for terms in CONTRACTS.values():
        unsure = "" if terms.window.verified else ", not verified"
        key = f"`{terms.key.name}`" if terms.has_key else "none"
        yield f"| [{terms.title}](#{_anchor(terms)}) | {key} | {promise_words(terms)}{unsure} |"
    yield ""


def _contract(terms: Terms) -> str:
    lines = [f"## {terms.title}", "", f"Contract `{terms.name}`. {terms.note}".rstrip(), ""]
    lines += ["| about | promise | source |", "|---|---|---|"]
    lines += [_row(line) for line in lines_of(terms)]
    return "\n".join([*lines, ""])


def _row(line: Line) -> str:
    source = line.source
    named = f"[{source.title}]({source.url})" if source.url else source.title
    words = f"{line.words}. {line.note}" if line.note else line.words
    cells = (line.label, words, f"{named}; {source.basis.words}, {source.checked:%Y-%m-%d}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _anchor(terms: Terms) -> str:
    """The anchor that Markdown readers make of a heading."""
    kept = (c for c in terms.title.lower().replace(" ", "-") if c.isalnum() or c in "-_")
    return "".join(kept)
