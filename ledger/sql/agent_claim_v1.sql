-- A claim by an agent that speaks to PostgreSQL itself. It sends what it says and the canonical form
-- of its arguments, never a digest: all digests are made here, of the workspace of its role and of
-- the very columns that people are shown. effects/core/identity.py states the same recipes.

create type ledger_agent_call as (
  tool text, tool_version int, class effects_effect_class, compared text, business bytea,
  arguments text, conversation text, turn_index int, "position" int, ordinal int, response_id text,
  call_id text, strong boolean, local boolean, caller_key text, nonce bytea, repeat_of uuid,
  worker text, delivery_count int, retry_count int
);

create type ledger_agent_ids as (
  key text, scope bytea, turn bytea, local bytea, call bytea, caller bytea, repeat bytea,
  business bytea, arguments bytea
);

-- One part of what a digest is made of: the length of its bytes, a letter for its type, its bytes.
create function ledger_part_v1(p text) returns bytea language sql immutable parallel safe as $$
  select case when p is null then '\x000000006e'::bytea
    else int4send(octet_length(convert_to(p, 'UTF8'))) || '\x73'::bytea || convert_to(p, 'UTF8') end
$$;

create function ledger_number_part_v1(p bigint) returns bytea language sql immutable parallel safe
as $$
  select int4send(length(p::text)) || '\x69'::bytea || convert_to(p::text, 'UTF8')
$$;

create function ledger_agent_ids_v1(p_workspace bigint, c ledger_agent_call)
returns ledger_agent_ids language plpgsql immutable as $$
declare
  i ledger_agent_ids;
  workspace bytea := ledger_number_part_v1(p_workspace);
  what bytea := ledger_part_v1(c.tool);
  compared bytea := ledger_part_v1(c.compared);
  spoken bytea;
  here bytea;
begin
  i.arguments := sha256(ledger_part_v1('args.v1') || what || compared);
  if c.conversation is not null then
    spoken := workspace || ledger_part_v1(c.conversation);
    i.repeat := substr(sha256(ledger_part_v1('repeat.v1') || spoken || what || compared), 1, 16);
    if c.strong then
      i.call := substr(sha256(ledger_part_v1('call.v1') || spoken || ledger_part_v1(c.call_id)), 1, 16);
    end if;
    if c.turn_index is not null then
      here := spoken || ledger_number_part_v1(c.turn_index);
      i.scope := substr(sha256(ledger_part_v1('scope.v1') || here), 1, 16);
      i.turn := substr(sha256(ledger_part_v1('turn.v1') || here || what
        || ledger_number_part_v1(c.ordinal) || compared), 1, 16);
      if c.local then
        i.local := substr(sha256(ledger_part_v1('local.v1') || here || ledger_part_v1(c.response_id)
          || ledger_part_v1(c.call_id) || what || compared), 1, 16);
      end if;
    end if;
  end if;
  if c.caller_key is not null then
    i.caller := substr(sha256(ledger_part_v1('caller.v1') || workspace
      || ledger_part_v1(c.caller_key)), 1, 16);
  end if;
  if c.business is not null then
    i.business := substr(sha256(ledger_part_v1('business.v1') || workspace || what || c.business),
      1, 16);
  end if;
  i.key := 'cf1-' || encode(coalesce(i.caller, i.turn, i.call, i.local), 'hex');
  return i;
end $$;

-- The limits of a claim request, which the client has checked before with better words.
create function ledger_agent_check_v1(c ledger_agent_call) returns void language plpgsql immutable
as $$
begin
  if octet_length(c.arguments) > 262144 then
    raise exception 'The arguments have % bytes; the limit ARGUMENTS_BYTES_MAX is 262144.',
      octet_length(c.arguments) using errcode = 'invalid_parameter_value';
  end if;
  if (
    c.arguments is not null and c.class is not null
    and octet_length(c.compared) between 2 and 4 * 262144
    and (c.caller_key is not null or c.conversation is not null and c.turn_index is not null)
    and (c.business is null or octet_length(c.business) between 1 and 4 * 262144)
    and (c.conversation is null or octet_length(c.conversation) between 1 and 255)
    and (c.response_id is null or octet_length(c.response_id) between 1 and 255)
    and (c.call_id is null or octet_length(c.call_id) between 1 and 255)
    and (c.caller_key is null or octet_length(c.caller_key) between 1 and 255)
    and (c.turn_index is null or c.turn_index >= 0)
    and c."position" between 0 and 32767 and c.ordinal between 0 and 32767
    and (c.nonce is null or octet_length(c.nonce) = 16)
    and (c.worker is null or length(c.worker) between 1 and 255)
    and (c.delivery_count is null or c.delivery_count between 0 and 1000000)
    and (c.retry_count is null or c.retry_count between 0 and 1000000)
    and c.strong is not null and c.local is not null
    and (c.call_id is not null or not (c.strong or c.local)) and not (c.strong and c.local)
  ) is not true then
    raise exception 'The claim request is not well formed.' using errcode = 'invalid_parameter_value';
  end if;
end $$;

-- How the request reached the worker: shown, never folded.
create function ledger_agent_delivery_v1(c ledger_agent_call) returns jsonb language sql immutable
as $$
  select case when num_nonnulls(c.worker, c.delivery_count, c.retry_count, c.response_id, c.call_id) > 0
    then jsonb_strip_nulls(jsonb_build_object('worker', c.worker, 'delivery_count', c.delivery_count,
      'retry_count', c.retry_count, 'response_id', c.response_id, 'call_id', c.call_id)) end
$$;

create function ledger_agent_claim_v1(
  p_tool text, p_tool_version int, p_class effects_effect_class, p_compared text, p_business bytea,
  p_arguments text, p_conversation text, p_turn_index int, p_position int, p_ordinal int,
  p_response_id text, p_call_id text, p_strong boolean, p_local boolean, p_caller_key text,
  p_nonce bytea, p_repeat_of uuid, p_worker text, p_delivery_count int, p_retry_count int
) returns ledger_answer language plpgsql security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint := ledger_agent_workspace_v1(true);
  tool_id bigint := (select id from effects_tool where workspace_id = w and name = p_tool);
  c ledger_agent_call := row(p_tool, p_tool_version, p_class, p_compared, p_business, p_arguments,
    p_conversation, p_turn_index, p_position, p_ordinal, p_response_id, p_call_id, p_strong,
    p_local, p_caller_key, p_nonce, p_repeat_of, p_worker, p_delivery_count, p_retry_count);
  i ledger_agent_ids;
begin
  perform ledger_agent_check_v1(c);
  i := ledger_agent_ids_v1(w, c);
  return ledger_claim_v1(w, tool_id, p_tool_version, p_class, i.key, i.scope, i.turn, i.local,
    i.call, i.caller, i.repeat, i.business, i.arguments, p_arguments, p_conversation, p_turn_index,
    p_position, p_ordinal, p_response_id, p_call_id, p_call_id is not null and not p_strong,
    p_nonce, p_repeat_of, ledger_agent_delivery_v1(c));
end $$;

-- The parallel calls of one turn, each answered as if it had been asked alone.
create function ledger_agent_claim_batch_v1(p_calls jsonb) returns setof ledger_answer
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint := ledger_agent_workspace_v1(true);
  c ledger_agent_call;
  i ledger_agent_ids;
  asked jsonb := '[]';
begin
  if jsonb_array_length(p_calls) > 64 then
    raise exception 'The batch has % claims; the limit CLAIMS_PER_BATCH_MAX is 64.',
      jsonb_array_length(p_calls) using errcode = 'invalid_parameter_value';
  end if;
  for c in select * from jsonb_populate_recordset(null::ledger_agent_call, p_calls) loop
    perform ledger_agent_check_v1(c);
    i := ledger_agent_ids_v1(w, c);
    asked := asked || jsonb_build_array(jsonb_build_object(
      'tool', (select id from effects_tool where workspace_id = w and name = c.tool),
      'tool_version', c.tool_version, 'class', c.class, 'key', i.key, 'scope', i.scope,
      'turn', i.turn, 'local', i.local, 'call', i.call, 'caller', i.caller, 'repeat', i.repeat,
      'business', i.business, 'arguments_digest', i.arguments, 'arguments', c.arguments,
      'conversation', c.conversation, 'turn_index', c.turn_index, 'position', c."position",
      'ordinal', c.ordinal, 'response_id', c.response_id, 'call_id', c.call_id,
      'weak', c.call_id is not null and not c.strong, 'nonce', c.nonce, 'repeat_of', c.repeat_of,
      'data', ledger_agent_delivery_v1(c)));
  end loop;
  return query select * from ledger_claim_batch_v1(w, asked);
end $$;
