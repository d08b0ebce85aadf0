-- Leases of first attempts have no row in ledger_due: writing one for every claim would cost the
-- hot path. Ids are ordered by time, so what is still in flight a while after its claim was made is
-- filed once, in the order of ids, from a watermark on. Younger claims are looked at directly. The
-- watermark never passes the start of a transaction that has written and not ended: its claim would
-- appear behind it, and nobody would ever look there.
create function ledger_file_leases_v1(p_limit int) returns setof uuid language plpgsql as $$
declare
  mark uuid;
  horizon uuid := uuidv7(least(interval '-15 seconds', (
    select min(xact_start) - clock_timestamp() from pg_stat_activity
    where backend_xid is not null and pid <> pg_backend_pid() and datname = current_database())));
begin
  insert into ledger_watermark (name, claim_id)
  select 'leases', '00000000-0000-7000-8000-000000000000'
  where not exists (select from ledger_watermark where name = 'leases') on conflict do nothing;
  select claim_id into mark from ledger_watermark where name = 'leases' for update skip locked;
  if not found then
    return;  -- somebody else is sweeping
  end if;
  if mark < horizon then
    insert into ledger_due (claim_id, why, workspace_id, at, since)
    select id, 'clock', workspace_id, lease_until, ledger_clock() from ledger_claim
      where id > mark and id <= horizon and state = 'in_flight'
    on conflict (claim_id, why) do nothing;
    update ledger_watermark set claim_id = horizon where name = 'leases';
  end if;
  return query select id from ledger_claim
    where id > greatest(mark, horizon) and state = 'in_flight' and lease_until <= ledger_clock()
    order by id limit p_limit;
end $$;

-- Claims that the clock has something to say about.
create function ledger_due_by_clock_v1(p_limit int) returns setof uuid language sql as $$
  select claim_id from ledger_due where why = 'clock' and at <= ledger_clock()
  order by at limit p_limit
$$;

-- Lets the clock speak, and files what comes next.
create function ledger_touch_v1(p_workspace bigint, p_claim uuid) returns ledger_claim_state
language plpgsql as $$
declare
  l record;
begin
  l := ledger_lock_v1(p_workspace, p_claim);
  perform ledger_save_v1(l.c);
  return (l.c).state;
end $$;

-- Look-ups that are due, each handed to one asker: their time moves on by the lease at once.
create function ledger_take_lookups_v1(p_limit int, p_lease interval)
returns table (claim_id uuid, workspace_id bigint, tries int, since timestamptz)
language sql as $$
  with taken as (
    select d.claim_id from ledger_due d
    where d.why = 'lookup' and d.at <= ledger_clock()
    order by d.at limit p_limit for update skip locked
  )
  update ledger_due d set at = ledger_clock() + p_lease, tries = d.tries + 1
  from taken where d.claim_id = taken.claim_id and d.why = 'lookup'
  returning d.claim_id, d.workspace_id, d.tries, d.since
$$;

-- Null: there is nothing more to ask, until an attempt ends or the tool's look-up changes.
-- A plan that was made from what was known at p_known_at never replaces one that an attempt's end
-- made since.
create function ledger_schedule_lookup_v1(
  p_claim uuid, p_at timestamptz, p_known_at timestamptz
) returns void language sql as $$
  update ledger_due set at = p_at
  where claim_id = p_claim and why = 'lookup' and since <= p_known_at
$$;

-- A tool can be asked about in a new way: its open claims are due now, whatever was planned.
create function ledger_resume_lookups_v1(p_workspace bigint, p_tool bigint) returns int
language sql as $$
  with resumed as (
    update ledger_due d set at = ledger_clock(), tries = 0
    from ledger_claim c
    where d.why = 'lookup' and (d.at is null or d.at > ledger_clock()) and c.id = d.claim_id
      and c.workspace_id = p_workspace and c.tool_id = p_tool
    returning 1
  )
  select count(*)::int from resumed
$$;

-- Calls that were settled after a person could see them as undecided are kept for a while, so that
-- "resolved today" needs no search through every event.
create function ledger_forget_settled_v1() returns void language sql as $$
  delete from ledger_due where why = 'settled' and at < ledger_clock() - interval '3 days'
$$;
