-- The claim as its facts make it at p_at: state, permission, dates. Nothing is written here.
create function ledger_refold_v1(inout c ledger_claim, p_facts ledger_fact[], p_at timestamptz)
language plpgsql stable as $$
declare
  f ledger_folded := ledger_fold_v1(p_facts);
  closes timestamptz;
  lapses timestamptz;
begin
  c.completed_at := case
    when f.state <> 'completed' then null
    when c.state = 'completed' then c.completed_at
    else p_at end;
  c.reason := case
    when f.state in ('completed', 'conflicted') and c.state in ('not_executed', 'closed')
      -- What was told is contradicted also where no second effect is known.
      or f.state = 'conflicted' and c.state = 'completed' and cardinality(f.effects) < 2
      then 'told_otherwise'
    when f.state = c.state then c.reason end;
  c.state := f.state;
  c.fresh_key := f.fresh_key;
  c.open_truth := f.open_truth;
  c.grant_until := null;
  if f.state = 'released' or f.conditional then
    select c.window_until - make_interval(secs => margin_seconds),
        c.decided_at + make_interval(secs => release_lapse_minutes * 60)
      into closes, lapses from effects_tool where id = c.tool_id;
    c.grant_until := case
      when f.conditional then closes
      when f.fresh_key then lapses
      else least(lapses, closes) end;
  end if;
  if c.object is null and c.state = 'completed' and f.effects[1] !~ '^(attempt|generation) ' then
    c.object := f.effects[1];
  end if;
end $$;

-- What the clock alone does, in this order: a lease that is over, a decision that is due, a
-- permission that has lapsed; again until nothing is due. Nothing is written here either, so that
-- another claim's state can be asked without locking it.
create function ledger_advance_v1(
  inout c ledger_claim, p_now timestamptz, out steps ledger_step[]
) language plpgsql stable as $$
declare
  facts ledger_fact[];
  fact ledger_fact;
  d ledger_decision;
  step_at timestamptz;
begin
  steps := '{}';
  loop
    d := null;
    fact := row(c.version + 1, null, null, c.fence, c.generation, null, null, false, false);
    if c.state = 'in_flight' and p_now >= c.lease_until then
      fact.kind := 'lapsed';
      step_at := c.lease_until;
    elsif c.pending_at <= p_now then
      select * into strict d from ledger_decision where id = c.pending_decision_id;
      fact.kind := 'decided';
      fact.word := d.verdict::text;
      fact.object := d.object;
      fact.objects := d.objects_named;
      step_at := c.pending_at;
      c.pending_at := null;
      c.pending_decision_id := null;
      c.decided_at := step_at;
    elsif p_now >= c.grant_until then
      fact.kind := case when c.state = 'released' then 'release_lapsed' else 'absence_lapsed' end;
      step_at := c.grant_until;
    else
      return;
    end if;
    facts := coalesce(facts, ledger_facts_v1(c.id)) || fact;
    c.version := fact.seq;
    -- A reopening withdraws what was told. Of two effects, the one that stands is told from then on;
    -- a result belongs to the effect that it was reported with.
    if d.verdict = 'reopen'
        or d.verdict = 'settle' and d.object is not null and d.object is distinct from c.object then
      c.object := d.object;
      c.result := null;
      c.result_stored := null;
    end if;
    c := ledger_refold_v1(c, facts, step_at);
    if c.state = 'unknown' and fact.kind <> 'decided' then
      c.reason := case fact.kind when 'lapsed' then 'lease_over' else fact.kind::text end;
    end if;
    steps := steps || row(step_at, fact, d.id)::ledger_step;
  end loop;
end $$;

-- The only door to a row: lock it, then read the clock, then let the clock speak.
create function ledger_lock_v1(
  p_workspace bigint, p_claim uuid, out c ledger_claim, out now timestamptz, out moved boolean
) language plpgsql as $$
declare
  advanced record;
begin
  select * into c from ledger_claim where id = p_claim and workspace_id = p_workspace for update;
  if not found then
    raise exception 'claim % is not in workspace %', p_claim, p_workspace
      using errcode = 'no_data_found';
  end if;
  now := ledger_clock();
  moved := false;
  if c.state = 'in_flight' and now >= c.lease_until
      or c.pending_at <= now or now >= c.grant_until then
    advanced := ledger_advance_v1(c, now);
    c := advanced.c;
    insert into ledger_event
      (claim_id, seq, at, kind, word, fence, generation, object, objects_seen, decision_id)
    select c.id, (s.fact).seq, s.at, (s.fact).kind, (s.fact).word, (s.fact).fence,
      (s.fact).generation, (s.fact).object, (s.fact).objects, s.decision_id
    from unnest(advanced.steps) s;
    moved := true;
  end if;
end $$;

-- Writes an event and what the claim now amounts to.
create function ledger_append_v1(
  inout c ledger_claim, p_kind ledger_event_kind, p_at timestamptz,
  p_word ledger_event_word default null, p_fence int default null, p_object text default null,
  p_objects text[] default null, p_replayed boolean default null, p_marker boolean default null,
  p_counts boolean default null, p_conditional boolean default null,
  p_decision bigint default null, p_data jsonb default null
) language plpgsql as $$
declare
  spoken_of int := coalesce(p_fence, c.fence);
begin
  c.version := c.version + 1;
  insert into ledger_event
    (claim_id, seq, at, kind, word, fence, generation, object, objects_seen, replayed, marker_sent,
     counts, conditional, decision_id, data)
  values
    (c.id, c.version, p_at, p_kind, p_word, spoken_of,
     case when p_kind = 'granted' then c.generation else
       (select e.generation from ledger_event e
        where e.claim_id = c.id and e.kind = 'granted' and e.fence = spoken_of) end,
     p_object, p_objects, p_replayed, p_marker, p_counts, p_conditional, p_decision, p_data);
  c := ledger_refold_v1(c, ledger_facts_v1(c.id), p_at);
end $$;

-- A fact from outside cancels a decision that is still in its minute.
create function ledger_cancel_v1(inout c ledger_claim, p_at timestamptz) language plpgsql as $$
begin
  if c.pending_decision_id is not null then
    c := ledger_append_v1(c, 'decision_cancelled', p_at, p_decision => c.pending_decision_id);
    c.pending_at := null;
    c.pending_decision_id := null;
  end if;
end $$;

-- Saves the row and files what the clock and the look-ups will have to do.
create function ledger_save_v1(c ledger_claim) returns void language plpgsql as $$
declare
  next_at timestamptz := least(
    case when c.state = 'in_flight' then c.lease_until end, c.pending_at, c.grant_until);
begin
  update ledger_claim set
    state = c.state, reason = c.reason, version = c.version, fence = c.fence,
    generation = c.generation, budget = c.budget, fresh_key = c.fresh_key,
    open_truth = c.open_truth, completed_at = c.completed_at, decided_at = c.decided_at,
    lease_until = c.lease_until, window_until = c.window_until, grant_until = c.grant_until,
    pending_at = c.pending_at, pending_decision_id = c.pending_decision_id, nonce = c.nonce,
    flags = c.flags, object = c.object, result = c.result, result_stored = c.result_stored
  where id = c.id;
  if next_at is null then
    delete from ledger_due where claim_id = c.id and why = 'clock';
  else
    insert into ledger_due (claim_id, why, workspace_id, at, since)
    values (c.id, 'clock', c.workspace_id, next_at, ledger_clock())
    on conflict (claim_id, why) do update set at = excluded.at
      where ledger_due.at is distinct from excluded.at;
  end if;
  if not c.open_truth then
    delete from ledger_due where claim_id = c.id and why = 'lookup';
  elsif c.state <> 'in_flight' then
    insert into ledger_due (claim_id, why, workspace_id, at, since)
    values (c.id, 'lookup', c.workspace_id, ledger_clock(), ledger_clock())
    -- An attempt that has just ended is asked about soon, whatever was planned for earlier ones.
    on conflict (claim_id, why) do update
      set at = least(ledger_due.at, excluded.at), since = excluded.since, tries = 0
      where (
        select e.kind in ('reported', 'lapsed', 'release_lapsed', 'absence_lapsed', 'decided')
        from ledger_event e where e.claim_id = c.id and e.seq = c.version);
  end if;
  -- What a person may have to look at is listed here until it is settled, because no index of
  -- claims names their state.
  if c.state in ('unknown', 'conflicted', 'released', 'closed')
      or c.state = 'not_executed' and c.fence >= c.budget then
    insert into ledger_due (claim_id, why, workspace_id, since)
    values (c.id, 'person', c.workspace_id, ledger_clock())
    on conflict (claim_id, why) do nothing;
  elsif c.state in ('completed', 'not_executed') then
    with listed as (
      delete from ledger_due where claim_id = c.id and why = 'person' returning workspace_id
    )
    insert into ledger_due (claim_id, why, workspace_id, at, since)
    select c.id, 'settled', workspace_id, ledger_clock(), ledger_clock() from listed
    on conflict (claim_id, why) do update set at = excluded.at;
  end if;
end $$;
