-- What ledgers kept elsewhere send. Python reads the items (effects/core/events.py); these functions
-- keep them and apply them to the same claims that agents make here. Nothing here grants a send.
--
-- An attempt from elsewhere was granted by nobody here: its event says "ungranted". Fences come in
-- the order of arrival. Its key's life is generation 1 if it is the key that the claim named, else the
-- negative of its fence: a refusal stored under a key says nothing about attempts with another.

-- Held until the transaction ends: an orphan that parks and the parent that looks for its orphans
-- must not miss each other.
create function ledger_item_lock_v1(p_ref bytea) returns void language sql as $$
  select pg_advisory_xact_lock(('x' || encode(substr(p_ref, 1, 8), 'hex'))::bit(64)::bigint)
$$;

-- Keeps one item. The database says what was there before, so of two senders one inserts:
-- `word` is new, again (the same content), conflict (the id came with other content) or unreadable.
create function ledger_keep_item_v1(
  p_workspace bigint, p_token bigint, p_door text, p_source text, p_id text, p_type text,
  p_digest bytea, p_readable boolean, p_reason text, p_says text, p_mended text[], p_raw bytea,
  p_said_at timestamptz,
  out item bigint, out word text, out state text, out first bigint
) language plpgsql as $$
declare
  now timestamptz := ledger_clock();
  held record;
begin
  if p_readable then
    insert into ledger_ingestitem as i (workspace_id, token_id, door, source, event_id, type, digest,
      holds_id, state, mended, raw, raw_bytes, said_at, received_at, last_seen_at)
    values (p_workspace, p_token, p_door, p_source, p_id, p_type, p_digest,
      true, 'received', p_mended, p_raw, octet_length(p_raw), p_said_at, now, now)
    on conflict (workspace_id, source, event_id) where holds_id do update set
      times_seen = i.times_seen + (i.digest = excluded.digest)::int,
      last_seen_at = case when i.digest = excluded.digest then now else i.last_seen_at end
    returning i.id, i.digest, i.state, i.xmax = 0 as inserted into held;
    item := held.id;
    state := held.state;
    word := case when held.inserted then 'new' else 'again' end;
    if held.digest = p_digest then
      return;
    end if;
    first := held.id;
  end if;
  word := case when p_readable then 'conflict' else 'unreadable' end;
  state := word;
  insert into ledger_ingestitem as i (workspace_id, token_id, door, source, event_id, type, digest,
    holds_id, conflicts_with, state, reason, says, mended, raw, raw_bytes, said_at, received_at,
    last_seen_at)
  values (p_workspace, p_token, p_door, p_source,
    coalesce(nullif(p_id, ''), 'sha256:' || encode(p_digest, 'hex')), p_type, p_digest,
    false, first, word, p_reason, p_says, p_mended, p_raw, octet_length(p_raw), p_said_at, now, now)
  on conflict (workspace_id, source, event_id, digest) do update set
    times_seen = i.times_seen + 1, last_seen_at = now
  returning i.id into item;
end $$;

-- What became of an item. A name that it waits for is given with its words.
create function ledger_item_became_v1(
  p_item bigint, p_state text, p_reason text, p_says text, p_waits_for bytea, p_waits_words text,
  p_claim uuid, p_stream bigint
) returns void language sql as $$
  update ledger_ingestitem set state = p_state, reason = p_reason, says = p_says,
    waits_for = p_waits_for, waits_words = p_waits_words, claim_id = coalesce(p_claim, claim_id),
    stream_id = coalesce(p_stream, stream_id), tries = tries + 1,
    applied_at = case when p_state in ('applied', 'recorded') then ledger_clock() end
  where id = p_item
$$;

-- A claim made elsewhere, with its first attempt. `word`: known (the name came before), read (needs
-- no claim), attached (the operation is claimed already), created.
create function ledger_mirror_claim_v1(
  p_workspace bigint, p_ref bytea, p_tool bigint, p_class effects_effect_class, p_key text,
  p_scope bytea, p_turn bytea, p_local bytea, p_call bytea, p_caller bytea, p_repeat bytea,
  p_business bytea, p_arguments_digest bytea, p_arguments text, p_conversation text,
  p_turn_index int, p_position int, p_ordinal int, p_response_id text, p_call_id text,
  p_flags text[], p_sent_key text, p_said_at timestamptz, p_data jsonb,
  out claim_id uuid, out word text
) language plpgsql as $$
declare
  t record;
  c ledger_claim;
  class effects_effect_class;
  now timestamptz;
  tries int := 0;
begin
  perform ledger_item_lock_v1(p_ref);
  select n.claim_id into claim_id from ledger_foreignname n where ref = p_ref;
  if found then
    word := 'known';
    return;
  end if;
  select lease_seconds, window_seconds, attempts_max, effect_class into strict t
    from effects_tool where id = p_tool and workspace_id = p_workspace;
  class := greatest(p_class, t.effect_class);
  if class = 'read' then
    insert into ledger_foreignname (ref, workspace_id, kind, at)
      values (p_ref, p_workspace, 'claim', ledger_clock());
    word := 'read';
    return;
  end if;
  perform ledger_guard_v1(p_scope, p_repeat, p_business);
  loop
    tries := tries + 1;
    if tries > 8 then
      raise exception 'ledger_mirror_claim_v1: still losing to others' using errcode = '40001';
    end if;
    select * into c from ledger_claim o
      where o.scope = p_scope and (o.turn = p_turn or o.local = p_local)
        or o.call = p_call or o.caller = p_caller order by id limit 1;
    if found and (c.arguments_digest <> p_arguments_digest
        or coalesce(c.call = p_call and c.response_id <> p_response_id, false)
          and not coalesce(c.scope = p_scope, false) and not coalesce(c.caller = p_caller, false)) then
      -- A request like this would be refused. This one has run: it is an operation of its own, and
      -- the identity that it shares with another names neither any more.
      p_call := case when c.call = p_call then null else p_call end;
      p_caller := case when c.caller = p_caller then null else p_caller end;
      p_flags := p_flags || '{weak_tool_call_id}'::text[];
      continue;
    end if;
    if found then
      word := 'attached';
      exit;
    end if;
    now := ledger_clock();
    insert into ledger_claim (workspace_id, tool_id, effect_class, budget, granted_at, lease_until,
      window_until, key, sent_key, conversation, turn_index, position, ordinal, response_id, call_id,
      flags, scope, turn, local, call, caller, repeat, business, arguments_digest, arguments)
    values (p_workspace, p_tool, class, t.attempts_max, now,
      now + make_interval(secs => t.lease_seconds),
      -- The provider counts from the first receipt, which may be long ago by the sender's word.
      case when class = 'keyed_write' and p_sent_key is not null
        then least(now, p_said_at) + make_interval(secs => t.window_seconds) end,
      p_key, p_sent_key, p_conversation, p_turn_index, p_position, p_ordinal, p_response_id,
      p_call_id, array(select distinct f from unnest(p_flags) f order by f), p_scope, p_turn,
      p_local, p_call, p_caller, p_repeat, p_business, p_arguments_digest,
      case when octet_length(p_arguments) <= 2048 then p_arguments end)
    on conflict do nothing returning * into c;
    continue when not found;
    word := 'created';
    insert into ledger_event (claim_id, seq, at, kind, fence, generation, data)
      values (c.id, 1, now, 'granted', 1, case when p_sent_key is null then -1 else 1 end,
        p_data || '{"ungranted": true}');
    if octet_length(p_arguments) > 2048 then
      insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
      values (p_workspace, c.id, 0, 'arguments', convert_to(p_arguments, 'UTF8'),
        sha256(convert_to(p_arguments, 'UTF8')), octet_length(p_arguments));
    end if;
    exit;
  end loop;
  claim_id := c.id;
  insert into ledger_foreignname (ref, workspace_id, kind, claim_id, at)
    values (p_ref, p_workspace, 'claim', c.id, ledger_clock());
end $$;

-- Whether a claim knows of no attempt but those from elsewhere, and of no decision.
create function ledger_mirrored_v1(p_claim uuid) returns boolean language sql stable as $$
  select not exists (select from ledger_event where claim_id = p_claim
    and (kind = 'decided' or kind = 'granted' and data->'ungranted' is null))
$$;

-- An attempt from elsewhere. The claim's own first attempt is the first one that is named; every
-- other is a new fence. `word`: known, read, bound (this ledger granted it), started, or limit.
create function ledger_mirror_attempt_v1(
  p_workspace bigint, p_claim_ref bytea, p_ref bytea, p_key text, p_fence int, p_said_at timestamptz,
  p_data jsonb, out claim_id uuid, out fence int, out word text
) language plpgsql as $$
declare
  known record;
  l record;
  c ledger_claim;
  kept smallint;
  born_elsewhere boolean;
begin
  perform ledger_item_lock_v1(p_ref);
  select n.claim_id, n.fence into known from ledger_foreignname n where ref = p_ref;
  if found then
    claim_id := known.claim_id;
    fence := known.fence;
    word := 'known';
    return;
  end if;
  select n.claim_id into strict claim_id from ledger_foreignname n where ref = p_claim_ref;
  word := 'read';
  if claim_id is not null then
    l := ledger_lock_v1(p_workspace, claim_id);
    c := l.c;
    born_elsewhere := exists (select from ledger_event e where e.claim_id = c.id and e.seq = 1
      and e.data->'ungranted' is not null);
    p_data := p_data || '{"ungranted": true}';
    word := 'started';
    if exists (select from ledger_event e where e.claim_id = c.id and e.kind = 'granted'
        and e.fence = p_fence and e.data->'ungranted' is null) then
      fence := p_fence;
      word := 'bound';
    elsif born_elsewhere
        and coalesce(p_key = ledger_claimed_key_v1(c.id), p_key is null
          or ledger_claimed_key_v1(c.id) is null)
        and not exists (select from ledger_foreignname n
          where n.claim_id = c.id and n.kind = 'attempt' and n.fence = 1) then
      fence := 1;
      c := ledger_append_v1(c, 'started', l.now, p_fence => 1, p_data => p_data);
      if ledger_claimed_key_v1(c.id) is null and c.fence = 1 then
        c.sent_key := p_key;
      end if;
    elsif c.fence >= 1000 then
      word := 'limit';
      return;
    else
      c := ledger_cancel_v1(c, l.now);
      fence := c.fence + 1;
      kept := c.generation;
      c.fence := fence;
      c.generation := ledger_key_life_v1(c, p_key, born_elsewhere);
      c.lease_until := l.now + (select make_interval(secs => lease_seconds) from effects_tool
        where id = c.tool_id);
      c.nonce := null;
      c := ledger_append_v1(c, 'granted', l.now, p_data => p_data);
      c.generation := kept;
    end if;
    if word = 'started' and born_elsewhere then
      c := ledger_sent_window_v1(c);
    end if;
    perform ledger_save_v1(c);
    update ledger_claim set sent_key = c.sent_key where id = c.id;
  end if;
  insert into ledger_foreignname (ref, workspace_id, kind, claim_id, fence, at)
    values (p_ref, p_workspace, 'attempt', claim_id, fence, ledger_clock());
end $$;

-- The key that a claim made elsewhere named when it was made.
create function ledger_claimed_key_v1(p_claim uuid) returns text language sql stable as $$
  select data->>'key' from ledger_event where claim_id = p_claim and seq = 1
$$;

-- The generation of an attempt's key: the claim's, or one of its own. An attempt that names no key
-- used the claim's, if the claim named one.
create function ledger_key_life_v1(c ledger_claim, p_key text, p_born_elsewhere boolean)
returns smallint language sql stable as $$
  select case
    when p_born_elsewhere then
      case when coalesce(p_key, ledger_claimed_key_v1(c.id)) = ledger_claimed_key_v1(c.id)
        then 1 else -c.fence end
    else coalesce(
      (select g from generate_series(1, c.generation) g where p_key = c.key || '-' || g), -c.fence)
    end::smallint
$$;

-- A window is known only while every attempt sent the same known key. It begins with the earliest
-- moment at which one may have been sent, by the sender's clock or ours.
create function ledger_sent_window_v1(inout c ledger_claim) language plpgsql stable as $$
declare
  one_key boolean;
  first_at timestamptz;
begin
  if c.generation > 1 then
    return;
  end if;
  select bool_and(coalesce(
        coalesce(e.data->>'key', ledger_claimed_key_v1(c.id)) = c.sent_key, false))
        filter (where e.seq > 1),
      min(least(e.at, (e.data->>'said_at')::timestamptz))
    into one_key, first_at
    from ledger_event e where e.claim_id = c.id and e.kind in ('granted', 'started');
  c.window_until := null;
  if not one_key then
    c.sent_key := null;
  elsif c.effect_class = 'keyed_write' then
    c.window_until := first_at
      + (select make_interval(secs => window_seconds) from effects_tool where id = c.tool_id);
  end if;
end $$;

-- How an attempt from elsewhere ended: the same report as an agent's own.
create function ledger_mirror_report_v1(
  p_workspace bigint, p_ref bytea, p_outcome ledger_event_word, p_object text, p_replayed boolean,
  p_result text, p_result_stored boolean, p_data jsonb, out claim_id uuid, out word text
) language plpgsql as $$
declare
  known record;
  c ledger_claim;
begin
  select n.claim_id, n.fence into strict known from ledger_foreignname n where ref = p_ref;
  claim_id := known.claim_id;
  word := 'read';
  if claim_id is null then
    return;
  end if;
  perform ledger_report_v1(p_workspace, claim_id, known.fence, p_outcome, p_object, p_replayed, null,
    p_result, p_result_stored, p_data);
  select * into c from ledger_claim where id = claim_id;
  if p_result is not null then
    insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
    select p_workspace, c.id, max(e.seq), 'result', convert_to(p_result, 'UTF8'),
        sha256(convert_to(p_result, 'UTF8')), octet_length(p_result)
      from ledger_event e where e.claim_id = c.id and e.kind = 'reported' and e.word = 'completed'
        and e.fence = known.fence and e.object is not distinct from p_object
      having max(e.seq) is not null
    on conflict on constraint payload_once do nothing;
  end if;
  if ledger_mirrored_v1(c.id) then
    perform ledger_settle_order_v1(c);
  end if;
  word := 'applied';
end $$;

-- Of a claim that was only mirrored, nothing may depend on which of its facts came first. Once it
-- is told to somebody as completed, its first result stays, as everywhere.
create function ledger_settle_order_v1(c ledger_claim) returns void language plpgsql as $$
declare
  told_otherwise boolean := exists (
    select from ledger_event y join ledger_event n on n.claim_id = y.claim_id and n.fence = y.fence
    where y.claim_id = c.id and y.kind = 'reported' and y.word = 'completed'
      and n.kind = 'reported' and n.word in ('not_sent', 'refused', 'refused_stored'));
begin
  if c.state in ('completed', 'conflicted') then
    c.reason := case when told_otherwise then 'told_otherwise' end;
  end if;
  if c.state = 'conflicted' then
    c.result := null;
    select e.object, p.id is not null,
        case when p.size_bytes <= 2048 then convert_from(p.body, 'UTF8') end
      into c.object, c.result_stored, c.result
      from ledger_event e
      left join ledger_payload p on p.claim_id = e.claim_id and p.seq = e.seq and p.name = 'result'
      where e.claim_id = c.id and e.kind = 'reported' and e.word = 'completed'
      order by e.object nulls last, e.data->>'said_at', p.digest limit 1;
  end if;
  update ledger_claim set reason = c.reason, object = c.object, result = c.result,
    result_stored = c.result_stored where id = c.id;
end $$;

-- The send of an attempt, a provider's answer to somebody else, and a note. None moves the claim.
create function ledger_mirror_sent_v1(p_workspace bigint, p_ref bytea, p_data jsonb)
returns uuid language plpgsql as $$
declare
  known record;
  l record;
  c ledger_claim;
begin
  select n.claim_id, n.fence into strict known from ledger_foreignname n where ref = p_ref;
  if known.claim_id is not null then
    l := ledger_lock_v1(p_workspace, known.claim_id);
    c := l.c;
    if not exists (select from ledger_event e where e.claim_id = c.id and e.kind = 'sent'
        and e.fence = known.fence) then
      c := ledger_append_v1(c, 'sent', l.now, p_fence => known.fence, p_data => p_data);
    end if;
    perform ledger_save_v1(c);
  end if;
  return known.claim_id;
end $$;

create function ledger_mirror_sighting_v1(
  p_workspace bigint, p_ref bytea, p_word ledger_event_word, p_objects text[], p_data jsonb
) returns uuid language plpgsql as $$
declare
  known uuid;
begin
  select n.claim_id into strict known from ledger_foreignname n where ref = p_ref;
  if known is not null then
    perform ledger_observe_v1(p_workspace, known, p_word, (select fence from ledger_claim
      where id = known), false, false, p_objects, p_data, null);
    update ledger_due set at = ledger_clock()
      where claim_id = known and why = 'lookup' and (at is null or at > ledger_clock());
  end if;
  return known;
end $$;

create function ledger_mirror_note_v1(p_workspace bigint, p_ref bytea, p_data jsonb)
returns uuid language plpgsql as $$
declare
  known uuid;
begin
  select n.claim_id into strict known from ledger_foreignname n where ref = p_ref;
  if known is not null then
    perform ledger_note_v1(p_workspace, known, p_data);
  end if;
  return known;
end $$;

-- Streams. `word`: opened, known, or differs (the name stands for another turn).
create function ledger_mirror_stream_v1(
  p_workspace bigint, p_source text, p_name text, p_ref bytea, p_scope bytea, p_conversation text,
  p_turn_index int, p_response_id text, p_model text, p_opened_at timestamptz,
  out stream bigint, out word text
) language plpgsql as $$
declare
  s ledger_stream;
begin
  perform ledger_item_lock_v1(p_ref);
  select * into s from ledger_stream
    where workspace_id = p_workspace and source = p_source and name = p_name for update;
  if found then
    stream := s.id;
    word := case when s.scope = p_scope and coalesce(s.response_id = p_response_id, true)
      then 'known' else 'differs' end;
    if word = 'known' then
      update ledger_stream set response_id = coalesce(response_id, p_response_id),
        model = coalesce(model, p_model), opened_at = least(opened_at, p_opened_at) where id = s.id;
    end if;
    return;
  end if;
  word := 'opened';
  insert into ledger_stream (workspace_id, source, name, scope, conversation, turn_index, response_id,
    model, opened_at, received_at)
  values (p_workspace, p_source, p_name, p_scope, p_conversation, p_turn_index, p_response_id,
    p_model, p_opened_at, ledger_clock())
  returning id into stream;
  insert into ledger_foreignname (ref, workspace_id, kind, stream_id, at)
    values (p_ref, p_workspace, 'stream', stream, ledger_clock());
end $$;

-- The strongest end stays: what the provider itself declared outweighs what a reader lost.
create function ledger_mirror_close_v1(
  p_stream bigint, p_terminal text, p_closed_at timestamptz, p_error text, p_last_sequence int
) returns void language sql as $$
  update ledger_stream s set last_sequence = greatest(s.last_sequence, p_last_sequence),
    terminal = n.terminal, closed_at = n.closed_at, error = n.error
  from (
    select * from (
      values (p_terminal, p_closed_at, p_error)
      union all
      select o.terminal, o.closed_at, o.error from ledger_stream o where o.id = p_stream
    ) e (terminal, closed_at, error)
    where e.terminal is not null
    order by array_position(array['success', 'incomplete', 'error_event', 'cancelled', 'cut'], e.terminal),
      e.closed_at, e.error limit 1
  ) n
  where s.id = p_stream
$$;

-- A call as far as it was received; of two words for one place, the one that says more stays.
create function ledger_mirror_call_v1(
  p_workspace bigint, p_stream bigint, p_position int, p_ordinal int, p_tool text, p_call_id text,
  p_complete boolean, p_bytes int, p_digest bytea, p_said_at timestamptz, p_item bigint
) returns void language plpgsql as $$
declare
  c ledger_call;
begin
  perform from ledger_stream where id = p_stream for update;
  select * into c from ledger_call where stream_id = p_stream and position = p_position;
  if not found then
    insert into ledger_call (workspace_id, stream_id, position, ordinal, tool, call_id, complete,
      arguments_bytes, arguments_digest, said_at, at, item_id)
    values (p_workspace, p_stream, p_position, p_ordinal, p_tool, p_call_id, p_complete, p_bytes,
      p_digest, p_said_at, ledger_clock(), p_item);
  elsif (p_complete, p_bytes, p_digest) > (c.complete, c.arguments_bytes, c.arguments_digest) then
    update ledger_call set ordinal = coalesce(p_ordinal, c.ordinal), tool = coalesce(p_tool, c.tool),
      call_id = coalesce(p_call_id, c.call_id), complete = p_complete, arguments_bytes = p_bytes,
      arguments_digest = p_digest, said_at = least(c.said_at, p_said_at),
      item_id = p_item
    where id = c.id;
  else
    update ledger_call set ordinal = coalesce(c.ordinal, p_ordinal), tool = coalesce(c.tool, p_tool),
      call_id = coalesce(c.call_id, p_call_id), said_at = least(c.said_at, p_said_at)
    where id = c.id;
  end if;
end $$;

-- Up to where a stream's events are applied: in the transaction that applies them. Events after a
-- gap are remembered, 10,000 at most; more of them leave the cursor where the gap is.
create function ledger_stream_cursor_v1(p_stream bigint, p_sequence int, p_upto int) returns int
language plpgsql as $$
declare
  s ledger_stream;
begin
  select * into strict s from ledger_stream where id = p_stream for update;
  s.cursor := greatest(s.cursor, p_upto);
  if p_sequence > s.cursor and cardinality(s.beyond) < 10000 then
    s.beyond := s.beyond || p_sequence;
  end if;
  while s.cursor + 1 = any(s.beyond) loop
    s.cursor := s.cursor + 1;
  end loop;
  update ledger_stream set cursor = s.cursor,
    beyond = array(select distinct b from unnest(s.beyond) b where b > s.cursor order by b)
  where id = p_stream;
  return s.cursor;
end $$;
