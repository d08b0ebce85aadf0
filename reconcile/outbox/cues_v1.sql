-- What may be news for an agent is noted in the transaction that makes it, so that neither a crash
-- nor a broker can lose it. On the way of an ordinary call (granted, reported as done) no condition
-- below holds, and nothing is written; nor is anything where nobody waits for news.
create function reconcile_cue_v1(p_workspace bigint, p_claim uuid, p_seq int) returns void
language sql as $$
  insert into reconcile_outboxcue (workspace_id, claim_id, seq, at, due_at)
  select p_workspace, p_claim, p_seq, ledger_clock(), ledger_clock()
  where exists (select from reconcile_agentaddress
    where workspace_id = p_workspace and retired_at is null)
$$;

create function reconcile_event_cue_v1() returns trigger language plpgsql as $$
begin
  perform reconcile_cue_v1(c.workspace_id, c.id, new.seq)
    from ledger_claim c where c.id = new.claim_id;
  return null;
end $$;
create trigger reconcile_event_cue after insert on ledger_event for each row
  when (new.kind in ('decided', 'decision_cancelled', 'lapsed', 'release_lapsed', 'absence_lapsed')
    or new.kind = 'sighting' and new.counts)
  execute function reconcile_event_cue_v1();

-- A late report moves a claim without any of these: only its state tells.
create function reconcile_claim_cue_v1() returns trigger language plpgsql as $$
begin
  perform reconcile_cue_v1(new.workspace_id, new.id, 0);
  return null;
end $$;
create trigger reconcile_claim_cue after update on ledger_claim for each row
  when (old.state <> 'in_flight' and old.state is distinct from new.state)
  execute function reconcile_claim_cue_v1();
