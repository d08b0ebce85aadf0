-- What ledgers kept elsewhere send. Python reads the items (effects/core/events.py); these functions
-- keep and apply them. Fences come in the order of arrival; nothing here grants a send.

create function ledger_item_lock_v1(p_ref bytea) returns void language sql as $$
  select pg_advisory_xact_lock(('x' || encode(substr(p_ref, 1, 8), 'hex'))::bit(64)::bigint)
$$;
