"""A call with fifty thousand attempts, or with megabytes in its arguments, has an ordinary page."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from effects.core.messages import Unknown
from effects.core.vocabulary import EventKind, Outcome, Role, SightingWord
from effects.models import Tool, Workspace
from ledger import append, excerpts
from ledger import queries as record
from ledger.models import Attempt
from reconcile import queries
from reconcile.reading import argument_rows, cut_to_shown, visible
from tests.support import desk

pytestmark = pytest.mark.django_db

FACTS = (
    *("claim_id", "fence", "generation", "granted_at", "sent_at", "ended_at", "outcome", "object"),
    *("replayed", "marker_sent", "granted_data", "data"),
)
PAGE_BYTES_MAX = 300_000
QUERIES_MAX = 30


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


@pytest.fixture
def browser(shop: Workspace) -> Client:
    client = Client()
    client.force_login(desk.a_person(shop, Role.SUPPORT, "ana"))
    return client


# The ledger grants one attempt after the other, by a person's release each time: what fifty
# thousand of them leave in the record is written as it would stand there.
_ATTEMPTS = """
INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, data)
SELECT %(claim_id)s, %(seq)s + 2 * n + k, ledger_clock(),
       (ARRAY['granted', 'reported'])[k + 1]::ledger_event_kind,
       (ARRAY[NULL, 'unknown'])[k + 1]::ledger_event_word, %(fence)s + n + 1, 1,
       jsonb_build_object('error', repeat('x', 200))
  FROM generate_series(0, %(many)s - 1) n, generate_series(0, 1) k
"""
_CLAIM = """
UPDATE ledger_claim SET version = version + 2 * %(many)s, fence = fence + %(many)s,
       budget = fence + %(many)s WHERE id = %(claim_id)s
"""


def tried(charge: Tool, claim_id: UUID, many: int) -> None:
    """So many more attempts that ended without an answer."""
    claim = record.claim(charge.workspace_id, claim_id)
    said: dict[str, Any] = {
        "claim_id": claim_id,
        "seq": claim.version + 1,
        "fence": claim.fence,
        "many": many,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ATTEMPTS, said)
        cursor.execute(_CLAIM, said)


def opened(browser: Client, address: str) -> tuple[Any, int]:
    """The page, and how many queries it took."""
    with CaptureQueriesContext(connection) as asked:
        response = browser.get(address)
    assert response.status_code == 200
    return response, len(asked.captured_queries)


def numbers_of(response: Any) -> list[int]:
    """The attempts that the page shows."""
    return [int(n) for n in re.findall(r'<th scope="row">(\d+)</th>', response.content.decode())]


@pytest.mark.case("U06")
def test_fifty_thousand_attempts_are_paged_and_cost_no_more_than_five_hundred(
    charge: Tool, browser: Client
) -> None:
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.FOUND_DIFFERENT, objects=("pi_7",))
    append.note(charge.workspace_id, claim_id, 1, "Written before all of it.")
    opened(browser, f"/calls/{claim_id}")  # Its card is written once, with the first look.
    tried(charge, claim_id, 499)
    few, few_asked = opened(browser, f"/calls/{claim_id}")
    tried(charge, claim_id, 49_500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ledger_event")
    many, many_asked = opened(browser, f"/calls/{claim_id}")

    assert many_asked == few_asked <= QUERIES_MAX
    assert len(many.content) < PAGE_BYTES_MAX
    assert len(many.content) < 1.05 * len(few.content)
    assert numbers_of(many) == list(range(50_000, 49_980, -1))
    middle, _ = opened(browser, f"/calls/{claim_id}?before=25000")
    assert numbers_of(middle) == list(range(24_999, 24_979, -1))
    first, _ = opened(browser, f"/calls/{claim_id}?before=21")
    assert numbers_of(first) == list(range(20, 0, -1))
    assert "Older attempts" not in first.content.decode()

    # What was learnt and written long ago is still what the decision rests on.
    page = many.content.decode()
    assert 'id="ev3"' in page
    assert "Written before all of it." in page
    assert queries.call(charge.workspace_id, claim_id).situation.evidence[0].objects == ("pi_7",)
    earlier, _ = opened(browser, f"/calls/{claim_id}?history_before=5")
    assert "Evidence 3: found different" in earlier.content.decode()
    paper, paper_asked = opened(browser, f"/calls/{claim_id}/print")
    assert paper_asked <= QUERIES_MAX
    assert "49800 later ones are left out" in paper.content.decode()
    assert plan_of(claim_id, first=24_980) == {"event_later_attempts"}


def test_an_ordinary_call_is_asked_about_once_and_not_table_by_table(
    charge: Tool, browser: Client
) -> None:
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    opened(browser, f"/calls/{claim_id}")
    _, asked = opened(browser, f"/calls/{claim_id}")
    assert asked <= 17


def plan_of(claim_id: UUID, *, first: int) -> set[str]:
    """The indexes by which a page of attempts is read."""
    asked: dict[str, Any] = {"claim_id": claim_id, "first": first, "last": first + 19}
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {excerpts.LATER_ATTEMPTS}", asked)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan
    return set(re.findall(r"Index (?:Only )?Scan (?:using|on) (\w+)", plan))


def test_a_page_of_attempts_says_what_the_view_of_all_attempts_says(charge: Tool) -> None:
    asked: dict[str, Any] = {"conversation": "c", "call_id": "call_0123456789abcdef"}
    charge.attempts_max = 9
    charge.save()
    arguments = json.dumps({"amount": 4200, "currency": "eur"})
    for fence in range(1, 6):
        answer = desk.a_call(charge, arguments=arguments, **asked)
        desk.not_sent(charge, answer)
        late = Unknown(fence=fence, error="Said once more", marker_sent=True)
        append.report(charge.workspace_id, desk.claim_id_of(answer), Outcome.UNKNOWN, late)
    claim_id = desk.claim_id_of(desk.a_call(charge, arguments=arguments, **asked))
    claim = record.claim(charge.workspace_id, claim_id)
    assert claim.fence == 6

    def facts(found: list[Attempt]) -> list[tuple[object, ...]]:
        return [tuple(getattr(one, name) for name in FACTS) for one in found]

    whole = record.attempts(claim)
    assert len(whole) == 6
    for first, last in ((1, 6), (1, 1), (2, 6), (3, 4), (6, 6)):
        assert facts(excerpts.attempts(claim, first=first, last=last)) == facts(
            whole[first - 1 : last]
        )


@pytest.mark.parametrize("read_max", [3, 200])
def test_a_long_record_is_read_as_a_short_one(
    charge: Tool, monkeypatch: pytest.MonkeyPatch, read_max: int
) -> None:
    """The same call by both ways of reading: only how many events are listed differs."""
    claim_id = desk.a_lost_call(charge)
    for word in (SightingWord.ABSENT, SightingWord.FOUND_DIFFERENT, SightingWord.PENDING):
        desk.see(charge, claim_id, word, objects=("pi_1",))
    append.note(charge.workspace_id, claim_id, 1, "A note.")
    usual = queries.call(charge.workspace_id, claim_id)
    monkeypatch.setattr("reconcile.calls.extract.EVENTS_READ_MAX", read_max)
    other = queries.call(charge.workspace_id, claim_id)
    assert len(other.events) == min(read_max, len(usual.events))
    assert queries.screen_hash(other.situation) == queries.screen_hash(usual.situation)
    assert other.fates == usual.fates
    assert [note.seq for note in other.notes] == [note.seq for note in usual.notes]
    assert other.extract.sighting_count == usual.extract.sighting_count == 3


# Large bodies


def stored(charge: Tool, claim_id: UUID, body: bytes) -> None:
    """Arguments of any size as they stand in the record: the ledger itself takes 256 kB."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_claim SET arguments = NULL WHERE id = %s", [claim_id])
        cursor.execute(
            "INSERT INTO ledger_payload (workspace_id, claim_id, seq, name, body, digest, "
            "size_bytes) VALUES (%s, %s, 0, 'arguments', %s, %s, %s)",
            [charge.workspace_id, claim_id, body, hashlib.sha256(body).digest(), len(body)],
        )


@pytest.mark.case("U06")
def test_five_megabytes_are_a_preview_with_size_and_digest_and_a_file(
    charge: Tool, browser: Client
) -> None:
    claim_id = desk.a_lost_call(charge)
    opened(browser, f"/calls/{claim_id}")
    body = json.dumps({"amount": 14900, "text": "<&\u202e" * 873_814}).encode()
    assert len(body) > 5_242_880
    stored(charge, claim_id, body)
    response, asked = opened(browser, f"/calls/{claim_id}")
    page = response.content.decode()
    assert asked <= QUERIES_MAX
    assert len(response.content) < PAGE_BYTES_MAX
    assert "As received, 7.0 MB" in page
    assert hashlib.sha256(body).hexdigest() in page
    assert "The beginning is shown." in page
    kept = browser.get(f"/calls/{claim_id}/bodies/0/arguments")
    assert kept.content == body


@pytest.mark.case("U06")
def test_a_page_stays_small_when_everything_on_it_is_as_large_as_it_may_be(
    charge: Tool, browser: Client
) -> None:
    text = "\"'<&\x01\u202e" * 20_000
    claim_id = desk.a_lost_call(charge)
    stored(charge, claim_id, json.dumps({"k" * 40_000: text, "l": [text] * 2}).encode())
    for _ in range(12):
        desk.see(
            charge,
            claim_id,
            SightingWord.PENDING,
            raw=text.encode()[:60_000],
            data={"why": "w" * 400},
        )
    for number in range(30):
        append.note(charge.workspace_id, claim_id, 1, f"{number}" + "<" * 9000)
    response, _ = opened(browser, f"/calls/{claim_id}")
    assert len(response.content) < PAGE_BYTES_MAX
    page = response.content.decode()
    assert "Show earlier notes" in page
    oldest = [int(n) for n in re.findall(r"\?notes_before=(\d+)", page)]
    earlier, _ = opened(browser, f"/calls/{claim_id}?notes_before={oldest[0]}")
    assert "Newest notes" in earlier.content.decode()


def test_what_is_cut_is_cut_by_what_it_weighs_on_the_page() -> None:
    for text in ("plain" * 50, "<" * 250, "\u202e" * 250, "é" * 250, "\U000e0001" * 250):
        shown = cut_to_shown(text, 500)
        assert text.startswith(shown)
        assert len(visible(shown).encode()) <= 500
    assert cut_to_shown("<<<<", 8) == "<<"


@pytest.mark.parametrize(
    "unseen",
    [
        pytest.param("\u202e", id="a bidirectional override"),
        pytest.param("\u2066", id="an isolate"),
        pytest.param("\u200b", id="a space without width"),
        pytest.param("\u00ad", id="a soft hyphen"),
        pytest.param("\u3164", id="a filler that is a letter"),
        pytest.param("\u2800", id="a pattern without dots"),
        pytest.param("\ufe00", id="a variation selector"),
        pytest.param("\U000e0061", id="a tag character"),
        pytest.param("\ue000", id="a private character"),
        pytest.param("\x7f", id="a control character"),
    ],
)
@pytest.mark.case("U05")
def test_what_is_not_seen_is_written_out(unseen: str) -> None:
    assert visible(f"a{unseen}b") == f"a⟦U+{ord(unseen):04X}⟧b"


def test_more_arguments_than_a_page_lists_are_said_to_be_there() -> None:
    rows = argument_rows(json.dumps({f"name{number}": number for number in range(300)}))
    assert rows is not None
    assert rows.more
    assert len(rows.rows) == 200


def test_how_many_answers_there_are_is_counted_in_the_whole_record(charge: Tool) -> None:
    claim_id = desk.a_lost_call(charge)
    for _ in range(3):
        desk.see(charge, claim_id, SightingWord.PENDING)
    claim = record.claim(charge.workspace_id, claim_id)
    assert excerpts.how_many(claim, EventKind.SIGHTING) == 3
    newest = excerpts.newest(claim, [EventKind.SIGHTING], limit=2, before=5)
    assert [event.seq for event in newest] == [4, 3]
