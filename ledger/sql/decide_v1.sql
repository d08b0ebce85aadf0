-- What a decision says, as bytes: its place in the workspace's hash chain.
create function ledger_decision_hash_v1(d ledger_decision) returns bytea language sql immutable as $$
  select sha256(d.previous_hash || convert_to(jsonb_build_array(
    d.chain_number, d.workspace_id, d.claim_id, d.verdict, d.withdraws, d.held_request_id,
    d.claim_version, d.fence, d.object, d.objects_named, d.reason, d.evidence,
    encode(d.screen_hash, 'hex'), d.decided_by_id, d.rule,
    extract(epoch from d.decided_at), extract(epoch from d.effective_at))::text, 'UTF8'))
$$;

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
  d.hash := ledger_decision_hash_v1(d);
  insert into ledger_decision (workspace_id, claim_id, verdict, withdraws, held_request_id,
    claim_version, fence, object, objects_named, reason, evidence, screen_hash, decided_by_id, rule,
    decided_at, effective_at, chain_number, previous_hash, hash)
  values (d.workspace_id, d.claim_id, d.verdict, d.withdraws, d.held_request_id,
    d.claim_version, d.fence, d.object, d.objects_named, d.reason, d.evidence, d.screen_hash,
    d.decided_by_id, d.rule, d.decided_at, d.effective_at, d.chain_number, d.previous_hash, d.hash)
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

-- A verdict of a person or a rule: compare-and-set on the claim's version, held for a while.
-- The page offers only what is safe; what the record alone can rule out is ruled out here as well.
create function ledger_decide_v1(
  p_workspace bigint, p_claim uuid, p_version int, p_verdict ledger_verdict, p_hold interval,
  p_object text, p_objects text[], p_reason text, p_evidence int[], p_screen bytea, p_user bigint,
  p_rule text,
  out word text, out decision_id bigint, out effective_at timestamptz, out version int, out why text
) language plpgsql as $$
declare
  l record;
  c ledger_claim;
  d ledger_decision;
  sibling uuid;
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
  why := ledger_offered_v1(c, p_verdict, p_objects, l.now + p_hold);
  if why is not null then
    word := 'not_offered';
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

-- Null when the record allows the verdict at p_at; else why not.
create function ledger_offered_v1(
  c ledger_claim, p_verdict ledger_verdict, p_objects text[], p_at timestamptz
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
    when 'settle' then c.state = 'conflicted'
    when 'reopen' then c.state in ('completed', 'not_executed', 'closed')
      or c.state = 'conflicted' and cardinality(effects) < 2
    else false end;
begin
  if not fits then
    return 'state';
  end if;
  if p_verdict = 'settle'
      and not (coalesce(cardinality(p_objects), 0) >= 2 and effects <@ p_objects) then
    return 'effects_not_named';
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

-- Lets one remembered request run beside its blocker. Used once.
create function ledger_allow_v1(
  p_workspace bigint, p_held bigint, p_user bigint, p_reason text
) returns bigint language plpgsql as $$
declare
  h ledger_heldrequest;
  d ledger_decision;
  c ledger_claim;
  now timestamptz;
begin
  perform ledger_chain_lock_v1(p_workspace);
  select * into h from ledger_heldrequest
    where id = p_held and workspace_id = p_workspace and answered_at is null for update;
  if not found then
    return null;
  end if;
  now := ledger_clock();
  select * into strict c from ledger_claim where id = h.blocker_id;
  d.workspace_id := p_workspace;
  d.claim_id := h.blocker_id;
  d.verdict := 'allow';
  d.held_request_id := h.id;
  d.claim_version := c.version;
  d.fence := c.fence;
  d.reason := p_reason;
  d.decided_by_id := p_user;
  d.decided_at := now;
  d.effective_at := now;
  d := ledger_chain_v1(d);
  update ledger_heldrequest set allowed_by = d.id, answered_at = now where id = h.id;
  return d.id;
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
