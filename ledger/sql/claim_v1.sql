-- Same-operation look-ups, holds and grants. effects/core/decision.py states the same table.

-- Sorted locks on what a grant is exclusive about, taken before any row is locked and before the
-- holds are read (read committed: the reading that follows has a snapshot of its own).
create function ledger_guard_v1(variadic digests bytea[]) returns void language plpgsql as $$
declare
  number bigint;
begin
  for number in
    select distinct substr(d, 1, 8)::bigint as n from unnest(digests) d where d is not null order by n
  loop
    perform pg_advisory_xact_lock(number);
  end loop;
end $$;

create type ledger_seen as (
  state ledger_claim_state, completed_at timestamptz, blocks boolean
);

-- Another claim's state now, without locking it. `blocks`: it may still have an effect, or its
-- absence holds for its own key only.
create function ledger_seen_v1(o ledger_claim, p_now timestamptz) returns ledger_seen
language plpgsql stable as $$
declare
  advanced record;
begin
  if o.state = 'in_flight' and p_now >= o.lease_until
      or o.pending_at <= p_now or p_now >= o.grant_until then
    advanced := ledger_advance_v1(o, p_now);
    o := advanced.c;
  end if;
  return (o.state, o.completed_at,
    o.state not in ('completed', 'not_executed')
      or o.state = 'not_executed' and o.grant_until is not null)::ledger_seen;
end $$;

-- A completed claim stands in the way of a repeat while somebody may be asking only because the
-- first outcome was not known: a request that it held back is unanswered, or its own agent was told
-- "unknown" before the truth came and no repeat of it has been answered since.
create function ledger_in_doubt_v1(p_claim uuid) returns boolean language sql stable as $$
  select exists (select from ledger_heldrequest h
      where h.blocker_id = p_claim and h.code in ('held', 'already_done') and h.answered_at is null)
    or exists (select from ledger_event e
        where e.claim_id = p_claim
          and (e.kind = 'lapsed' or e.kind = 'reported' and e.word = 'unknown'))
      and not exists (select from ledger_heldrequest h
        where h.blocker_id = p_claim and h.answered_at is not null)
$$;

-- What stops a grant although no same operation forbids it: a slot that was re-issued with other
-- arguments, or an open claim for the same thing. Asked for first grants and regrants alike; then
-- with the claim's own turn and slot, because a redelivery may have been renumbered.
create function ledger_stop_v1(
  me ledger_claim, p_policy record, p_now timestamptz, p_asker bytea, p_response_id text,
  p_repeat_of uuid
) returns ledger_stop language plpgsql as $$
declare
  s ledger_stop;
  o ledger_claim;
  seen ledger_seen;
  allowed boolean := exists (
    select from ledger_heldrequest h
    where h.asker = p_asker and h.allowed_by is not null and h.used_at is null);
  other_response boolean;
  same_business boolean;
begin
  s.flags := '{}';
  s.twins := '{}';
  for o in select * from ledger_claim
      where scope = me.scope and tool_id = me.tool_id and position = me.position
        and id is distinct from me.id and arguments_digest <> me.arguments_digest order by id loop
    if not coalesce(o.response_id <> p_response_id, false) then
      s.code := 'mismatch';
      s.blocker := o.id;
      return s;
    end if;
    seen := ledger_seen_v1(o, p_now);
    if not allowed and (seen.state <> 'not_executed' or seen.blocks) then
      s.code := 'reissued_differently';
      s.blocker := o.id;
      return s;
    end if;
  end loop;
  for o in select * from ledger_claim c
      where c.id is distinct from me.id and (c.repeat = me.repeat or c.business = me.business)
      order by id loop
    other_response := coalesce(o.response_id <> p_response_id, false);
    same_business := coalesce(o.business = me.business, false);
    if coalesce(o.scope = me.scope, false) and not same_business and not other_response
        and not p_policy.hold_in_turn then
      s.flags := array_append(s.flags, 'identical_in_turn');
      s.twins := array_append(s.twins, o.id);
      continue;
    end if;
    continue when allowed;
    seen := ledger_seen_v1(o, p_now);
    s.code := case
      when seen.blocks then 'held'
      when seen.state = 'completed' and seen.completed_at >= me.granted_at then 'already_done'
      when seen.state = 'completed' and ledger_in_doubt_v1(o.id)
        and not (p_policy.agent_may_repeat and coalesce(p_repeat_of = o.id, false))
        then 'already_done' end;
    if s.code is not null then
      s.blocker := o.id;
      return s;
    end if;
    s.flags := array_append(s.flags, case
      when seen.state = 'completed' and ledger_in_doubt_v1(o.id)
        then 'repeat_of' else 'same_as_earlier' end);
  end loop;
  return s;
end $$;

-- Another claim for the same thing that is open, or completed since this one was first granted.
-- A release of this claim could then run beside it.
create function ledger_sibling_v1(me ledger_claim, p_now timestamptz) returns uuid
language plpgsql as $$
declare
  o ledger_claim;
  seen ledger_seen;
  hold_in_turn boolean := (select t.hold_in_turn from effects_tool t where t.id = me.tool_id);
begin
  for o in select * from ledger_claim c
      where c.id <> me.id and (c.repeat = me.repeat or c.business = me.business
        or c.scope = me.scope and c.tool_id = me.tool_id and c.position = me.position)
      order by id loop
    -- Two equal calls of one response are two intended calls, unless the tool holds them.
    continue when coalesce(o.scope = me.scope, false) and o.position <> me.position
      and not coalesce(o.business = me.business, false)
      and not coalesce(o.response_id <> me.response_id, false) and not hold_in_turn;
    seen := ledger_seen_v1(o, p_now);
    if seen.blocks or coalesce(seen.completed_at >= me.granted_at, false) then
      return o.id;
    end if;
  end loop;
  return null;
end $$;

-- A request that is not granted is remembered, or becomes a case for a person.
create function ledger_refuse_v1(
  me ledger_claim, p_code ledger_answer_code, p_blocker uuid, p_asker bytea, p_now timestamptz
) returns void language plpgsql as $$
begin
  if p_code in ('held', 'already_done', 'reissued_differently') then
    insert into ledger_heldrequest (workspace_id, blocker_id, code, asker, repeat, business,
      conversation, turn_index, arguments, at)
    values (me.workspace_id, p_blocker, p_code, p_asker, me.repeat, me.business,
      me.conversation, me.turn_index, me.arguments, p_now)
    on conflict (asker, blocker_id) do nothing;
  end if;
  if p_code in ('mismatch', 'identities_disagree', 'attempts_exhausted', 'reissued_differently') then
    insert into ledger_case
      (workspace_id, claim_id, code, arguments_digest, arguments, data, seen, at)
    values (me.workspace_id, p_blocker, p_code, me.arguments_digest, me.arguments,
      jsonb_build_object('conversation', me.conversation, 'turn_index', me.turn_index,
        'position', me.position, 'response_id', me.response_id, 'call_id', me.call_id),
      1, p_now)
    on conflict (claim_id, code, arguments_digest) do update set seen = ledger_case.seen + 1;
  end if;
end $$;

-- Requests that met a claim and were not granted. Each is another execution of the agent's, and
-- changes nothing in the record: it is kept beside it, as evidence about duplicates. `data` says how
-- the job reached its worker. Only the function below writes it, and only ledger/asked_again.py reads.
create table ledger_askedagain (
  id bigint generated always as identity primary key,
  workspace_id bigint not null, claim_id uuid not null, code ledger_answer_code not null,
  at timestamptz not null, nonce bytea, conversation text, turn_index int, position int, data jsonb,
  constraint asked_again_once unique (claim_id, nonce)
);
create index asked_again_workspace on ledger_askedagain (workspace_id, id);

-- A request whose answer was lost brings its nonce again and is one. The first fifty of a claim tell
-- all that there is to tell; whoever asks for ever writes nothing more. Where it is all that this
-- transaction writes, a repeat, nobody waits for the disk: a crash may take the last moments of it.
create function ledger_asked_again_v1(
  p_workspace bigint, p_claim uuid, p_code ledger_answer_code, p_nonce bytea, p_conversation text,
  p_turn_index int, p_position int, p_data jsonb
) returns void language sql as $$
  select set_config('synchronous_commit', 'off', true)
    where pg_current_xact_id_if_assigned() is null;
  insert into ledger_askedagain
    (workspace_id, claim_id, code, at, nonce, conversation, turn_index, position, data)
  select p_workspace, p_claim, p_code, ledger_clock(), p_nonce, left(p_conversation, 255),
    p_turn_index, p_position, p_data
  where p_claim is not null
    and (select count(*) from ledger_askedagain where claim_id = p_claim) < 50
  on conflict on constraint asked_again_once do nothing
$$;

create function ledger_flag_v1(p_claims uuid[], p_flag text) returns void language sql as $$
  update ledger_claim set flags = array_append(flags, p_flag)
  where id in (select id from ledger_claim where id = any(p_claims) order by id for update)
    and p_flag <> all(flags)
$$;

-- The claim of one tool call: one statement, one commit. The two common cases whole, each in as few
-- statements as it needs: a repeat of what has completed, and a call that resembles no other. For
-- everything else, and for every doubt, ledger_weigh_v1 decides, which would answer these the same.
create function ledger_claim_v1(
  p_workspace bigint, p_tool bigint, p_tool_version int, p_class effects_effect_class, p_key text,
  p_scope bytea, p_turn bytea, p_local bytea, p_call bytea, p_caller bytea, p_repeat bytea,
  p_business bytea, p_arguments_digest bytea, p_arguments text, p_conversation text,
  p_turn_index int, p_position int, p_ordinal int, p_response_id text, p_call_id text,
  p_weak boolean, p_nonce bytea, p_repeat_of uuid, p_data jsonb
) returns ledger_answer language plpgsql as $$
declare
  t record;
  now timestamptz;
  made uuid;
  apart boolean := false;
  a ledger_answer;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'wrong_isolation: ledger_claim_v1 needs read committed'
      using errcode = 'invalid_transaction_state';
  end if;
  -- The tool, and a claim that this request names again. A replay needs no lock where the operation
  -- is settled, nothing is pending, and no other identity could disagree.
  select greatest(tool.effect_class, p_class) as class, tool.attempts_max,
      make_interval(secs => tool.lease_seconds) as lease,
      make_interval(secs => tool.margin_seconds) as margin,
      case when greatest(tool.effect_class, p_class) = 'keyed_write'
        then make_interval(secs => tool.window_seconds) end as key_window,
      case when p_weak then '{weak_tool_call_id}'::text[] else '{}' end as flags,
      c.id, c.effect_class as own_class, c.reason, c.fence, c.generation, c.lease_until,
      c.window_until, c.object, c.result, c.result_stored,
      c.state = 'completed' and c.pending_at is null and c.arguments_digest = p_arguments_digest
        and (p_call is null or c.call = p_call) and (p_caller is null or c.caller = p_caller)
        and (c.result is not null or c.result_stored is not true) as replays
    into t
    from effects_tool tool
      left join ledger_claim c on c.scope = p_scope and c.turn = p_turn
    where tool.id = p_tool and tool.workspace_id = p_workspace and tool.version = p_tool_version
      and (tool.effect_class <> 'read' or p_class <> 'read');
  if t.replays then
    perform ledger_asked_again_v1(p_workspace, t.id, 'replayed', p_nonce, p_conversation,
      p_turn_index, p_position, p_data);
    return ('replayed', t.id, null, 'completed', t.own_class, t.reason, t.fence, t.generation, null,
      null, t.lease_until, t.window_until - t.margin, null, false, t.flags, t.object, t.result,
      t.result_stored, false)::ledger_answer;
  end if;

  if t.class is not null and t.id is null then
    -- The locks of ledger_guard_v1, in its order: least, middle, greatest. Whoever repeats a call
    -- under another turn must first have those of the claim that it names, so it takes none here.
    perform pg_advisory_xact_lock(least(d.a, d.b, d.c)),
        pg_advisory_xact_lock(greatest(least(d.a, d.b), least(greatest(d.a, d.b), d.c))),
        pg_advisory_xact_lock(greatest(d.a, d.b, d.c))
      from (select substr(p_scope, 1, 8)::bigint as a, substr(p_repeat, 1, 8)::bigint as b,
        substr(p_business, 1, 8)::bigint as c) d
      where not exists (select from ledger_claim where call = p_call)
        and not exists (select from ledger_claim where caller = p_caller);
    apart := found;
  end if;
  if apart then
    now := ledger_clock();
    with made as (
      insert into ledger_claim (workspace_id, tool_id, effect_class, budget, granted_at,
        lease_until, window_until, key, conversation, turn_index, position, ordinal, response_id,
        call_id, nonce, flags, scope, turn, local, call, caller, repeat, business,
        arguments_digest, arguments)
      select p_workspace, p_tool, t.class, t.attempts_max, now, now + t.lease, now + t.key_window,
        p_key, p_conversation, p_turn_index, p_position, p_ordinal, p_response_id, p_call_id,
        p_nonce, t.flags, p_scope, p_turn, p_local, p_call, p_caller, p_repeat, p_business,
        p_arguments_digest, case when octet_length(p_arguments) <= 2048 then p_arguments end
      where not exists (select from ledger_claim where scope = p_scope
          and (p_weak or tool_id = p_tool and position = p_position))
        and not exists (select from ledger_claim where repeat = p_repeat)
        and not exists (select from ledger_claim where business = p_business)
      on conflict do nothing returning id
    )
    insert into ledger_event (claim_id, seq, at, kind, fence, generation, data)
    select id, 1, now, 'granted', 1, 1, p_data from made
    returning claim_id into made;
    if found then
      if octet_length(p_arguments) > 2048 then
        insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
        values (p_workspace, made, 0, 'arguments', convert_to(p_arguments, 'UTF8'),
          sha256(convert_to(p_arguments, 'UTF8')), octet_length(p_arguments));
      end if;
      return ('granted', made, null, 'in_flight', t.class, null, 1, 1, p_key || '-1',
        least(t.lease, t.key_window - t.margin), now + t.lease, now + t.key_window - t.margin,
        null, false, t.flags, null, null, null, false)::ledger_answer;
    end if;
  end if;

  a := ledger_weigh_v1(p_workspace, p_tool, p_tool_version, p_class, p_key, p_scope, p_turn,
    p_local, p_call, p_caller, p_repeat, p_business, p_arguments_digest, p_arguments,
    p_conversation, p_turn_index, p_position, p_ordinal, p_response_id, p_call_id, p_weak, p_nonce,
    p_repeat_of, p_data);
  if a.code not in ('granted', 'granted_again') then
    perform ledger_asked_again_v1(p_workspace, coalesce(a.claim_id, a.blocker), a.code, p_nonce,
      p_conversation, p_turn_index, p_position, p_data);
  end if;
  return a;
end $$;

-- The answer to a claim, whatever else there is. `rules_changed`: the tool was edited between the
-- reading of its argument rules and this call; the caller reads them again.
create function ledger_weigh_v1(
  p_workspace bigint, p_tool bigint, p_tool_version int, p_class effects_effect_class, p_key text,
  p_scope bytea, p_turn bytea, p_local bytea, p_call bytea, p_caller bytea, p_repeat bytea,
  p_business bytea, p_arguments_digest bytea, p_arguments text, p_conversation text,
  p_turn_index int, p_position int, p_ordinal int, p_response_id text, p_call_id text,
  p_weak boolean, p_nonce bytea, p_repeat_of uuid, p_data jsonb
) returns ledger_answer language plpgsql as $$
declare
  t record;
  c ledger_claim;
  o ledger_claim;
  me ledger_claim;
  s ledger_stop;
  a ledger_answer;
  now timestamptz;
  lease interval;
  key_window interval;
  margin interval;
  -- A caller's key says nothing about the arguments, and what a person allows is what they saw.
  asker bytea := coalesce(p_turn, sha256(p_caller || p_arguments_digest));
  weak_twins uuid[] := '{}';
  hits int;
  tries int := 0;
  quiet boolean;
begin
  select id, version, effect_class, lease_seconds, window_seconds, margin_seconds, attempts_max,
      hold_in_turn, agent_may_repeat
    into t from effects_tool where id = p_tool and workspace_id = p_workspace;
  a.flags := case when p_weak then '{weak_tool_call_id}'::text[] else '{}' end;
  a.effect_class := greatest(p_class, t.effect_class);
  a.decision_pending := false;
  -- A tool that is gone (the database was restored to before it) was remembered by the asker alone.
  a.rules_changed := coalesce(t.version <> p_tool_version, true);
  if a.rules_changed or a.effect_class = 'read' then
    return a;
  end if;
  lease := make_interval(secs => t.lease_seconds);
  margin := make_interval(secs => t.margin_seconds);

  me.workspace_id := p_workspace;
  me.tool_id := p_tool;
  me.position := p_position;
  me.scope := p_scope;
  me.repeat := p_repeat;
  me.business := p_business;
  me.arguments_digest := p_arguments_digest;
  me.conversation := p_conversation;
  me.turn_index := p_turn_index;
  me.response_id := p_response_id;
  me.call_id := p_call_id;
  me.arguments := p_arguments;

  <<again>> loop
    tries := tries + 1;
    if tries > 5 then
      raise exception 'ledger_weigh_v1: still losing to others' using errcode = '40001';
    end if;
    hits := 0;
    quiet := not exists (select from ledger_claim where scope = p_scope)
      and (p_call is null or not exists (select from ledger_claim where call = p_call))
      and (p_caller is null or not exists (select from ledger_claim where caller = p_caller));
    if not quiet then
      for o in
        select * from ledger_claim
          where scope = p_scope
            and (turn = p_turn or local = p_local or call = p_call or caller = p_caller)
        union all
        select * from ledger_claim where call = p_call and not coalesce(scope = p_scope, false)
        union all
        select * from ledger_claim where caller = p_caller
          and not coalesce(scope = p_scope, false) and not coalesce(call = p_call, false)
        order by id
      loop
        if coalesce(o.call = p_call, false) and coalesce(o.response_id <> p_response_id, false)
            and not coalesce(o.scope = p_scope, false) and not coalesce(o.caller = p_caller, false)
        then
          -- The id was seen in two responses of two turns: it is no identity here.
          p_call := null;
          weak_twins := array_append(weak_twins, o.id);
          continue;
        end if;
        hits := hits + 1;
        if hits = 1 then
          c := o;
        end if;
      end loop;
      if cardinality(weak_twins) > 0 and not 'weak_tool_call_id' = any(a.flags) then
        a.flags := array_append(a.flags, 'weak_tool_call_id');
      end if;
    end if;
    if hits > 1 then
      now := ledger_clock();
      perform ledger_refuse_v1(me, 'identities_disagree', c.id, asker, now);
      a.blocker := c.id;
      a.code := 'identities_disagree';
      return a;
    end if;
    exit when hits = 1;

    perform ledger_guard_v1(p_scope, p_repeat, p_business);
    now := ledger_clock();
    s.flags := '{}';
    s.twins := '{}';
    quiet := quiet and not (exists (select from ledger_claim where scope = p_scope)
        or exists (select from ledger_claim where repeat = p_repeat)
        or p_business is not null
          and exists (select from ledger_claim where business = p_business));
    if not quiet then
      s := ledger_stop_v1(me, t, now, asker, p_response_id, p_repeat_of);
      if s.code is not null then
        perform ledger_refuse_v1(me, s.code, s.blocker, asker, now);
        a.code := s.code;
        a.blocker := s.blocker;
        if s.code = 'already_done' then
          select object, result, result_stored into a.object, a.result, a.result_stored
            from ledger_claim where id = s.blocker;
        end if;
        return a;
      end if;
    end if;
    key_window := case when a.effect_class = 'keyed_write'
      then make_interval(secs => t.window_seconds) end;
    insert into ledger_claim (workspace_id, tool_id, effect_class, budget, granted_at, lease_until,
      window_until, key, conversation, turn_index, position, ordinal, response_id, call_id, nonce,
      flags, scope, turn, local, call, caller, repeat, business, arguments_digest, arguments)
    values (p_workspace, p_tool, a.effect_class, t.attempts_max, now, now + lease,
      now + key_window, p_key, p_conversation, p_turn_index, p_position, p_ordinal, p_response_id,
      p_call_id, p_nonce, a.flags, p_scope, p_turn, p_local, p_call, p_caller, p_repeat, p_business,
      p_arguments_digest, case when octet_length(p_arguments) <= 2048 then p_arguments end)
    on conflict do nothing returning * into c;
    continue again when not found;  -- somebody was faster: look again
    insert into ledger_event (claim_id, seq, at, kind, fence, generation, data)
    values (c.id, 1, now, 'granted', 1, 1, p_data);
    if octet_length(p_arguments) > 2048 then
      insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
      values (p_workspace, c.id, 0, 'arguments', convert_to(p_arguments, 'UTF8'),
        sha256(convert_to(p_arguments, 'UTF8')), octet_length(p_arguments));
    end if;
    if not quiet then
      a := ledger_note_grant_v1(c, a, s, asker, weak_twins, p_weak, p_repeat_of, now);
    end if;
    a.send_within := least(lease, key_window - margin);
    return ledger_told_v1(c, a, 'granted', now, margin);
  end loop;

  if c.arguments_digest <> p_arguments_digest then
    perform ledger_refuse_v1(me, 'mismatch', c.id, asker, ledger_clock());
    a.blocker := c.id;
    a.code := 'mismatch';
    return a;
  end if;
  if c.state = 'completed' and c.pending_at is null then
    return ledger_told_v1(c, a, 'replayed', ledger_clock(), margin);
  end if;
  return ledger_regrant_v1(c, a, me, t, p_response_id, p_nonce, p_repeat_of, p_data);
end $$;

-- Flags on this claim and on those that it resembles; remembered requests that are now answered.
create function ledger_note_grant_v1(
  c ledger_claim, inout a ledger_answer, s ledger_stop, p_asker bytea, p_weak_twins uuid[],
  p_weak boolean, p_repeat_of uuid, p_now timestamptz
) language plpgsql as $$
declare
  same_id uuid[] := '{}';
  flag text;
begin
  if p_weak then
    same_id := array(select id from ledger_claim
      where scope = c.scope and call_id = c.call_id and id <> c.id);
  end if;
  foreach flag in array s.flags
      || case when cardinality(same_id) > 0 then '{duplicate_tool_call_id}'::text[] else '{}' end loop
    if not flag = any(a.flags) then
      a.flags := array_append(a.flags, flag);
    end if;
  end loop;
  perform ledger_flag_v1(s.twins, 'identical_in_turn');
  perform ledger_flag_v1(p_weak_twins, 'weak_tool_call_id');
  perform ledger_flag_v1(same_id, 'duplicate_tool_call_id');
  if a.flags <> c.flags then
    update ledger_claim set flags = array(
        select distinct f from unnest(flags || a.flags) f order by f) where id = c.id;
  end if;
  if 'repeat_of' = any(s.flags) then
    -- The answer is kept even where nobody had been held back: the doubt is gone for all.
    insert into ledger_heldrequest (workspace_id, blocker_id, code, asker, repeat, business,
      conversation, turn_index, at, answered_at, used_at)
    values (c.workspace_id, p_repeat_of, 'already_done', p_asker, c.repeat, c.business,
      c.conversation, c.turn_index, p_now, p_now, p_now)
    on conflict (asker, blocker_id) do nothing;
    update ledger_heldrequest set answered_at = p_now
      where blocker_id = p_repeat_of and answered_at is null;
  end if;
  update ledger_heldrequest set used_at = p_now
    where asker = p_asker and allowed_by is not null and used_at is null;
  delete from ledger_heldrequest where asker = p_asker and allowed_by is null and answered_at is null;
end $$;

-- A known operation: locked (advisory locks first, then the row), moved by the clock, answered.
create function ledger_regrant_v1(
  c ledger_claim, a ledger_answer, asked ledger_claim, t record, p_response_id text, p_nonce bytea,
  p_repeat_of uuid, p_data jsonb
) returns ledger_answer language plpgsql as $$
declare
  l record;
  s ledger_stop;
  now timestamptz;
  own_asker bytea := coalesce(c.turn, sha256(c.caller || c.arguments_digest));
  code ledger_answer_code;
  margin interval := make_interval(secs => t.margin_seconds);
begin
  perform ledger_guard_v1(c.scope, c.repeat, c.business);
  l := ledger_lock_v1(c.workspace_id, c.id);
  c := l.c;
  now := l.now;
  s.flags := '{}';
  s.twins := '{}';
  code := case c.state
    when 'completed' then 'replayed'
    when 'in_flight' then case when c.nonce = p_nonce then 'granted_again' else 'in_flight' end
    when 'conflicted' then 'conflicted'
    when 'closed' then 'closed'
    else 'unknown' end;
  if c.state in ('not_executed', 'released') and c.pending_at is null then
    code := 'granted';
    if c.state = 'not_executed' and c.fence >= c.budget then
      code := 'attempts_exhausted';
      a.blocker := c.id;
    elsif c.state = 'not_executed' then
      s := ledger_stop_v1(c, t, now, own_asker, p_response_id, p_repeat_of);
      code := coalesce(s.code, code);
      a.blocker := s.blocker;
    elsif not c.fresh_key then
      -- The release was asked about siblings when it was decided; one may have run since.
      a.blocker := ledger_sibling_v1(c, now);
      if a.blocker is not null then
        code := 'held';
      end if;
    end if;
  end if;
  if code = 'granted' then
    if c.state = 'released' then
      c.budget := c.budget + 1;
    end if;
    if c.fresh_key or coalesce(now >= c.window_until - margin, false) then
      c.generation := c.generation + 1;
      c.window_until := now + case when c.effect_class = 'keyed_write'
        then make_interval(secs => t.window_seconds) end;
    end if;
    c.fence := c.fence + 1;
    c.lease_until := now + make_interval(secs => t.lease_seconds);
    c.nonce := p_nonce;
    c := ledger_append_v1(c, 'granted', now, p_data => p_data);
    l.moved := true;
    a := ledger_note_grant_v1(c, a, s, own_asker, '{}', false, p_repeat_of, now);
    c.flags := array(select distinct f from unnest(c.flags || a.flags) f order by f);
  elsif code in ('held', 'already_done', 'reissued_differently', 'mismatch', 'attempts_exhausted')
  then
    asked.repeat := c.repeat;
    asked.business := c.business;
    perform ledger_refuse_v1(asked, code, a.blocker, own_asker, now);
  end if;
  if l.moved then
    perform ledger_save_v1(c);
  end if;
  if code in ('granted', 'granted_again') then
    a.send_within := least(c.lease_until - now, c.window_until - margin - now);
  end if;
  return ledger_told_v1(c, a, code, now, margin);
end $$;

-- The answer's common part: what the claim is, and what the asker may do with it.
create function ledger_told_v1(
  c ledger_claim, a ledger_answer, p_code ledger_answer_code, p_now timestamptz, p_margin interval
) returns ledger_answer language plpgsql stable as $$
begin
  a.code := p_code;
  a.claim_id := c.id;
  a.state := c.state;
  a.effect_class := c.effect_class;
  a.reason := case
    when p_code = 'unknown' and c.pending_at is null and c.window_until - p_margin <= p_now
      then 'expired_unanswered' else c.reason end;
  a.fence := c.fence;
  a.generation := c.generation;
  a.lease_until := c.lease_until;
  a.safe_retry_until := c.window_until - p_margin;
  a.decision_pending := c.pending_at is not null;
  a.retry_after := case
    when p_code = 'in_flight' then c.lease_until - p_now
    when c.pending_at is not null then c.pending_at - p_now end;
  if p_code in ('granted', 'granted_again') then
    -- A key that a ledger kept elsewhere has sent is what the provider knows this operation by.
    a.key := case when c.generation = 1 then coalesce(c.sent_key, c.key || '-1')
      else c.key || '-' || c.generation end;
  elsif p_code = 'replayed' then
    a.object := c.object;
    a.result_stored := c.result_stored;
    a.result := c.result;
    if c.result is null and c.result_stored then
      select convert_from(body, 'UTF8') into a.result from ledger_payload
        where claim_id = c.id and name = 'result' order by seq desc limit 1;
    end if;
  end if;
  return a;
end $$;
