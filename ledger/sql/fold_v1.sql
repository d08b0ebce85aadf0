-- The fold: the same law as effects/core/fold.py, which states it in full. Facts are a set; acts
-- (grants, decisions, lapses) are ordered by seq. Digests and words may be null: compare with care.
create function ledger_facts_v1(p_claim uuid) returns ledger_fact[] language sql stable as $$
  select array_agg((seq, kind, word, fence, generation, object, objects_seen,
      coalesce(replayed, false), coalesce(conditional, false))::ledger_fact order by seq)
  from ledger_event
  where claim_id = p_claim
    and (kind in ('granted', 'reported', 'lapsed', 'decided', 'release_lapsed', 'absence_lapsed')
      or kind = 'sighting' and counts)
$$;

create function ledger_fold_v1(facts ledger_fact[]) returns ledger_folded
language plpgsql immutable as $$
declare
  f ledger_folded;
  last ledger_fact;
  newest int;
  newest_generation smallint;
  reopened int;
  settled int;
  release_lapsed int;
  absence_lapsed int;
  named text[];
  unnamed text[];
  found text[];
  seen text[];
  did_not_last text[];
  accepted text[];
  burnt boolean;
  ended boolean;
  released boolean;
  firm boolean;
  proven boolean;
  disproven boolean;
  denied boolean;
begin
  -- An attempt from a ledger kept elsewhere has a key of its own, a negative generation here.
  select max(e.fence), greatest(max(e.generation), 1) into newest, newest_generation
    from unnest(facts) e where e.kind = 'granted';
  select e.* into last from unnest(facts) e where e.kind = 'decided' order by e.seq desc limit 1;

  select coalesce(max(e.seq) filter (where e.kind = 'decided' and e.word = 'reopen'), 0),
      coalesce(max(e.seq) filter (where e.kind = 'decided' and e.word = 'settle'), 0),
      coalesce(max(e.seq) filter (where e.kind = 'release_lapsed'), 0),
      coalesce(max(e.seq) filter (where e.kind = 'absence_lapsed'), 0),
      coalesce(bool_or(e.kind = 'reported' and e.word = 'refused_stored'
        and e.generation = newest_generation), false),
      coalesce(bool_or(e.fence = newest and e.kind in ('reported', 'lapsed', 'decided')), false)
    into reopened, settled, release_lapsed, absence_lapsed, burnt, ended
    from unnest(facts) e;

  -- Every effect that somebody saw: provider objects, and completions that named none.
  with completion as (
    select e.fence, e.generation, e.object, e.replayed from unnest(facts) e
    where e.kind = 'reported' and e.word = 'completed' and e.seq > reopened
  ), attempt as (
    select fence, generation, bool_or(object is not null) as naming, bool_or(replayed) as replay
    from completion group by fence, generation
  ), generation as (
    select attempt.generation, bool_or(naming or not replay) as told, bool_or(replay) as replayed
    from attempt group by attempt.generation
  )
  select coalesce((select array_agg(distinct object) from completion where object is not null), '{}'),
      array(select 'attempt ' || fence from attempt where not naming and not replay)
        || array(select 'generation ' || g.generation from generation g where replayed and not told)
    into named, unnamed;
  select coalesce(array_agg(distinct o), '{}') into found from (
    select unnest(e.objects) as o from unnest(facts) e
    where e.kind = 'sighting' and e.word in ('found', 'found_many') and e.seq > reopened) s;
  select coalesce(array_agg(distinct o), '{}') into did_not_last from (
    select unnest(e.objects) as o from unnest(facts) e
    where e.kind = 'sighting' and e.word = 'found_different'
      and e.seq > greatest(reopened, settled)) s;
  seen := found || array(select e.object from unnest(facts) e
    where e.kind = 'decided' and e.word = 'happened' and e.object is not null and e.seq > reopened);
  if cardinality(named || unnamed) = 1 and cardinality(unnamed) = 1 and cardinality(seen) > 0 then
    f.effects := array(select distinct unnest(seen) order by 1);
  else
    f.effects := array(select distinct unnest(named || unnamed || seen) order by 1);
  end if;
  select coalesce(array_agg(distinct o), '{}') into accepted from (
    select unnest(e.objects) as o from unnest(facts) e
    where e.kind = 'decided' and e.word = 'settle' and e.seq > reopened) s;

  -- Attempt by attempt: did it provably do nothing, and by what?
  select bool_and(p.reported or p.absent or p.decided),
      bool_and(p.reported or p.absent or p.absent_for_now or p.decided),
      bool_and(p.reported or p.absent or p.absent_for_now),
      bool_and(p.reported),
      bool_or(not p.completed and not (p.reported or p.absent or p.decided))
    into firm, proven, disproven, denied, f.open_truth
  from (
    select
      coalesce(bool_or(e.kind = 'reported' and e.word = 'completed' and e.fence = g.fence), false)
        as completed,
      coalesce(bool_or(e.kind = 'reported'
        and (e.fence = g.fence and e.word in ('not_sent', 'refused', 'refused_stored')
          or e.word = 'refused_stored' and e.generation = g.generation)), false) as reported,
      coalesce(bool_or(e.kind = 'sighting' and e.word = 'absent' and e.fence >= g.fence
        and not e.conditional), false) as absent,
      coalesce(bool_or(e.kind = 'sighting' and e.word = 'absent' and e.fence >= g.fence
        and e.conditional and e.seq > absence_lapsed), false) as absent_for_now,
      coalesce(bool_or(e.kind = 'decided' and e.word = 'not_happened' and e.fence >= g.fence), false)
        as decided
    from unnest(facts) g left join unnest(facts) e on e.seq > reopened
    where g.kind = 'granted' group by g.fence
  ) p;

  released := coalesce(last.word in ('release_same', 'release_new') and last.fence = newest
    and last.seq > release_lapsed, false)
    and not exists (select from unnest(facts) e where e.kind = 'reported' and e.fence = newest
      and e.word in ('not_sent', 'refused', 'refused_stored')
      and e.seq > greatest(last.seq, reopened));

  f.state := case
    when cardinality(f.effects) > 1 and not f.effects <@ accepted then 'conflicted'
    -- An effect that did not last: a payout that was paid and failed. A person says what holds.
    when f.effects && did_not_last then 'conflicted'
    -- An object that the decision names outweighs a look-up, not what the attempts report.
    when last.word = 'happened' and cardinality(named || unnamed || found) = 0
      and case when last.object is null then disproven else denied end then 'conflicted'
    when cardinality(f.effects) > 0 or last.word = 'happened' then 'completed'
    when last.word = 'close' then 'closed'
    when released then 'released'
    when not ended then 'in_flight'
    when proven then 'not_executed'
    else 'unknown' end;
  f.conditional := f.state = 'not_executed' and not firm;
  f.fresh_key := burnt or coalesce(f.state = 'released' and last.word = 'release_new', false);
  return f;
end $$;
