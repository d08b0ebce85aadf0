"""`python -m tests.support.bootstrap PUBLISHED.css`: our part of Bootstrap's stylesheet, made anew.

The whole of it would be half of what a page may fetch. Kept are the rules whose classes our files
name, and the plain utilities, because the next template will want one of them. What is left out is
listed beside this file, so that a test can say when a template names something that is not there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.stack import ROOT

KEPT: Final = ROOT / "static" / "vendor" / "bootstrap.min.css"
LEFT_OUT: Final = Path(__file__).with_name("bootstrap_left_out.txt")
NAMING: Final = ("templates/**/*.html", "static/*.js", "*/**/*.py")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_CLASS: Final = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_PLACE: Final = re.compile(
    r'class="([^"]*)"|"class": "([^"]*)"|classList\.\w+\(([^)]*)\)|className = ([^;]*);'
)
_UTILITY: Final = re.compile(
    r"[mp][tbsexy]?-(?:[0-5]|auto)|d-(?:none|block|inline|inline-block|flex|grid)|(?:row|col)(?:-\d+)?"
    r"|flex-(?:row|column|wrap|nowrap|fill)|(?:justify-content|align-items)-\w+|g[xy]?-[0-5]"
    r"|gap-[0-5]|text-(?:start|end|center|break|nowrap|truncate)|fw-\w+|[wh]-100|btn(?:-link|-sm)?"
    r"|form-(?:control|select|check|text|label)[\w-]*|input-group[\w-]*|visually-hidden[\w-]*"
    r"|is-(?:in)?valid|(?:in)?valid-feedback|list-unstyled|table(?:-sm)?|overflow-\w+|position-\w+"
)


def classes(selector: str) -> set[str]:
    return set(_CLASS.findall(selector.replace("\\", "")))


def named() -> set[str]:
    """Every word of our files: whatever could name a class, wherever it is put together."""
    return {word for text in _texts() for word in _WORD.findall(text)}


def written() -> set[str]:
    """The words that stand where classes do, in templates, in scripts and in widgets of forms."""
    places = (place for text in _texts() for place in _PLACE.findall(text))
    return {word for found in places for place in found for word in _WORD.findall(place)}


def _texts() -> Iterator[str]:
    files = {path for pattern in NAMING for path in ROOT.glob(pattern)}
    for path in files:
        if not {".venv", "tests", "var", "vendor"} & set(path.relative_to(ROOT).parts):
            yield path.read_text(encoding="utf-8")


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """What stands before each block, with what is in it; None for what has no block."""
    at = 0
    while at < len(css):
        if css.startswith("/*", at):
            end = css.index("*/", at) + 2
            yield css[at:end], None
        elif (begin := re.compile("[{;]").search(css, at)) is None:
            return
        elif begin[0] == ";":
            end = begin.end()
            yield css[at:end], None
        else:
            depth, end = 1, begin.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(css[end], 0)
                end += 1
            yield css[at : begin.start()], css[begin.end() : end - 1]
        at = end


def selectors(head: str) -> list[str]:
    return re.split(r",(?![^(\[]*[)\]])", head)


def part(css: str, wanted: set[str]) -> str:
    """The stylesheet without the rules of which no class is wanted; what has no class stays."""
    kept = []
    for head, body in rules(css):
        if body is None:
            kept.append(head)
        elif head.startswith(("@media", "@supports")):
            inner = part(body, wanted)
            kept += [f"{head}{{{inner}}}"] if inner else []
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        else:
            shown = [one for one in selectors(head) if classes(_without_not(one)) <= wanted]
            kept += [f"{','.join(shown)}{{{body}}}"] if shown else []
    return "".join(kept)


def _without_not(selector: str) -> str:
    return re.sub(r":not\([^)]*\)", "", selector)


def every_class(css: str) -> set[str]:
    found: set[str] = set()
    for head, body in rules(css):
        if body is not None and head.startswith(("@media", "@supports")):
            found |= every_class(body)
        elif body is not None and not head.startswith("@"):
            found |= classes(_without_not(head))
    return found


def main() -> None:
    # Its last line names a source map that is not shipped; hashed file names would look for it.
    published = re.sub(r"\n?/\*# sourceMappingURL=.*", "", Path(sys.argv[1]).read_text("utf-8"))
    there = every_class(published)
    utilities = {one for one in there if _UTILITY.fullmatch(one)}
    wanted = (named() & there) | utilities
    KEPT.write_text(part(published, wanted).rstrip() + "\n", encoding="utf-8")
    LEFT_OUT.write_text("\n".join(sorted(there - wanted)) + "\n", encoding="utf-8")
    print(f"{len(wanted)} of {len(there)} classes are kept. Note the new sha256 in VENDOR.txt.")


if __name__ == "__main__":
    main()
