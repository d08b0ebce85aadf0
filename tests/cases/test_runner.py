"""The runner judges rightly in both directions, also what is new to it, and survives any file."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.cases import bank
from tests.cases.at_hand import FOLDER, the_case
from tests.cases.judge import judge, line
from tests.support.stack import ROOT


def written(case_id: str) -> dict[str, Any]:
    """A case of this folder as its file says it, to be changed."""
    case = the_case(case_id)
    return deepcopy(
        {"id": case_id, "kind": case.kind, "input": case.input, "expected": case.expected}
    )


def verdict_of(said: dict[str, Any]) -> str:
    """Empty where the case passes, else its line."""
    verdict = judge(bank.understand(said))
    return "" if verdict.passed else line(verdict)


def event(kind: str, number: int, **more: Any) -> str:
    said: dict[str, Any] = {
        "type": f"response.{kind}",
        "sequence_number": number,
        "output_index": 0,
        **more,
    }
    return f"event: response.{kind}\ndata: {json.dumps(said)}\n\n"


ITEM: dict[str, Any] = {"type": "function_call", "id": "fc", "call_id": "call_x", "name": "pay"}
NUMBERED = [
    event("created", 0, response={"id": "r"}),
    event("output_item.added", 1, item=ITEM),
    event("function_call_arguments.delta", 2, delta='{"a":'),
    event("function_call_arguments.delta", 3, delta="1}"),
    event("output_item.done", 4, item=ITEM | {"arguments": '{"a":1}', "status": "completed"}),
    event("completed", 5, response={"id": "r"}),
]


def resumed(first: int, cut: int, then: int) -> dict[str, Any]:
    """One response over two connections: the first dies inside an event, the second goes on."""
    segments = [
        {"sse": "".join(NUMBERED[:first]) + NUMBERED[first][:cut], "eof": "reset"},
        {"sse": "".join(NUMBERED[then:]), "eof": "clean", "starting_after": then - 1},
    ]
    call: dict[str, Any] = {"ordinal": 0, "name": "pay", "id": "call_x", "args_state": "complete"}
    stream = {"terminal": "success", "cursor": 5, "gaps": [], "calls": [call | {"args": {"a": 1}}]}
    given = {"protocol": "openai_responses", "segments": segments}
    return {"id": "R", "kind": "stream", "input": given, "expected": {"stream": stream}}


def marked_again(said: dict[str, Any]) -> dict[str, Any]:
    """The second connection begins with a byte order mark, like every connection of its server."""
    second = said["input"]["segments"][1]
    second["sse"] = "\N{BYTE ORDER MARK}" + second["sse"].partition("\n")[2]
    return said


def rechunked(case_id: str) -> dict[str, Any]:
    """The same response in chunks of seventeen bytes and nothing else."""
    said = written(case_id)
    body = said["input"].pop("sse").encode()
    pieces = [body[at : at + 17] for at in range(0, len(body), 17)]
    said["input"]["sse_chunks_b64"] = [base64.b64encode(one).decode() for one in pieces]
    return said


def recipe(protocol: str) -> dict[str, Any]:
    said: dict[str, Any] = {
        "protocol": protocol,
        "tool": "quote",
        "args_prefix": '{"p":"',
        "repeat": "x",
    }
    said |= {"times": 9000, "args_suffix": '"}', "terminal": "success"}
    call = {"name": "quote", "id": "*", "args_state": "complete", "dispatchable": True}
    stream = {"terminal": "success", "calls": [call]}
    given = {"stream_recipe": said}
    return {"id": "C", "kind": "stream", "input": given, "expected": {"stream": stream}}


CLAIM = {
    "event_id": "e1",
    "type": "claim",
    "occurred_at": "2026-03-02T10:00:00Z",
    "conversation_id": "c",
    "turn_index": 1,
    "ordinal": 0,
    "tool": "pay",
    "tool_class": "unkeyed_write",
    "args": {"c": 1},
}


def of(kind: str, minute: int, **more: Any) -> dict[str, Any]:
    at = f"2026-03-02T10:{minute:02}:00Z"
    return {"event_id": f"{kind}-{minute}", "type": kind, "occurred_at": at, "ref": "e1", **more}


def history(events: list[dict[str, Any]], **expected: Any) -> dict[str, Any]:
    return {"id": "H", "kind": "ledger", "input": {"events": events}, "expected": expected}


RELEASED = [
    CLAIM,
    of("attempt", 0, attempt_id="a1", fence=1),
    of("release", 10, by="operator:ana"),
    of("attempt", 11, attempt_id="a2", fence=2),
    of("complete", 12, attempt_id="a2", fence=2, result={"id": "p2"}),
    of("complete", 13, attempt_id="a1", fence=1, result={"id": "p1"}),
]
KEYED = {"event_id": "e1", "type": "claim", "tool": "pay", "key": "k", "args": {"x": 1}}
BEATING = [
    CLAIM,
    of("attempt", 0, attempt_id="a1"),
    *(of("heartbeat", minute, attempt_id="a1") for minute in range(1, 5)),
]
BEFORE_ITS_CLAIM = [
    of("complete", 1, attempt_id="a1", result={"id": "p"}),
    CLAIM,
    CLAIM,
    CLAIM | {"event_id": "e9"},
]


def bodies(*pairs: tuple[str, str]) -> dict[str, Any]:
    given = {"raw_bodies": [f'{{"events":[{body}]}}' for body, _ in pairs]}
    responses = {"responses": [said for _, said in pairs]}
    return {"id": "B", "kind": "ingest", "input": given, "expected": responses}


NUL_CLAIM = (
    '{"event_id":"n1","type":"claim","conversation_id":"c","turn_index":1,"tool":"t",'
    '"args":{"t":"a\\u0000"}}'
)
NUL_RESULT = (
    '{"event_id":"n2","type":"complete","ref":"r","attempt_id":"a","result":{"t":"\\u0000"}}'
)
PAIRS = [
    {"a": '{"n":9007199254740993}', "b": '{"n":9007199254740992}', "same_key": False},
    {"a": '{"n":1.0}', "b": '{"n":1}', "same_key": True},
]

UNSEEN: dict[str, dict[str, Any]] = {
    "other chunks": rechunked("S07"),
    "resumed with an overlap": resumed(first=3, cut=130, then=2),
    "resumed without one": resumed(first=3, cut=130, then=3),
    "resumed with a mark": marked_again(resumed(first=3, cut=130, then=3)),
    **{f"a recipe for {p}": recipe(p) for p in ("anthropic", "openai_chat", "openai_responses")},
    "large integers": {
        "id": "P", "kind": "canonical", "input": {"args_pairs": PAIRS}, "expected": {}
    },
    "U+0000": bodies(
        (NUL_CLAIM, "422 with the field named"), (NUL_RESULT, "accepted, marker")
    ),
    "a body that is cut": bodies(('{"event_id":"x', "400, kept raw")),
    "a release and a late truth": history(
        RELEASED,
        granted=["e1"],
        allowed_attempts=["a1", "a2"],
        attempts=2,
        operations=1,
        state={"e1": "conflict_two_effects"},
        state_at={
            "2026-03-02T10:01:00Z": {"e1": "in_flight"},
            "2026-03-02T10:09:00Z": {"e1": "outcome_unknown"},
            "2026-03-02T10:12:30Z": {"e1": "completed"},
        },
    ),
    "signs of life": history(BEATING, state={"e1": "in_flight"}),
    "a report before its claim": history(
        BEFORE_ITS_CLAIM,
        granted=["e1"],
        duplicates_of={"e9": "e1"},
        attempts=1,
        state={"e1": "completed"},
        replayed_result={"id": "p"},
    ),
    "an id with other content": history(
        [CLAIM, CLAIM | {"args": {}}], granted=["e1"], rejected={"e1": "conflict"}
    ),
    "two tenants": history(
        [CLAIM, CLAIM | {"event_id": "e2", "tenant": "t2"}], granted=["e1", "e2"], operations=2
    ),
    "a time of nowhere": history(
        [CLAIM | {"occurred_at": "2026-03-02T10:00:00"}], granted=[], rejected={"e1": "no offset"}
    ),
    "keys of the caller": history(
        [
            KEYED,
            KEYED | {"event_id": "e2", "args": {"x": bank.Digits("1.0")}},
            KEYED | {"event_id": "e3", "key": " k "},
            KEYED | {"event_id": "e4", "tenant": "t2"},
            {name: said for name, said in KEYED.items() if name != "key"} | {"event_id": "e5"},
        ],
        granted=["e1", "e4"],
        duplicates_of={"e2": "e1"},
        rejected={"e3": "key_has_outer_space", "e5": "no identity"},
    ),
    "a read": history([CLAIM | {"tool_class": "read"}], granted=["e1"], operations=0),
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("said", UNSEEN.values(), ids=UNSEEN)
def test_a_case_that_nobody_has_seen_is_judged_rightly(said: dict[str, Any]) -> None:
    assert verdict_of(said) == ""


def changed(name: str, *path: str | int, to: Any) -> dict[str, Any]:
    said = deepcopy(UNSEEN[name])
    place: Any = said
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return said


LATE = "a release and a late truth"
WRONG: list[tuple[dict[str, Any], str]] = [
    (changed("other chunks", "expected", "stream", "terminal", to="cut"), "got success"),
    (changed("other chunks", "expected", "stream", "calls", 0, "args", to={}), "A-ONLY"),
    (changed("other chunks", "expected", "stream", "calls", to=[]), "expected 0, got 2"),
    (changed("other chunks", "expected", "stream", "mood", to=1), "stream.mood: is not interp"),
    (changed("other chunks", "input", "colour", to="red"), "input.colour: is not interpreted"),
    (changed("other chunks", "input", "sse", to="data: x"), "holds other bytes than sse"),
    (changed("other chunks", "expected", "also", to=[]), "expected.also: is not interpreted"),
    (changed("resumed with an overlap", "expected", "stream", "repeated_events", to=0), "got 1"),
    (changed("resumed without one", "input", "segments", 1, "sse", to="".join(NUMBERED[5:])),
     "args_state"),
    (changed("large integers", "input", "args_pairs", 0, "same_key", to=True), "got false"),
    (changed("large integers", "input", "args_pairs", 0, "same", to=True), "is not interpreted"),
    (changed("U+0000", "expected", "responses", 0, to="accepted"), "got 422: nul"),
    (changed("U+0000", "expected", "responses", 1, to="accepted unchanged"), "mended nul"),
    (changed("U+0000", "expected", "responses", to=["422"]), "are 1, for 2 bodies"),
    (changed(LATE, "expected", "state", to={"e1": "completed"}), '"conflicted"'),
    (changed(LATE, "expected", "granted", to=[]), 'got ["e1"]'),
    (changed(LATE, "expected", "allowed_attempts", to=["a1"]), '["a1", "a2"]'),
    (changed(LATE, "expected", "operations", to=2), "expected 2, got 1"),
    (changed(LATE, "expected", "state_at", "2026-03-02T10:09:00Z", to={"e1": "in_flight"}),
     '"unknown"'),
    (changed(LATE, "input", "events", 0, "flavour", to="x"), "flavour: is not interpreted"),
    (changed(LATE, "input", "events", 2, "type", to="teleport"), "'teleport' is not interpreted"),
    (changed("signs of life", "input", "now", to="2026-03-02T10:09:00Z"), '"unknown"'),
    (changed("a report before its claim", "expected", "replayed_result", to={}), "replayed_result"),
    (changed("a report before its claim", "expected", "duplicates_of", to={}), '{"e9": "e1"}'),
    (changed("two tenants", "input", "events", 1, "tenant", to="t1"), "expected"),
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("said", "complaint"), WRONG, ids=[str(place) for place in range(len(WRONG))]
)
def test_an_expectation_that_does_not_hold_fails_and_says_what_came(
    said: dict[str, Any], complaint: str
) -> None:
    told = verdict_of(said)
    assert told.startswith(f"FAIL {said['id']}  ")
    assert complaint in told
    assert "\n" not in told


ODD = {
    "cut": (b'{"id":', "no JSON"),
    "a list": (b"[1]", "no JSON object"),
    "no text": (b"\xff\xfe", "no UTF-8"),
    "deep": (b"[" * 200_000, "nested too deep"),
    "twice": (b'{"id":"a","id":"b"}', "stands twice"),
    "no id": (b'{"id":3,"kind":"stream"}', "id is missing"),
    "no kind": (b'{"id":"x","kind":["stream"]}', "kind is missing"),
    "no input": (b'{"id":"x","kind":"stream","input":[]}', "input is missing"),
}


@pytest.mark.parametrize(("content", "says"), ODD.values(), ids=ODD)
def test_a_file_that_holds_no_case_says_so_in_a_sentence(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(bank.Unreadable, match=says):
        bank.read(path)


def test_limits_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank, "FILE_BYTES_MAX", 10)
    path = tmp_path / "x.json"
    path.write_text("{}" + " " * 20)
    with pytest.raises(bank.Unreadable, match="FILE_BYTES_MAX"):
        bank.read(path)
    with pytest.raises(bank.Unreadable, match="no folder"):
        bank.files(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(bank.Unreadable, match=r"no \*\.json"):
        bank.files(tmp_path / "empty")


UNJUDGEABLE: list[dict[str, Any]] = [
    {"kind": "stream", "input": {}, "expected": {}},
    {"kind": "stream", "input": {"protocol": "smtp", "sse": ""}, "expected": {"stream": {}}},
    {"kind": "stream", "input": {"protocol": "anthropic", "sse": 3}, "expected": {"stream": {}}},
    {"kind": "ledger", "input": {"events": [1]}, "expected": {}},
    {"kind": "ledger", "input": {"events": {}}, "expected": {"granted": []}},
    {"kind": "ledger", "input": {"events": [CLAIM]}, "expected": {"state": {"e1": "dancing"}}},
    {"kind": "ledger", "input": {"events": [CLAIM]}, "expected": {"state_at": {"noon": {}}}},
    {"kind": "ledger", "input": {"events": [of("complete", 1)]}, "expected": {"flags": 3}},
    {"kind": "canonical", "input": {"args_pairs": [{"a": 1}]}, "expected": {}},
    {"kind": "ingest", "input": {"raw_bodies": ["{}"]}, "expected": {"response": "perhaps"}},
    {
        "kind": "ingest",
        "input": {"raw_body_recipe": {"repeat": "x", "times": 99_999_999_999}},
        "expected": {"response": "413"},
    },
]


@pytest.mark.django_db
@pytest.mark.parametrize("said", UNJUDGEABLE, ids=[str(place) for place in range(len(UNJUDGEABLE))])
def test_a_case_that_cannot_be_judged_fails_with_the_place(said: dict[str, Any]) -> None:
    told = verdict_of({"id": "x\x07\n", **said})
    assert told.startswith("FAIL x\\x07\\x0a  ")
    assert "could not be judged" not in told, "the reason is named, not only an exception"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One case that passes, one that does not, one that is none, and some that are not run."""
    (right,) = FOLDER.glob("S03_*.json")
    said = json.loads(right.read_text(encoding="utf-8"))
    (tmp_path / "a.json").write_text(json.dumps(said))
    said["expected"]["stream"]["terminal"] = "success"
    (tmp_path / "b.json").write_text(json.dumps(said | {"id": "S99"}))
    (tmp_path / "c.json").write_text("{")
    for name, kind in (("d", "api"), ("e", "infra"), ("f", "ui"), ("g", "no kind of ours")):
        (tmp_path / f"{name}.json").write_text(json.dumps(said | {"id": name, "kind": kind}))
    (tmp_path / "notes.md").write_text("no case")
    return tmp_path


def test_the_command_prints_a_line_for_each_failure_and_the_count_last(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "FAIL c.json  no JSON: Expecting property name enclosed in double quotes (line 1)",
        "FAIL S99  expected.stream.terminal: expected success, got error_event",
        "4 in tests only (api 1, infra 1, no kind of ours 1, ui 1)",
        "1 passed, 2 failed",
    ]
    assert (done.returncode, done.stderr) == (1, "")
