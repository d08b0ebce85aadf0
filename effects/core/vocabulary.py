"""The words of the product, each a closed list: the same in code, API, database and pages."""

from __future__ import annotations

from enum import StrEnum


class EffectClass(StrEnum):
    """What a tool may do to the world, from harmless to dangerous."""

    READ = "read"
    KEYED_WRITE = "keyed_write"
    UNKEYED_WRITE = "unkeyed_write"

    @property
    def severity(self) -> int:
        return list(EffectClass).index(self)


def stricter(declared: EffectClass, registered: EffectClass) -> EffectClass:
    """The class in force: code and registry may differ, and the stricter one wins."""
    return max(declared, registered, key=lambda effect_class: effect_class.severity)


class ClaimState(StrEnum):
    IN_FLIGHT = "in_flight"
    UNKNOWN = "unknown"
    COMPLETED = "completed"
    NOT_EXECUTED = "not_executed"
    RELEASED = "released"
    CONFLICTED = "conflicted"
    CLOSED = "closed"


class EventKind(StrEnum):
    """What was recorded: facts (`reported`, `sighting`), and acts of the ledger or a person."""

    GRANTED = "granted"  # an attempt got the lease
    STARTED = "started"  # a ledger kept elsewhere named an attempt that is recorded already
    SENT = "sent"  # a hint that dates the send; its absence proves nothing
    REPORTED = "reported"  # an attempt said how it ended
    LAPSED = "lapsed"  # a lease ran out
    SIGHTING = "sighting"  # a provider answered a look-up
    DECISION_HELD = "decision_held"  # a person decided; it takes effect a minute later
    HOLD_EXTENDED = "hold_extended"  # somebody gave it more than that minute
    DECISION_WITHDRAWN = "decision_withdrawn"  # the person took it back in that minute
    DECISION_CANCELLED = "decision_cancelled"  # a new fact arrived in that minute
    DECIDED = "decided"  # the decision took effect
    RELEASE_LAPSED = "release_lapsed"  # nobody took the released attempt in time
    ABSENCE_LAPSED = "absence_lapsed"  # a conditional absence outlived the window
    NOTED = "noted"  # a person wrote a note: evidence of source "person"


class Outcome(StrEnum):
    """What an attempt's own report proves."""

    COMPLETED = "completed"
    NOT_SENT = "not_sent"
    REFUSED = "refused"  # refused at the gate: the key is not burnt
    REFUSED_STORED = "refused_stored"  # the provider stored the refusal under this key
    UNKNOWN = "unknown"


class SightingWord(StrEnum):
    """What one look-up saw. A sighting is no verdict: `reconcile.judge` says what it means."""

    FOUND = "found"
    FOUND_MANY = "found_many"
    FOUND_DIFFERENT = "found_different"
    PENDING = "pending"
    ABSENT = "absent"
    LOOKUP_FAILED = "lookup_failed"
    MISCONFIGURED = "misconfigured"
    RATE_LIMITED = "rate_limited"
    UNMAPPED = "unmapped"


class Verdict(StrEnum):
    """What a person or a named rule decided."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    RELEASE_SAME = "release_same"
    RELEASE_NEW = "release_new"
    LOST = "lost"
    CLOSE = "close"
    SETTLE = "settle"
    REOPEN = "reopen"
    ALLOW = "allow"  # a held request may run beside its blocker
    WITHDRAW = "withdraw"  # takes back a decision that is still held


class AnswerCode(StrEnum):
    """What a claim request is told. Only the first two permit a send."""

    GRANTED = "granted"
    GRANTED_AGAIN = "granted_again"
    REPLAYED = "replayed"
    IN_FLIGHT = "in_flight"
    UNKNOWN = "unknown"
    CONFLICTED = "conflicted"
    CLOSED = "closed"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    HELD = "held"
    ALREADY_DONE = "already_done"
    REISSUED_DIFFERENTLY = "reissued_differently"
    MISMATCH = "mismatch"
    IDENTITIES_DISAGREE = "identities_disagree"


class KeyWindow(StrEnum):
    """Until when a provider is sure to know a claim's key. Unknown counts as closed: nobody may
    repeat the call with it and rely on that."""

    UNTIL = "until"  # the answer's own safe_retry_until
    UNKNOWN = "unknown"  # not published, or nobody said that a key was sent
    NO_KEY = "no_key"


class Flag(StrEnum):
    WEAK_TOOL_CALL_ID = "weak_tool_call_id"
    IDENTICAL_IN_TURN = "identical_in_turn"
    SAME_AS_EARLIER = "same_as_earlier"
    REPEAT_OF = "repeat_of"
    DUPLICATE_TOOL_CALL_ID = "duplicate_tool_call_id"
    MIRRORED = "mirrored"  # a ledger kept elsewhere told us of it; we granted none of it
    ARGUMENTS_UNREADABLE = "arguments_unreadable"  # kept as bytes; no repeat can be recognised


class Reason(StrEnum):
    """Why a claim is where it is, when the state alone does not say it."""

    TOLD_OTHERWISE = "told_otherwise"  # the agent was told something that late truth contradicts
    RELEASE_LAPSED = "release_lapsed"
    ABSENCE_LAPSED = "absence_lapsed"
    LEASE_OVER = "lease_over"
    # Told to agents, never stored: the key's window closed while nobody knew and nobody decided.
    EXPIRED_UNANSWERED = "expired_unanswered"


class Terminal(StrEnum):
    """How a model's response ended, as far as anybody saw. Only the first is an end that the
    provider itself declared as normal; the end of a connection proves nothing."""

    SUCCESS = "success"  # the provider's own last event was seen
    INCOMPLETE = "incomplete"  # the provider said that a limit ended it
    ERROR_EVENT = "error_event"  # the provider sent an error inside the stream
    CANCELLED = "cancelled"  # the reader stopped reading
    CUT = "cut"  # the connection ended without a last event


class ItemState(StrEnum):
    """What became of one item that was sent to the ledger by a ledger kept elsewhere."""

    RECEIVED = "received"  # kept, and not looked at yet
    APPLIED = "applied"  # it is in the record
    RECORDED = "recorded"  # kept; there is nothing that it would change
    PARKED = "parked"  # kept; it waits for what it speaks of
    FAILED = "failed"  # kept; applying it failed and is tried again
    CONFLICT = "conflict"  # kept; its id came before with other content, which stands
    UNREADABLE = "unreadable"  # kept as bytes; its sender must correct it


class Role(StrEnum):
    VIEWER = "viewer"
    SUPPORT = "support"
    LEAD = "lead"
    ENGINEER = "engineer"
    ADMIN = "admin"


class TokenScope(StrEnum):
    CLAIM = "claim"
    INGEST = "ingest"
    READ = "read"
