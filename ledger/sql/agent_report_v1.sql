-- What an agent that speaks to PostgreSQL itself has to say after its claim, and what it is told.

create type ledger_shown as (
  claim_id uuid, tool text, effect_class effects_effect_class, state ledger_claim_state, reason text,
  fence int, generation int, lease_until timestamptz, window_until timestamptz, margin interval,
  flags text[], object text, result text, result_stored boolean, decision_id bigint,
  verdict ledger_verdict, decision_reason text, decided_at timestamptz, effective_at timestamptz,
  held boolean, now timestamptz, desk_url text
);

-- A claim as it is true now, whether or not a sweep has come by since. Nothing is written.
create function ledger_shown_v1(p_workspace bigint, p_claim uuid, p_desk_url text)
returns ledger_shown language plpgsql stable as $$
declare
  c ledger_claim;
  s ledger_shown;
  p record;
begin
  select k.id, t.name, k.effect_class, k.state, k.reason, k.fence, k.generation, k.lease_until,
      k.window_until, make_interval(secs => t.margin_seconds), k.flags, k.object,
      case when k.state = 'completed' then k.result end, k.result_stored, null, null, null,
      k.decided_at, k.pending_at, k.pending_decision_id is not null, ledger_clock(), p_desk_url
    into s
    from ledger_claim k left join effects_tool t on t.id = k.tool_id
    where k.id = p_claim and k.workspace_id = p_workspace;
  if s.claim_id is null then
    raise exception 'claim % is not in workspace %', p_claim, p_workspace
      using errcode = 'no_data_found';
  end if;
  -- The common case whole: settled, no decision was ever made, and the result is in the row.
  if s.state = 'completed' and not s.held and s.decided_at is null
      and (s.result is not null or s.result_stored is not true) then
    return s;
  end if;

  select * into strict c from ledger_claim where id = p_claim;
  if s.held or c.decided_at is not null then
    select d.id, d.verdict, d.reason, d.decided_at, coalesce(c.pending_at, d.effective_at)
      into s.decision_id, s.verdict, s.decision_reason, s.decided_at, s.effective_at
      from ledger_decision d
      where d.workspace_id = p_workspace and d.claim_id = p_claim
        and d.id = coalesce(c.pending_decision_id, (
          select e.decision_id from ledger_event e
          where e.claim_id = p_claim and e.kind = 'decided' order by e.seq desc limit 1));
  end if;
  if c.state = 'in_flight' and s.now >= c.lease_until
      or c.pending_at <= s.now or s.now >= c.grant_until then
    p := ledger_advance_v1(c, s.now);
    c := p.c;
    s.state := c.state;
    s.reason := c.reason;
    s.object := c.object;
    s.result_stored := c.result_stored;
    s.result := case when c.state = 'completed' then c.result end;
  end if;
  if s.state = 'completed' and s.result is null and s.result_stored then
    select convert_from(body, 'UTF8') into s.result from ledger_payload
      where workspace_id = p_workspace and claim_id = p_claim and name = 'result'
        and body is not null order by seq desc limit 1;
  end if;
  return s;
end $$;

-- What became of a claim, by whichever name the agent has for it; ours are tried first.
create function ledger_agent_status_v1(p_claim uuid, p_key text, p_caller_part bytea)
returns ledger_shown language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  r record;
  found_claim uuid;
begin
  select workspace_id, part, desk_url into r from ledger_agentrole
    where role = session_user::text and revoked_at is null;
  if not found then
    perform ledger_agent_refuse_v1(null, null);
  end if;
  if p_claim is not null then
    found_claim := (select id from ledger_claim where id = p_claim and workspace_id = r.workspace_id);
  elsif p_key is not null then
    found_claim := (select id from ledger_claim where key = p_key and workspace_id = r.workspace_id
      order by id limit 1);
  end if;
  if found_claim is null and p_caller_part is not null then
    found_claim := (select id from ledger_claim where workspace_id = r.workspace_id
      and caller = ledger_digest_v1('caller.v1', r.part, p_caller_part));
  end if;
  return ledger_shown_v1(r.workspace_id, found_claim, r.desk_url);
end $$;

create function ledger_agent_report_v1(
  p_claim uuid, p_fence int, p_outcome ledger_event_word, p_object text, p_replayed boolean,
  p_marker boolean, p_result text, p_result_stored boolean, p_worker text, p_delivery_count int,
  p_retry_count int, p_response_id text, p_call_id text, p_http_status int, p_provider_code text,
  p_request_id text, p_error text
) returns ledger_shown language plpgsql security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint;
  desk text;
  said jsonb;
begin
  select workspace_id, desk_url into w, desk from ledger_agentrole
    where role = session_user::text and revoked_at is null;
  if w is null then
    perform ledger_agent_refuse_v1(null, null);
  end if;
  if num_nonnulls(p_worker, p_delivery_count, p_retry_count, p_response_id, p_call_id, p_http_status,
      p_provider_code, p_request_id, p_error) > 0 then
    if greatest(length(p_worker), length(p_response_id), length(p_call_id), length(p_provider_code),
        length(p_request_id)) > 255 or length(p_error) > 2000 then
      perform ledger_agent_malformed_v1();
    end if;
    said := jsonb_strip_nulls(jsonb_build_object('worker', p_worker,
      'delivery_count', p_delivery_count, 'retry_count', p_retry_count,
      'response_id', p_response_id, 'call_id', p_call_id, 'http_status', p_http_status,
      'provider_code', p_provider_code, 'request_id', p_request_id, 'error', p_error));
  end if;
  -- A result that cannot be kept does not cost the report.
  if p_result is not null and (octet_length(p_result) > 1048576 or p_result is not json) then
    p_result := null;
    p_result_stored := false;
  end if;
  return (ledger_reported_v1(w, p_claim, p_fence, p_outcome, p_object, p_replayed, p_marker, p_result,
    p_result_stored and p_result is not null, said, desk)).shown;
end $$;

create function ledger_agent_sent_v1(p_claim uuid, p_fence int) returns void language plpgsql
security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  perform ledger_sent_v1(ledger_agent_workspace_v1(), p_claim, p_fence);
end $$;

create function ledger_agent_heartbeat_v1(
  p_claim uuid, p_fence int, out word text, out lease_until timestamptz
) language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  select h.word, h.lease_until into word, lease_until
    from ledger_heartbeat_v1(ledger_agent_workspace_v1(), p_claim, p_fence) h;
end $$;
