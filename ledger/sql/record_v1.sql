-- The only clock that judges. Tests and the demo replace this function; production never does.
create function ledger_clock() returns timestamptz language sql volatile
as $$ select clock_timestamp() $$;

-- An event is never changed and never removed. TRUNCATE is left to the owner of the database,
-- whose tests need it; the application's role does not have that right.
create function ledger_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger ledger_event_append_only before update or delete on ledger_event
  for each statement execute function ledger_refuse_change();
create trigger ledger_decision_append_only before update or delete on ledger_decision
  for each statement execute function ledger_refuse_change();

-- An attempt is what was granted, and the strongest of its reports; it has no row of its own.
create view ledger_attempt as
select g.claim_id, g.fence, g.generation, g.at as granted_at,
  (select min(s.at) from ledger_event s
    where s.claim_id = g.claim_id and s.kind = 'sent' and s.fence = g.fence) as sent_at,
  coalesce(r.at, l.at) as ended_at, r.word as outcome, r.object, r.replayed, r.marker_sent,
  g.data as granted_data, r.data
from ledger_event g
left join lateral (
  select e.at, e.word, e.object, e.replayed, e.marker_sent, e.data from ledger_event e
  where e.claim_id = g.claim_id and e.kind = 'reported' and e.fence = g.fence
  order by array_position(
    array['completed', 'refused_stored', 'refused', 'not_sent', 'unknown']::ledger_event_word[],
    e.word), e.object nulls last, e.seq
  limit 1) r on true
left join lateral (
  select e.at from ledger_event e
  where e.claim_id = g.claim_id and e.kind = 'lapsed' and e.fence = g.fence
  order by e.seq limit 1) l on true
where g.kind = 'granted';

alter table ledger_claim set (fillfactor = 80);
