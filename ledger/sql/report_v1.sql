-- One attempt's report. It settles its attempt; the claim's state is the fold. Whoever reports for an
-- agent calls ledger_reported_v1, which knows the common case.
create function ledger_report_v1(
  p_workspace bigint, p_claim uuid, p_fence int, p_outcome ledger_event_word, p_object text,
  p_replayed boolean, p_marker boolean, p_result text, p_result_stored boolean, p_data jsonb
) returns ledger_claim_state language plpgsql as $$
declare
  l record;
  c ledger_claim;
  now timestamptz;
begin
  if p_outcome not in ('completed', 'not_sent', 'refused', 'refused_stored', 'unknown') then
    raise exception '% is no outcome of an attempt', p_outcome using errcode = 'check_violation';
  end if;
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  now := l.now;
  if not exists (select from ledger_event
      where claim_id = p_claim and kind = 'granted' and fence = p_fence) then
    raise exception 'claim % was never granted attempt %', p_claim, p_fence
      using errcode = 'no_data_found', hint = 'fence';
  end if;
  if exists (select from ledger_event
      where claim_id = p_claim and kind = 'reported' and fence = p_fence and word = p_outcome
        and object is not distinct from p_object and replayed is not distinct from p_replayed) then
    -- The same report again is the same fact.
    if l.moved then
      perform ledger_save_v1(c);
    end if;
    return c.state;
  end if;
  c := ledger_cancel_v1(c, now);
  c := ledger_append_v1(c, 'reported', now, p_outcome, p_fence, p_object, p_replayed => p_replayed,
    p_marker => p_marker, p_data => p_data);
  if p_outcome = 'completed' then
    c.object := coalesce(c.object, p_object);
    -- The first stored result stays the result: every repeat gets the same bytes.
    if c.result_stored is not true and p_result_stored is not null then
      c.result_stored := p_result_stored;
      c.result := case when octet_length(p_result) <= 2048 then p_result end;
      if octet_length(p_result) > 2048 then
        perform ledger_store_result_v1(p_workspace, p_claim, c.version, p_result);
      end if;
    end if;
  end if;
  perform ledger_save_v1(c);
  return c.state;
end $$;

create function ledger_store_result_v1(p_workspace bigint, p_claim uuid, p_seq int, p_result text)
returns void language sql as $$
  insert into ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
  values (p_workspace, p_claim, p_seq, 'result', convert_to(p_result, 'UTF8'),
    sha256(convert_to(p_result, 'UTF8')), octet_length(p_result))
$$;

-- A hint that dates the send. Its absence proves nothing, so it moves nothing.
create function ledger_sent_v1(p_workspace bigint, p_claim uuid, p_fence int)
returns ledger_claim_state language plpgsql as $$
declare
  l record;
  c ledger_claim;
begin
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  if not exists (select from ledger_event
      where claim_id = p_claim and kind = 'granted' and fence = p_fence) then
    raise exception 'claim % was never granted attempt %', p_claim, p_fence
      using errcode = 'no_data_found', hint = 'fence';
  end if;
  if not exists (select from ledger_event
      where claim_id = p_claim and kind = 'sent' and fence = p_fence) then
    c := ledger_append_v1(c, 'sent', l.now, p_fence => p_fence);
    l.moved := true;
  end if;
  if l.moved then
    perform ledger_save_v1(c);
  end if;
  return c.state;
end $$;

-- The owner is alive: its lease goes on, but not beyond what the tool allows one attempt.
create function ledger_heartbeat_v1(
  p_workspace bigint, p_claim uuid, p_fence int, out word text, out lease_until timestamptz
) language plpgsql as $$
declare
  l record;
  c ledger_claim;
  ends timestamptz;
begin
  l := ledger_lock_v1(p_workspace, p_claim);
  c := l.c;
  word := 'stop';
  if c.state = 'in_flight' and c.fence = p_fence then
    select least(l.now + make_interval(secs => t.lease_seconds),
        e.at + make_interval(secs => t.attempt_seconds_max)) into strict ends
      from ledger_event e, effects_tool t
      where e.claim_id = p_claim and e.kind = 'granted' and e.fence = p_fence and t.id = c.tool_id;
    c := ledger_cancel_v1(c, l.now);
    c.lease_until := greatest(c.lease_until, ends);
    word := 'ok';
    lease_until := c.lease_until;
    l.moved := true;
  end if;
  if l.moved then
    perform ledger_save_v1(c);
  end if;
end $$;
