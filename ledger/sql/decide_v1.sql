-- What a decision says, as bytes: its place in the workspace's hash chain.
create function ledger_decision_hash_v1(d ledger_decision) returns bytea
language plpgsql immutable as $$
begin
  return sha256(d.previous_hash || convert_to(jsonb_build_array(
    d.chain_number, d.workspace_id, d.claim_id, d.verdict, d.withdraws, d.held_request_id,
    d.claim_version, d.fence, d.object, d.objects_named, d.reason, d.evidence,
    encode(d.screen_hash, 'hex'), d.decided_by_id, d.rule,
    extract(epoch from d.decided_at), extract(epoch from d.effective_at),
    d.typed, d.alone, extract(epoch from d.proposed_at), d.approved_by_id, d.approver_role,
    d.approval_reason)::text, 'UTF8'));
end $$;

-- Appends a decision to its workspace's chain. The chain's lock is taken before any row's.
create function ledger_chain_v1(inout d ledger_decision) language plpgsql as $$
begin
  select chain_number + 1, hash into d.chain_number, d.previous_hash from ledger_decision
    where workspace_id = d.workspace_id order by chain_number desc limit 1;
  if not found then
    d.chain_number := 1;
    d.previous_hash := sha256(convert_to('counterfoil workspace ' || d.workspace_id, 'UTF8'));
  end if;
  d.evidence := coalesce(d.evidence, '{}');
  d.alone := coalesce(d.alone, false);
  d.hash := ledger_decision_hash_v1(d);
  insert into ledger_decision (workspace_id, claim_id, verdict, withdraws, held_request_id,
    claim_version, fence, object, objects_named, reason, evidence, screen_hash, decided_by_id, rule,
    decided_at, effective_at, typed, alone, proposed_at, approved_by_id, approver_role,
    approval_reason, chain_number, previous_hash, hash)
  values (d.workspace_id, d.claim_id, d.verdict, d.withdraws, d.held_request_id,
    d.claim_version, d.fence, d.object, d.objects_named, d.reason, d.evidence, d.screen_hash,
    d.decided_by_id, d.rule, d.decided_at, d.effective_at, d.typed, d.alone, d.proposed_at,
    d.approved_by_id, d.approver_role, d.approval_reason, d.chain_number, d.previous_hash, d.hash)
  returning id into d.id;
end $$;

create function ledger_chain_lock_v1(p_workspace bigint) returns void language sql as $$
  select pg_advisory_xact_lock(1667657327, p_workspace::int)
$$;

-- Every link of a workspace's chain that does not fit; empty when the chain is whole.
create function ledger_verify_chain_v1(p_workspace bigint)
returns table (decision_id bigint, fault text) language sql stable as $$
  select d.id, case
      when d.chain_number <> d.expected_number then 'number'
      when d.previous_hash <> d.expected_hash then 'previous_hash'
      else 'hash' end
  from (
    select x.*, row_number() over w as expected_number,
      coalesce(lag(x.hash) over w,
        sha256(convert_to('counterfoil workspace ' || p_workspace, 'UTF8'))) as expected_hash,
      ledger_decision_hash_v1(x) as own_hash
    from ledger_decision x where x.workspace_id = p_workspace
    window w as (order by x.chain_number)
  ) d
  where d.chain_number <> d.expected_number or d.previous_hash <> d.expected_hash
    or d.hash <> d.own_hash
$$;

-- What two people bring to one decision, or one who is alone. `second` is who said yes, `roles` are
-- the roles that the second person may have; `typed` is the amount as the first person typed it.
create type ledger_consent as (
  typed text, alone boolean, proposed_at timestamptz, second bigint, roles effects_role[],
  second_reason text
);

-- Puts the consent on the decision and answers null, or answers why it does not hold now. Nobody is
-- their own second person; the second one is an active person of this workspace with the role.
create function ledger_consent_v1(inout d ledger_decision, k ledger_consent, out why text)
language plpgsql as $$
begin
  d.typed := (k).typed;
  d.alone := coalesce((k).alone, false);
  d.proposed_at := (k).proposed_at;
  if (k).second is not null then
    select m.role into d.approver_role
      from effects_membership m join auth_user u on u.id = m.user_id
      where m.workspace_id = d.workspace_id and m.user_id = (k).second and u.is_active
        and m.user_id is distinct from d.decided_by_id
        and m.role = any((k).roles) and m.role in ('support', 'lead', 'admin');
    d.approved_by_id := (k).second;
    d.approval_reason := (k).second_reason;
    if d.approver_role is null or d.decided_by_id is null or d.alone then
      why := 'second_person';
    end if;
  elsif d.alone then
    -- Alone is only who has nobody to ask.
    if d.decided_by_id is null or exists (
        select from effects_membership m join auth_user u on u.id = m.user_id
        where m.workspace_id = d.workspace_id and m.user_id <> d.decided_by_id and u.is_active
          and m.role in ('lead', 'admin')) then
      why := 'not_alone';
    end if;
  elsif d.verdict = 'release_new' and d.decided_by_id is not null then
    why := 'second_person';
  end if;
end $$;

-- A verdict of a person or a rule: compare-and-set on the claim's version, held for a while.
-- The page offers only what is safe; what the record alone can rule out is ruled out here as well.
create function ledger_decide_v1(
  p_workspace bigint, p_claim uuid, p_version int, p_verdict ledger_verdict, p_hold interval,
  p_object text, p_objects text[], p_reason text, p_evidence int[], p_screen bytea, p_user bigint,
  p_rule text, p_consent ledger_consent,
  out word text, out decision_id bigint, out effective_at timestamptz, out version int, out why text
) language plpgsql as $$
declare
  l record;
  k record;
  c ledger_claim;
  d ledger_decision;
begin
  perform ledger_chain_lock_v1(p_workspace);
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  if l.moved then
    perform ledger_save_v1(c);
  end if;
  version := c.version;
  if c.version <> p_version or c.pending_decision_id is not null then
    word := 'stale';
    return;
  end if;
  d.workspace_id := p_workspace;
  d.claim_id := p_claim;
  d.verdict := p_verdict;
  d.claim_version := c.version;
  d.fence := c.fence;
  d.object := p_object;
  d.objects_named := p_objects;
  d.reason := p_reason;
  d.evidence := p_evidence;
  d.screen_hash := p_screen;
  d.decided_by_id := p_user;
  d.rule := p_rule;
  d.decided_at := l.now;
  d.effective_at := l.now + p_hold;
  why := ledger_offered_v1(c, p_verdict, p_object, p_objects, l.now, d.effective_at);
  if why is null then
    k := ledger_consent_v1(d, p_consent);
    d := k.d;
    why := k.why;
  end if;
  if why is not null then
    word := 'not_offered';
    return;
  end if;
  d := ledger_chain_v1(d);
  c := ledger_append_v1(c, 'decision_held', l.now, p_decision => d.id);
  c.pending_at := d.effective_at;
  c.pending_decision_id := d.id;
  perform ledger_save_v1(c);
  if p_hold <= interval '0' then
    l := ledger_lock_v1(p_workspace, p_claim);
    perform ledger_save_v1(l.c);
    c := l.c;
  end if;
  word := 'held';
  decision_id := d.id;
  effective_at := d.effective_at;
  version := c.version;
end $$;

-- Null when the record allows the verdict, in force from p_at on; else why not.
create function ledger_offered_v1(
  c ledger_claim, p_verdict ledger_verdict, p_object text, p_objects text[], p_now timestamptz,
  p_at timestamptz
) returns text language plpgsql as $$
declare
  exhausted boolean := c.state = 'not_executed' and c.fence >= c.budget and c.grant_until is null;
  margin interval := (select make_interval(secs => margin_seconds) from effects_tool
    where id = c.tool_id);
  effects text[] := (ledger_fold_v1(ledger_facts_v1(c.id))).effects;
  fits boolean := case p_verdict
    when 'happened' then c.state = 'unknown'
    when 'not_happened' then c.state = 'unknown'
    when 'release_same' then c.state = 'unknown' or exhausted
    when 'release_new' then c.state = 'unknown' or exhausted
    when 'lost' then c.state = 'in_flight'
    when 'close' then c.state in ('in_flight', 'unknown', 'not_executed', 'released')
    -- A contradiction knows no second effect: it is not settled but reopened.
    when 'settle' then c.state = 'conflicted' and cardinality(effects) >= 2
    when 'reopen' then c.state in ('completed', 'not_executed', 'closed')
      or c.state = 'conflicted' and cardinality(effects) < 2
    else false end;
begin
  if not fits then
    return 'state';
  end if;
  if p_verdict = 'settle' and not coalesce(cardinality(p_objects) >= 2 and effects <@ p_objects
      and (p_object is null or p_object = any(effects)), false) then
    return 'effects_not_named';
  end if;
  -- What an attempt that still runs is about to say must not be rejected beforehand.
  if p_verdict = 'reopen' and p_now < c.lease_until and not exists (
      select from ledger_event e where e.claim_id = c.id and e.fence = c.fence
        and e.kind in ('reported', 'lapsed', 'decided')) then
    return 'running';
  end if;
  if p_verdict = 'release_same' then
    if c.window_until is null then
      return 'no_window';
    elsif p_at >= c.window_until - margin then
      return 'window_closed';
    elsif c.fresh_key then
      return 'key_burnt';
    end if;
  end if;
  if p_verdict in ('release_same', 'not_happened') and ledger_sibling_v1(c, p_at) is not null then
    return 'sibling';
  end if;
  return null;
end $$;

-- Holds a decision longer: a person needs more time to be sure. Bounded by p_max from the moment at
-- which it was made, and, for a release with the same key, by its window. Answers the new instant,
-- null when it is too late or another decision is held.
create function ledger_hold_v1(
  p_workspace bigint, p_claim uuid, p_decision bigint, p_user bigint, p_by interval, p_max interval
) returns timestamptz language plpgsql as $$
declare
  l record;
  c ledger_claim;
  d ledger_decision;
  bound timestamptz;
begin
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  if c.pending_decision_id is distinct from p_decision or p_decision is null then
    if l.moved then
      perform ledger_save_v1(c);
    end if;
    return null;
  end if;
  select * into strict d from ledger_decision where id = p_decision;
  bound := d.decided_at + p_max;
  if d.verdict = 'release_same' then
    bound := least(bound, c.window_until - (select make_interval(secs => margin_seconds)
      from effects_tool where id = c.tool_id) - interval '5 minutes');
  end if;
  bound := least(bound, c.pending_at + p_by);
  if bound > c.pending_at then
    c.pending_at := bound;
    c := ledger_append_v1(c, 'hold_extended', l.now, p_decision => p_decision,
      p_data => jsonb_build_object('user_id', p_user, 'until', bound));
    perform ledger_save_v1(c);
  end if;
  return c.pending_at;
end $$;

-- Takes back a decision that is still held. False: too late, or not the one that is held.
create function ledger_withdraw_v1(
  p_workspace bigint, p_claim uuid, p_decision bigint, p_user bigint
) returns boolean language plpgsql as $$
declare
  l record;
  c ledger_claim;
  d ledger_decision;
begin
  perform ledger_chain_lock_v1(p_workspace);
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  if c.pending_decision_id is distinct from p_decision or p_decision is null then
    if l.moved then
      perform ledger_save_v1(c);
    end if;
    return false;
  end if;
  d.workspace_id := p_workspace;
  d.claim_id := p_claim;
  d.verdict := 'withdraw';
  d.withdraws := p_decision;
  d.claim_version := c.version;
  d.fence := c.fence;
  d.reason := '';
  d.decided_by_id := p_user;
  d.decided_at := l.now;
  d.effective_at := l.now;
  d := ledger_chain_v1(d);
  c := ledger_append_v1(c, 'decision_withdrawn', l.now, p_decision => d.id);
  c.pending_at := null;
  c.pending_decision_id := null;
  perform ledger_save_v1(c);
  return true;
end $$;

-- Lets one remembered request run beside its blocker. Used once, in force at once.
create function ledger_allow_v1(
  p_workspace bigint, p_held bigint, p_version int, p_user bigint, p_reason text, p_evidence int[],
  p_screen bytea, p_consent ledger_consent,
  out word text, out decision_id bigint, out version int, out why text
) language plpgsql as $$
declare
  h ledger_heldrequest;
  d ledger_decision;
  c ledger_claim;
  k record;
begin
  perform ledger_chain_lock_v1(p_workspace);
  select * into h from ledger_heldrequest
    where id = p_held and workspace_id = p_workspace and answered_at is null for update;
  if not found then
    word := 'answered';
    return;
  end if;
  select * into strict c from ledger_claim where id = h.blocker_id;
  version := c.version;
  if c.version <> p_version then
    word := 'stale';
    return;
  end if;
  d.workspace_id := p_workspace;
  d.claim_id := h.blocker_id;
  d.verdict := 'allow';
  d.held_request_id := h.id;
  d.claim_version := c.version;
  d.fence := c.fence;
  d.reason := p_reason;
  d.evidence := p_evidence;
  d.screen_hash := p_screen;
  d.decided_by_id := p_user;
  d.decided_at := ledger_clock();
  d.effective_at := d.decided_at;
  k := ledger_consent_v1(d, p_consent);
  d := k.d;
  why := k.why;
  if why is not null then
    word := 'not_offered';
    return;
  end if;
  d := ledger_chain_v1(d);
  update ledger_heldrequest set allowed_by = d.id, answered_at = d.decided_at where id = h.id;
  word := 'allowed';
  decision_id := d.id;
end $$;

-- A person has looked at a case and says what it was. Asked again after that, it is open again.
create function ledger_close_case_v1(
  p_workspace bigint, p_case bigint, p_user bigint, p_note text
) returns boolean language plpgsql as $$
begin
  update ledger_case set closed_at = ledger_clock(), closed_by_id = p_user, closed_note = p_note,
    closed_seen = seen
  where id = p_case and workspace_id = p_workspace and closed_seen is distinct from seen;
  return found;
end $$;

-- A person's note: evidence of source "person". It moves nothing.
create function ledger_note_v1(p_workspace bigint, p_claim uuid, p_data jsonb) returns int
language plpgsql as $$
declare
  l record;
  c ledger_claim;
begin
  l := ledger_lock_v1(p_workspace, p_claim);
  c := ledger_append_v1(l.c, 'noted', l.now, p_data => p_data);
  perform ledger_save_v1(c);
  return c.version;
end $$;
