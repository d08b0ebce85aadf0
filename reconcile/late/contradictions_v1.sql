-- What was told and is contradicted is noted in the transaction that contradicts it, so that nobody
-- who has to hear of it is forgotten. On the way of an ordinary call the condition never holds. What
-- another ledger tells of its own calls comes in any order and contradicts nothing that we told.
create function reconcile_contradiction_v1() returns trigger language plpgsql as $$
begin
  insert into reconcile_contradiction (workspace_id, claim_id, version, told, became, at)
  values (new.workspace_id, new.id, new.version, old.state::text, new.state::text, ledger_clock())
  on conflict (claim_id, version) do nothing;
  return null;
end $$;
create trigger reconcile_contradiction after update on ledger_claim for each row
  when (old.state in ('completed', 'not_executed', 'closed')
    and new.state in ('completed', 'conflicted') and old.state <> new.state
    and not 'mirrored' = any (new.flags))
  execute function reconcile_contradiction_v1();
