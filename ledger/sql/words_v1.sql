-- The closed lists of the record (effects/core/vocabulary.py), as PostgreSQL knows them.
create type ledger_claim_state as enum
  ('in_flight', 'unknown', 'completed', 'not_executed', 'released', 'conflicted', 'closed');
create type ledger_event_kind as enum
  ('granted', 'started', 'sent', 'reported', 'lapsed', 'sighting', 'decision_held', 'hold_extended', 'decision_withdrawn',
   'decision_cancelled', 'decided', 'release_lapsed', 'absence_lapsed', 'noted');
-- An outcome, a sighting or a verdict, by the kind of the event that carries it.
create type ledger_event_word as enum
  ('completed', 'not_sent', 'refused', 'refused_stored', 'unknown',
   'found', 'found_many', 'found_different', 'pending', 'absent', 'lookup_failed', 'misconfigured',
   'rate_limited', 'unmapped',
   'happened', 'not_happened', 'release_same', 'release_new', 'lost', 'close', 'settle', 'reopen');
create type ledger_verdict as enum
  ('happened', 'not_happened', 'release_same', 'release_new', 'lost', 'close', 'settle', 'reopen',
   'allow', 'withdraw');
create type ledger_answer_code as enum
  ('granted', 'granted_again', 'replayed', 'in_flight', 'unknown', 'conflicted', 'closed',
   'attempts_exhausted', 'held', 'already_done', 'reissued_differently', 'mismatch',
   'identities_disagree');
