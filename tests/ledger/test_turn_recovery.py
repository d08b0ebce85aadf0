"""Recovery on the timeline: where a recorded response ended, and what is safe after it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from effects.core.messages import ClaimRequest, Complete, Fail, Unknown
from effects.core.recovery_words import OBSERVATIONS, REASONS
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Role, Terminal
from effects.models import Tool
from ledger import append, claiming, queries
from ledger.models import Call, Claim, Stream
from ledger.turn_recovery import UNCLAIMED, known_of, recovery_of
from ledger.turns import TERMINAL_WORDS, turn
from tests.ledger.mirror import STRONG_ID, event, tell
from tests.support import desk

C, T = "conversation-1", 3


def streamed(workspace, *calls: dict[str, Any], name: str = "s1", **said: Any) -> None:
    """A response of the turn, as its reader recorded it."""
    record = {"stream": name, "conversation": C, "turn_index": T, "calls": list(calls), **said}
    answers = tell(workspace.pk, event(f"{name}-record", "stream.recorded", **record), streams=True)
    assert [str(answer.word) for answer in answers] == ["applied"]


def announced(*, complete: bool = True, **said: Any) -> dict[str, Any]:
    usual = {"position": 0, "tool": "refund", "call_id": STRONG_ID, "complete": complete}
    return usual | said


def claimed(workspace, ends: str | None = None) -> None:
    """The claim that the agent made for the call, and how its attempt ended."""
    request = ClaimRequest(
        tool="refund",
        effect_class=EffectClass.KEYED_WRITE,
        arguments='{"charge": "ch_1"}',
        conversation=C,
        turn_index=T,
        call_id=STRONG_ID,
    )
    claim_id = claiming.claim(workspace.pk, request).claim_id
    assert claim_id is not None
    if ends == "completed":
        append.report(workspace.pk, claim_id, Outcome.COMPLETED, Complete(fence=1, result="1"))
    elif ends == "unknown":
        append.report(workspace.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1))
    elif ends == "not_sent":
        report = Fail(fence=1, proof=Outcome.NOT_SENT)
        append.report(workspace.pk, claim_id, Outcome.NOT_SENT, report)


def recovered(workspace, stream: int = 0):
    found = turn(workspace.pk, C, T, now=queries.clock()).streams[stream].recovery
    decision = found.decision
    return found.where, None if decision is None else (decision["step"], decision["mechanism"])


PRESERVED = "preserve_partial_result_and_report"
RECONCILE = ("reconcile_tool_operation", "none")


@pytest.mark.parametrize(
    ("terminal", "calls", "ends", "where", "decision"),
    [
        pytest.param("cut", [], None, "nothing_announced", (PRESERVED, "none"), id="no call"),
        pytest.param(
            "cut",
            [announced(complete=False)],
            None,
            "arguments_streaming",
            (PRESERVED, "continue"),
            id="cut inside the arguments",
        ),
        pytest.param("cut", [announced()], "none", "outstanding", RECONCILE, id="outstanding"),
        pytest.param("cut", [announced()], "unknown", "outstanding", RECONCILE, id="lost answer"),
        pytest.param(
            "cut", [announced()], "completed", "returned", (PRESERVED, "continue"), id="returned"
        ),
        pytest.param(
            "cut",
            [announced()],
            "not_sent",
            "arguments_streaming",
            (PRESERVED, "continue"),
            id="proven not to have happened",
        ),
        pytest.param("success", [announced()], "completed", "ended", None, id="ended"),
        pytest.param(
            "error_event", [], None, "nothing_announced", (PRESERVED, "continue"), id="an error"
        ),
        pytest.param(
            "incomplete",
            [announced(complete=False)],
            None,
            "arguments_streaming",
            (PRESERVED, "continue"),
            id="a limit",
        ),
        pytest.param(
            "cancelled", [], None, "nothing_announced", (PRESERVED, "none"), id="cancelled"
        ),
        pytest.param(None, [], None, "nothing_announced", (PRESERVED, "none"), id="no end yet"),
    ],
)
@pytest.mark.usefixtures("refund")
def test_a_response_says_where_it_ended_and_what_is_safe(
    shop, terminal, calls, ends, where, decision
):
    if ends is not None:
        claimed(shop, ends)
    streamed(shop, *calls, **({} if terminal is None else {"terminal": terminal}))
    assert recovered(shop) == (where, decision)


def test_a_whole_call_without_a_claim_is_not_called_not_run(shop, refund):
    streamed(shop, announced(), terminal="cut")
    assert recovered(shop) == ("outstanding", RECONCILE)
    (stream,) = turn(shop.pk, C, T, now=queries.clock()).streams
    assert stream.recovery.tools == UNCLAIMED


def test_a_read_without_a_claim_is_no_effect(shop, lookup):
    streamed(shop, announced(tool="lookup"), terminal="cut")
    assert recovered(shop) == ("arguments_streaming", (PRESERVED, "continue"))


def test_a_call_of_the_turn_counts_although_another_response_announced_it(shop, refund):
    streamed(shop, terminal="cut")
    streamed(shop, announced(), name="s2", terminal="cut")
    assert recovered(shop) == recovered(shop, 1) == ("outstanding", RECONCILE)

    claimed(shop, "completed")
    assert recovered(shop) == ("returned", (PRESERVED, "none"))
    assert recovered(shop, 1) == ("returned", (PRESERVED, "continue"))


def test_a_claim_counts_although_no_response_announced_its_call(shop, refund):
    claimed(shop, "unknown")
    streamed(shop, terminal="cut")
    assert recovered(shop) == ("outstanding", RECONCILE)


def test_a_claim_whose_lease_is_over_is_unknown_here_too(shop, refund, pass_time):
    claimed(shop, "none")
    streamed(shop, announced(), terminal="cut")
    pass_time(seconds=refund.lease_seconds + 1)
    assert recovered(shop) == ("outstanding", RECONCILE)


def test_a_response_that_was_cut_needs_nothing_once_another_one_of_the_turn_ended_well(
    shop, refund
):
    streamed(shop, announced(complete=False), terminal="cut")
    claimed(shop, "completed")
    streamed(shop, announced(), name="s2", terminal="success")
    assert recovered(shop)[1] == ("settle_remaining_tools_and_delivery", "none")
    first, second = turn(shop.pk, C, T, now=queries.clock()).streams
    assert first.recovery.elsewhere
    assert second.recovery.decision is None


def judged(*claims: tuple[Claim, ClaimState], calls: tuple[Call, ...] = ()):
    """A cut response beside claims that nobody stored."""
    stream = Stream(pk=1, terminal="cut")
    known = known_of(claims, [stream], calls, frozenset())
    return recovery_of(stream, calls, known, now=datetime.now(UTC))


def a_claim(position: int = 0) -> Claim:
    tool = Tool(name="refund")
    return Claim(
        position=position, tool=tool, effect_class="keyed_write", fence=1, budget=3, call_id="x"
    )


@pytest.mark.parametrize("state", ClaimState)
def test_only_a_settled_claim_leaves_the_turn_free(state):
    found = judged((a_claim(), state))
    free = state in {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED}
    assert (found.decision is not None and found.decision["step"] == PRESERVED) is free
    assert (found.where == "outstanding") is not free


def test_more_calls_than_a_decision_takes_keep_the_unknown_ones():
    settled = [(a_claim(place), ClaimState.COMPLETED) for place in range(256)]
    loose = Call(pk=7, stream_id=1, position=300, tool="refund", call_id="y", complete=True)
    found = judged(*settled, calls=(loose,))
    assert found.decision is not None
    assert found.decision["step"] == RECONCILE[0]
    assert len(found.decision["calls"]) == 256


def test_programs_get_the_decision_and_people_its_words(client, agent, shop, refund):
    streamed(shop, announced(complete=False), terminal="cut", error="reset <b>by peer</b>")
    told = agent.get(f"turns/{C}/{T}").json["streams"][0]
    assert told["end"] == TERMINAL_WORDS[Terminal.CUT]
    decision = told["recovery"]["decision"]
    assert decision["reason"] == "interrupted"
    assert decision["exclude"] == ["tool_use", "thinking"]
    assert decision["calls"] == [{"position": 0, "tool": "refund", "advice": "not_run"}]
    assert "not_resumed" not in decision, "the record does not know the endpoint"

    client.force_login(desk.a_person(shop, Role.SUPPORT))
    page = client.get(f"/turns/{C}/{T}").content.decode()
    assert "the connection ended without a last event" in page
    assert ">cut<" not in page
    for words in (
        REASONS[decision["reason"]].replace("'", "&#x27;"),
        *(OBSERVATIONS[seen].says.replace("'", "&#x27;") for seen in decision["observations"]),
    ):
        assert words in page
    assert "<b>by peer" not in page


def test_a_response_without_an_end_is_not_called_interrupted_outright(client, shop):
    streamed(shop)
    client.force_login(desk.a_person(shop, Role.SUPPORT))
    page = client.get(f"/turns/{C}/{T}").content.decode()
    assert "nobody saw an end" in page
    assert "if nothing more comes" in page


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_sender_whose_clock_is_wrong_costs_nobody_the_page(client, shop, refund, moment, zone):
    streamed(shop, announced(), terminal="cut", opened_at=moment, closed_at=moment)
    client.force_login(desk.a_person(shop, Role.SUPPORT))
    session = client.session
    session.update({"times": "local", "zone": zone})
    session.save()
    assert client.get(f"/turns/{C}/{T}").status_code == 200
