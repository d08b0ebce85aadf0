-- A claim by an agent that speaks to PostgreSQL itself. It sends no digest, but the parts that its
-- digests are made of, and here the workspace of its role is put in front of them. Digests of another
-- workspace can so be neither found nor taken. effects/core/identity.py states the recipes.

create function ledger_part_v1(p text) returns bytea language sql immutable parallel safe as $$
  select int4send(octet_length(p)) || '\x73'::bytea || convert_to(p, 'UTF8')
$$;

-- Null where a part is: then the call has no such identity.
create function ledger_digest_v1(p_recipe text, p_workspace bytea, p_parts bytea) returns bytea
language sql immutable parallel safe as $$
  select substr(sha256(ledger_part_v1(p_recipe) || p_workspace || p_parts), 1, 16)
$$;

-- How the request reached the worker: shown, never folded.
create function ledger_agent_delivery_v1(
  p_worker text, p_delivery_count int, p_retry_count int, p_agent text, p_checkpoint text,
  p_user_spoke boolean, p_response_id text, p_call_id text
) returns jsonb language sql immutable as $$
  select case when num_nonnulls(p_worker, p_delivery_count, p_retry_count, p_agent, p_checkpoint,
      p_user_spoke, p_response_id, p_call_id) > 0
    then jsonb_strip_nulls(jsonb_build_object('worker', p_worker, 'delivery_count', p_delivery_count,
      'retry_count', p_retry_count, 'agent', p_agent, 'checkpoint', p_checkpoint,
      'user_spoke', p_user_spoke, 'response_id', p_response_id, 'call_id', p_call_id)) end
$$;

create function ledger_agent_malformed_v1() returns void language plpgsql as $$
begin
  raise exception 'What was said to the ledger is not well formed, or exceeds a limit.'
    using errcode = 'invalid_parameter_value';
end $$;

-- `what`, `spoken`, `turn_part`, `compared` and so on are parts of digests as the client encodes them;
-- everything else is what the call says. The limits are those of the API; the client checks them
-- before, with better words, and the columns' types keep the rest.
create function ledger_agent_claim_v1(
  p_tool text, p_tool_version int, p_class effects_effect_class, p_arguments text,
  p_conversation text, p_turn_index int, p_position int, p_ordinal int, p_response_id text,
  p_call_id text, p_weak boolean, p_nonce bytea, p_repeat_of uuid, p_worker text,
  p_delivery_count int, p_retry_count int, p_agent text, p_checkpoint text, p_user_spoke boolean,
  p_what bytea, p_compared bytea, p_spoken bytea, p_turn_part bytea, p_ordinal_part bytea,
  p_call_part bytea, p_local_parts bytea, p_caller_part bytea, p_business_parts bytea,
  p_redaction int
) returns ledger_answer language plpgsql security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  t record;
  local bytea;
  outdated ledger_answer;
begin
  -- Everything that is asked before the claim, and the most common answer of all: the operation is
  -- settled. ledger_claim_v1 has the same condition.
  select r.workspace_id, r.part, r.redaction_version, m.claim_id as confirmed, tool.id as tool,
      d.turn, d.call, d.caller, d.arguments, c.id, c.effect_class, c.reason, c.fence, c.generation, c.lease_until,
      c.window_until - make_interval(secs => tool.margin_seconds) as safe_until, c.object, c.result,
      c.result_stored,
      c.state = 'completed' and c.pending_at is null and c.arguments_digest = d.arguments
        and (d.call is null or c.call = d.call) and (d.caller is null or c.caller = d.caller)
        and (c.result is not null or c.result_stored is not true) and c.tool_id = tool.id
        and tool.version = p_tool_version and (tool.effect_class <> 'read' or p_class <> 'read')
        as replays
    into t
    from ledger_agentrole r
      cross join lateral (
        select ledger_digest_v1('turn.v1', r.part,
            p_spoken || p_turn_part || p_what || p_ordinal_part || p_compared) as turn,
          ledger_digest_v1('call.v1', r.part, p_spoken || p_call_part) as call,
          ledger_digest_v1('caller.v1', r.part, p_caller_part) as caller,
          sha256(ledger_part_v1('args.v1') || p_what || p_compared) as arguments
        offset 0) d
      left join ledger_watermark m on m.name = 'confirmed'
      left join effects_tool tool on tool.workspace_id = r.workspace_id and tool.name = p_tool
      left join ledger_claim c on c.turn = d.turn
        and c.scope = ledger_digest_v1('scope.v1', r.part, p_spoken || p_turn_part)
    where r.role = session_user::text and r.revoked_at is null;
  if t.confirmed is distinct from ledger_life_v1() then
    perform ledger_agent_refuse_v1(t.workspace_id, t.confirmed);
  end if;
  if t.replays then
    perform ledger_asked_again_v1(t.workspace_id, t.id, 'replayed', p_nonce, p_conversation,
      p_turn_index, p_position, ledger_agent_delivery_v1(p_worker, p_delivery_count, p_retry_count,
        p_agent, p_checkpoint, p_user_spoke, p_response_id, p_call_id));
    return ('replayed', t.id, null, 'completed', t.effect_class, t.reason, t.fence, t.generation,
      null, null, t.lease_until, t.safe_until, null, false,
      case when p_weak then '{weak_tool_call_id}'::text[] else '{}' end, t.object, t.result,
      t.result_stored, false)::ledger_answer;
  end if;
  -- What it hid, it hid by other rules than those in force: it reads them again, and nothing is kept.
  if t.redaction_version is distinct from p_redaction then
    outdated.effect_class := p_class;
    outdated.rules_changed := true;
    return outdated;
  end if;
  if (octet_length(p_arguments) <= 262144 and octet_length(p_compared) <= 1048576
      and coalesce(t.turn, t.caller) is not null and p_turn_index >= 0 is not false
      and octet_length(p_nonce) = 16 is not false and length(p_worker) <= 255 is not false
      and length(p_agent) <= 255 is not false and length(p_checkpoint) <= 255 is not false)
      is not true then
    perform ledger_agent_malformed_v1();
  end if;
  local := ledger_digest_v1('local.v1', t.part,
    p_spoken || p_turn_part || p_local_parts || p_what || p_compared);
  return ledger_claim_v1(t.workspace_id, t.tool, p_tool_version, p_class,
    'cf1-' || encode(coalesce(t.caller, t.turn, t.call, local), 'hex'),
    ledger_digest_v1('scope.v1', t.part, p_spoken || p_turn_part), t.turn, local, t.call, t.caller,
    ledger_digest_v1('repeat.v1', t.part, p_spoken || p_what || p_compared),
    ledger_digest_v1('business.v1', t.part, p_what || p_business_parts), t.arguments, p_arguments,
    p_conversation, p_turn_index, p_position, p_ordinal, p_response_id, p_call_id, p_weak, p_nonce,
    p_repeat_of,
    ledger_agent_delivery_v1(p_worker, p_delivery_count, p_retry_count, p_agent, p_checkpoint,
      p_user_spoke, p_response_id, p_call_id));
end $$;

-- The parallel calls of one turn, each answered as if it had been asked alone. A call is an object
-- whose members are named as the parameters above, without their p_.
create function ledger_agent_claim_batch_v1(p_calls jsonb, p_redaction int)
returns setof ledger_answer
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint;
  own bytea;
  confirmed uuid;
  redaction int;
  asked jsonb;
  outdated ledger_answer;
begin
  select r.workspace_id, r.part, r.redaction_version, m.claim_id into w, own, redaction, confirmed
    from ledger_agentrole r left join ledger_watermark m on m.name = 'confirmed'
    where r.role = session_user::text and r.revoked_at is null;
  if w is null or confirmed is distinct from ledger_life_v1() then
    perform ledger_agent_refuse_v1(w, confirmed);
  end if;
  if (jsonb_array_length(p_calls) <= 64) is not true then
    perform ledger_agent_malformed_v1();
  end if;
  if redaction is distinct from p_redaction then
    outdated.effect_class := 'unkeyed_write';
    outdated.rules_changed := true;
    return query select (outdated).* from jsonb_array_elements(p_calls);
    return;
  end if;
  select jsonb_agg(jsonb_build_object('tool', t.id, 'tool_version', d.tool_version, 'class', d.class,
      'key', 'cf1-' || encode(coalesce(d.caller, d.turn, d.call, d.local), 'hex'),
      'scope', ledger_digest_v1('scope.v1', own, d.spoken || d.turn_part), 'turn', d.turn,
      'local', d.local, 'call', d.call, 'caller', d.caller,
      'repeat', ledger_digest_v1('repeat.v1', own, d.spoken || d.what || d.compared),
      'business', ledger_digest_v1('business.v1', own, d.what || d.business_parts),
      'arguments_digest', sha256(ledger_part_v1('args.v1') || d.what || d.compared),
      'arguments', d.arguments, 'conversation', d.conversation, 'turn_index', d.turn_index,
      'position', d."position", 'ordinal', d.ordinal, 'response_id', d.response_id,
      'call_id', d.call_id, 'weak', d.weak, 'nonce', d.nonce, 'repeat_of', d.repeat_of,
      'data', ledger_agent_delivery_v1(d.worker, d.delivery_count, d.retry_count, d.agent,
        d.checkpoint, d.user_spoke, d.response_id, d.call_id)) order by d.place)
    into asked
    from (
      select c.*,
        ledger_digest_v1('turn.v1', own,
          c.spoken || c.turn_part || c.what || c.ordinal_part || c.compared) as turn,
        ledger_digest_v1('local.v1', own,
          c.spoken || c.turn_part || c.local_parts || c.what || c.compared) as local,
        ledger_digest_v1('call.v1', own, c.spoken || c.call_part) as call,
        ledger_digest_v1('caller.v1', own, c.caller_part) as caller
      from rows from (jsonb_to_recordset(p_calls) as (
        tool text, tool_version int, class effects_effect_class, arguments text, conversation text,
        turn_index int, "position" int, ordinal int, response_id text, call_id text, weak boolean,
        nonce bytea, repeat_of uuid, worker text, delivery_count int, retry_count int, agent text,
        checkpoint text, user_spoke boolean, what bytea, compared bytea, spoken bytea,
        turn_part bytea, ordinal_part bytea, call_part bytea, local_parts bytea,
        caller_part bytea, business_parts bytea
      )) with ordinality as c (tool, tool_version, class, arguments, conversation, turn_index,
        "position", ordinal, response_id, call_id, weak, nonce, repeat_of, worker, delivery_count,
        retry_count, agent, checkpoint, user_spoke, what, compared, spoken, turn_part,
        ordinal_part, call_part, local_parts, caller_part, business_parts, place)
    ) d left join effects_tool t on t.workspace_id = w and t.name = d.tool
    where octet_length(d.arguments) <= 262144 and octet_length(d.compared) <= 1048576
      and coalesce(d.turn, d.caller) is not null and d.turn_index >= 0 is not false
      and octet_length(d.nonce) = 16 is not false and length(d.worker) <= 255 is not false
      and length(d.agent) <= 255 is not false and length(d.checkpoint) <= 255 is not false;
  if jsonb_array_length(asked) is distinct from jsonb_array_length(p_calls) then
    perform ledger_agent_malformed_v1();
  end if;
  return query select * from ledger_claim_batch_v1(w, asked);
end $$;
