"""Static files: what was copied is what its note says, and every drawing that is named exists."""

import hashlib
import re
from pathlib import Path

from tests.support import bootstrap

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static"


def test_each_vendored_file_has_the_digest_that_its_note_gives() -> None:
    note = (STATIC / "vendor" / "VENDOR.txt").read_text()
    entries = dict(re.findall(r"^(\S+\.\w+)\n.*\n  sha256 ([0-9a-f]{64})$", note, re.MULTILINE))
    here = {path.name for path in (STATIC / "vendor").iterdir()} - {"VENDOR.txt"}
    assert set(entries) == here
    for name, digest in entries.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest


def test_every_icon_that_a_template_names_is_drawn() -> None:
    drawn = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    templates = "\n".join(path.read_text() for path in (ROOT / "templates").rglob("*.html"))
    named = set(re.findall(r"{% icon \"([^\"]+)\"", templates))
    assert named
    assert named <= drawn


def test_no_template_holds_inline_code_or_style() -> None:
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=|hx-on|<script(?! src=)", text), path
        assert "|safe" not in text, path
        assert "autoescape off" not in text, path


def test_no_template_names_a_class_that_our_part_of_bootstrap_leaves_out() -> None:
    left_out = set(bootstrap.LEFT_OUT.read_text(encoding="utf-8").split())
    kept = bootstrap.every_class(bootstrap.KEPT.read_text(encoding="utf-8"))
    assert {"btn", "form-control", "visually-hidden"} <= kept
    assert not kept & left_out
    missing = bootstrap.written() & left_out
    assert not missing, f"make our part anew (tests/support/bootstrap.py): {sorted(missing)}"
