-- The parallel calls of one turn in one statement and one commit, answered in the order asked. Each
-- is answered as if it had been asked alone, after those before it. The locks of all of them are
-- taken first and in one order, so that two batches that overlap never wait for each other in a
-- circle.
create function ledger_claim_batch_v1(p_workspace bigint, p_asked jsonb) returns setof ledger_answer
language plpgsql as $$
declare
  asked record;
begin
  -- One of them may be granted, and a grant waits for the disk whatever stands before it.
  perform pg_current_xact_id();
  perform ledger_guard_v1(variadic array(
    select unnest(array[x.scope, x.repeat, x.business])
    from jsonb_to_recordset(p_asked) as x (scope bytea, repeat bytea, business bytea)));
  for asked in
    select * from rows from (jsonb_to_recordset(p_asked) as (
      tool bigint, tool_version int, class effects_effect_class, key text, scope bytea, turn bytea,
      local bytea, call bytea, caller bytea, repeat bytea, business bytea, arguments_digest bytea,
      arguments text, conversation text, turn_index int, "position" int, ordinal int,
      response_id text, call_id text, weak boolean, nonce bytea, repeat_of uuid, data jsonb
    )) with ordinality order by ordinality
  loop
    return next ledger_claim_v1(
      p_workspace, asked.tool, asked.tool_version, asked.class, asked.key, asked.scope, asked.turn,
      asked.local, asked.call, asked.caller, asked.repeat, asked.business, asked.arguments_digest,
      asked.arguments, asked.conversation, asked.turn_index, asked."position", asked.ordinal,
      asked.response_id, asked.call_id, asked.weak, asked.nonce, asked.repeat_of, asked.data);
  end loop;
end $$;
