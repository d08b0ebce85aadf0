-- One attempt's report, answered with the claim as its agent may be told of it then.
create function ledger_reported_v1(
  p_workspace bigint, p_claim uuid, p_fence int, p_outcome ledger_event_word, p_object text,
  p_replayed boolean, p_marker boolean, p_result text, p_result_stored boolean, p_data jsonb,
  p_desk_url text, out shown ledger_shown, out version int
) language plpgsql as $$
declare
  s ledger_shown;
  now timestamptz;
begin
  -- The common case whole: the first attempt completes in time and nothing else was recorded. The
  -- update takes the row's lock, and looks at the row and the clock again once it has it. The fold
  -- gives the same, and the tests compare them.
  if p_outcome = 'completed' and p_fence = 1 and octet_length(p_result) <= 2048 is not false then
    now := ledger_clock();
    with told as (
      update ledger_claim c set state = 'completed', version = 2, open_truth = false,
        completed_at = now, object = p_object, result_stored = p_result_stored, result = p_result
      from effects_tool t
      where c.id = p_claim and c.workspace_id = p_workspace and c.state = 'in_flight'
        and c.version = 1 and ledger_clock() < c.lease_until and t.id = c.tool_id
      returning c.id, t.name, c.effect_class, c.reason, c.generation, c.lease_until,
        c.window_until, t.margin_seconds, c.flags
    ), logged as (
      insert into ledger_event (claim_id, seq, at, kind, word, fence, generation, object, replayed,
        marker_sent, data)
      select id, 2, now, 'reported', 'completed', 1, 1, p_object, p_replayed, p_marker, p_data
      from told
    )
    select id, name, effect_class, 'completed', reason, 1, generation, lease_until, window_until,
        make_interval(secs => margin_seconds), flags, p_object, p_result, p_result_stored,
        null, null, null, null, null, false, now, p_desk_url
      into s from told;
    if found then
      shown := s;
      version := 2;
      return;
    end if;
  end if;
  perform ledger_report_v1(p_workspace, p_claim, p_fence, p_outcome, p_object, p_replayed, p_marker,
    p_result, p_result_stored, p_data);
  shown := ledger_shown_v1(p_workspace, p_claim, p_desk_url);
  version := (select c.version from ledger_claim c where c.id = p_claim);
end $$;
