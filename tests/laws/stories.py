"""Ways in which one payment is asked for: redelivered, re-issued, reworded, repeated."""

from __future__ import annotations

from dataclasses import dataclass

PAY_100 = '{"amount":100,"order":"8841"}'
PAY_101 = '{"amount":101,"order":"8841"}'
PAY_OTHER_ORDER = '{"amount":100,"order":"9000"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One way of asking. `intended`: it is a payment of its own, not the first one once more."""

    name: str
    turn_index: int | None = 1
    position: int = 0
    ordinal: int = 0
    arguments: str = PAY_100
    response_id: str | None = "resp_1"
    call_id: str | None = "call_aaaaaaaaaaaaaaaa"
    caller_key: str | None = None
    intended: bool = False

    def asks_for_the_same(self, other: Story) -> bool:
        """Whether nobody could mean two payments: equal arguments, or one place in one turn.

        A turn that is reworded and, elsewhere, the first wording repeated have nothing in common
        that a ledger could see.
        """
        if self.intended or other.intended:
            return False
        place = (self.turn_index, self.position)
        return self.arguments == other.arguments or place == (other.turn_index, other.position)


FIRST = Story(name="first")
REDELIVERED = Story(name="redelivered")
REISSUED = Story(name="reissued", response_id="resp_2", call_id="call_bbbbbbbbbbbbbbbb")
ALWAYS = (FIRST, REDELIVERED, REISSUED)
SOMETIMES = (
    Story(name="moved", position=1, response_id="resp_2", call_id="call_cccccccccccccccc"),
    Story(
        name="reworded",
        arguments=PAY_101,
        response_id="resp_3",
        call_id="call_dddddddddddddddd",
    ),
    Story(name="repeated", turn_index=2, response_id="resp_4", call_id="call_eeeeeeeeeeeeeeee"),
    Story(
        name="repeated late", turn_index=3, response_id="resp_5", call_id="call_ffffffffffffffff"
    ),
    Story(name="renumbered", turn_index=5),
    Story(name="weak id", turn_index=4, response_id="resp_6", call_id="call_0"),
    Story(name="no ids", turn_index=6, response_id=None, call_id=None),
    Story(
        name="parallel",
        position=2,
        ordinal=1,
        call_id="call_gggggggggggggggg",
        intended=True,
    ),
    Story(
        name="caller",
        turn_index=None,
        response_id=None,
        call_id=None,
        caller_key="order-9000",
        arguments=PAY_OTHER_ORDER,
        intended=True,
    ),
)
