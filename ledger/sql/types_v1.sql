-- What the functions hand to each other. An event as far as the fold reads it is a fact; sightings
-- that may not settle anything are not loaded as facts at all.
create type ledger_fact as (
  seq int, kind ledger_event_kind, word ledger_event_word, fence int, generation smallint,
  object text, objects text[], replayed boolean, conditional boolean
);

create type ledger_folded as (
  state ledger_claim_state, conditional boolean, fresh_key boolean, open_truth boolean, effects text[]
);

-- One thing that the clock alone did.
create type ledger_step as (at timestamptz, fact ledger_fact, decision_id bigint);

-- Why nothing is granted, and which flags a grant would carry. `twins` get the flag as well.
create type ledger_stop as (code ledger_answer_code, blocker uuid, flags text[], twins uuid[]);

create type ledger_answer as (
  code ledger_answer_code, claim_id uuid, blocker uuid, state ledger_claim_state,
  effect_class effects_effect_class, reason text, fence int, generation int, key text,
  send_within interval, lease_until timestamptz, safe_retry_until timestamptz,
  retry_after interval, decision_pending boolean, flags text[], object text, result text,
  result_stored boolean, rules_changed boolean
);
