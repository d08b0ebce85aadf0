-- One provider answer. Whether it may settle the claim was judged before; what the ledger alone
-- can see is checked again here, because a grant may have come between the look and the record.
create function ledger_observe_v1(
  p_workspace bigint, p_claim uuid, p_word ledger_event_word, p_fence int, p_counts boolean,
  p_conditional boolean, p_objects text[], p_data jsonb, p_raw bytea
) returns ledger_claim_state language plpgsql as $$
declare
  l record;
  c ledger_claim;
begin
  if p_counts and p_word not in ('found', 'found_many', 'found_different', 'absent') then
    raise exception 'a sighting of % settles nothing', p_word using errcode = 'check_violation';
  end if;
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  if p_fence not between 1 and c.fence then
    raise exception 'claim % was never granted attempt %', p_claim, p_fence
      using errcode = 'no_data_found', hint = 'fence';
  end if;
  if p_word = 'absent' and p_counts then
    p_counts := p_fence = c.fence and c.state <> 'in_flight'
      and (not p_conditional or coalesce(l.now < c.window_until
        - (select make_interval(secs => margin_seconds) from effects_tool where id = c.tool_id), false));
  end if;
  c := ledger_cancel_v1(c, l.now);
  c := ledger_append_v1(c, 'sighting', l.now, p_word, p_fence, p_objects => p_objects,
    p_counts => p_counts, p_conditional => p_conditional and p_counts, p_data => p_data);
  if p_raw is not null then
    insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
    values (p_workspace, p_claim, c.version, 'raw', p_raw, sha256(p_raw), octet_length(p_raw));
  end if;
  perform ledger_save_v1(c);
  return c.state;
end $$;
