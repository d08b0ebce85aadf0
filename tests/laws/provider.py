"""A provider in memory, keyed or not: what it did is the truth that the ledger is held against."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID


class Reply(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # stored under the key, if there is one
    AT_THE_GATE = "at the gate"  # a rate limit: nothing was looked at, nothing is stored
    ERROR_500 = "error 500"  # stored as well, and says nothing


@dataclass(frozen=True, slots=True)
class Answer:
    reply: Reply
    object: str | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    object: str
    claim_id: UUID
    story: str


@dataclass
class Provider:
    window: timedelta | None
    random: random.Random
    effects: list[Effect] = field(default_factory=list)
    stored: dict[str, tuple[datetime, Answer]] = field(default_factory=dict)

    def receive(self, key: str | None, claim_id: UUID, story: str, now: datetime) -> Answer:
        if key is not None and self.window is not None and key in self.stored:
            first_seen, answer = self.stored[key]
            if now < first_seen + self.window:
                return Answer(answer.reply, answer.object, replayed=True)
        chance = self.random.random()
        if chance < 0.08:
            return Answer(Reply.AT_THE_GATE)
        answer = self._execute(chance, claim_id, story)
        if key is not None:
            self.stored[key] = (now, answer)
        return answer

    def _execute(self, chance: float, claim_id: UUID, story: str) -> Answer:
        if chance < 0.22:
            return Answer(Reply.REFUSED)
        if chance < 0.28:
            return Answer(Reply.ERROR_500)
        effect = Effect(f"pi_{len(self.effects) + 1}", claim_id, story)
        self.effects.append(effect)
        if chance < 0.36:
            return Answer(Reply.ERROR_500, effect.object)  # did it, and answered 500
        return Answer(Reply.DONE, effect.object)

    def objects_of(self, claim_id: UUID) -> tuple[str, ...]:
        return tuple(effect.object for effect in self.effects if effect.claim_id == claim_id)
