-- What an agent that speaks to PostgreSQL itself has to say after its claim, and what it is told.

create type ledger_shown as (
  claim_id uuid, tool text, effect_class effects_effect_class, state ledger_claim_state, reason text,
  fence int, generation int, lease_until timestamptz, window_until timestamptz, margin interval,
  flags text[], object text, result text, result_stored boolean, decision_id bigint,
  verdict ledger_verdict, decision_reason text, decided_at timestamptz, effective_at timestamptz,
  held boolean, now timestamptz, desk_url text
);

-- A claim as it is true now, whether or not a sweep has come by since. Nothing is written.
create function ledger_shown_v1(p_workspace bigint, p_claim uuid) returns ledger_shown
language plpgsql stable as $$
declare
  c ledger_claim;
  s ledger_shown;
  advanced record;
  seconds int;
begin
  select * into c from ledger_claim where id = p_claim and workspace_id = p_workspace;
  if not found then
    raise exception 'claim % is not in workspace %', p_claim, p_workspace
      using errcode = 'no_data_found';
  end if;
  s.now := ledger_clock();
  s.held := c.pending_decision_id is not null;
  if c.pending_decision_id is not null or c.decided_at is not null then
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
    advanced := ledger_advance_v1(c, s.now);
    c := advanced.c;
  end if;
  select name, margin_seconds into s.tool, seconds from effects_tool where id = c.tool_id;
  s.margin := make_interval(secs => seconds);
  s.claim_id := c.id;
  s.effect_class := c.effect_class;
  s.state := c.state;
  s.reason := c.reason;
  s.fence := c.fence;
  s.generation := c.generation;
  s.lease_until := c.lease_until;
  s.window_until := c.window_until;
  s.flags := c.flags;
  s.object := c.object;
  s.result_stored := c.result_stored;
  if c.state = 'completed' then
    s.result := c.result;
    if c.result is null and c.result_stored then
      select convert_from(body, 'UTF8') into s.result from ledger_payload
        where workspace_id = p_workspace and claim_id = p_claim and name = 'result'
          and body is not null order by seq desc limit 1;
    end if;
  end if;
  select desk_url into s.desk_url from ledger_agentrole where role = session_user::text;
  return s;
end $$;

-- What became of a claim, by whichever name the agent has for it; ours are tried first.
create function ledger_agent_status_v1(p_claim uuid, p_key text, p_caller_key text)
returns ledger_shown language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint := ledger_agent_workspace_v1(false);
  found_claim uuid := (select id from ledger_claim where id = p_claim and workspace_id = w);
begin
  if p_claim is null and p_key is not null then
    found_claim := (select id from ledger_claim where key = p_key and workspace_id = w
      order by id limit 1);
  end if;
  if found_claim is null and p_caller_key is not null then
    found_claim := (select id from ledger_claim where workspace_id = w
      and caller = substr(sha256(ledger_part_v1('caller.v1') || ledger_number_part_v1(w)
        || ledger_part_v1(p_caller_key)), 1, 16));
  end if;
  return ledger_shown_v1(w, found_claim);
end $$;

create function ledger_agent_report_v1(
  p_claim uuid, p_fence int, p_outcome ledger_event_word, p_object text, p_replayed boolean,
  p_marker boolean, p_result text, p_result_stored boolean, p_worker text, p_delivery_count int,
  p_retry_count int, p_response_id text, p_call_id text, p_http_status int, p_provider_code text,
  p_request_id text, p_error text
) returns ledger_shown language plpgsql security definer
set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint := ledger_agent_workspace_v1(false);
  said jsonb;
begin
  if (
    p_fence >= 1 and length(p_object) between 1 and 255 is not false
    and length(p_worker) between 1 and 255 is not false
    and p_delivery_count between 0 and 1000000 is not false
    and p_retry_count between 0 and 1000000 is not false
    and length(p_response_id) between 1 and 255 is not false
    and length(p_call_id) between 1 and 255 is not false
    and p_http_status between 100 and 599 is not false and length(p_provider_code) <= 255 is not false
    and length(p_request_id) <= 255 is not false and length(p_error) <= 2000 is not false
    and (p_outcome = 'completed' or p_result is null and p_result_stored is null)
  ) is not true then
    raise exception 'The report is not well formed.' using errcode = 'invalid_parameter_value';
  end if;
  -- A result that cannot be kept does not cost the report.
  if octet_length(p_result) > 1048576 or p_result is not json then
    p_result := null;
    p_result_stored := false;
  end if;
  if num_nonnulls(p_worker, p_delivery_count, p_retry_count, p_response_id, p_call_id, p_http_status,
      p_provider_code, p_request_id, p_error) > 0 then
    said := jsonb_strip_nulls(jsonb_build_object('worker', p_worker,
      'delivery_count', p_delivery_count, 'retry_count', p_retry_count,
      'response_id', p_response_id, 'call_id', p_call_id, 'http_status', p_http_status,
      'provider_code', p_provider_code, 'request_id', p_request_id, 'error', p_error));
  end if;
  perform ledger_report_v1(w, p_claim, p_fence, p_outcome, p_object, p_replayed, p_marker, p_result,
    p_result_stored and p_result is not null, said);
  return ledger_shown_v1(w, p_claim);
end $$;

create function ledger_agent_sent_v1(p_claim uuid, p_fence int) returns void language plpgsql
security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  perform ledger_sent_v1(ledger_agent_workspace_v1(false), p_claim, p_fence);
end $$;

create function ledger_agent_heartbeat_v1(
  p_claim uuid, p_fence int, out word text, out lease_until timestamptz
) language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  select h.word, h.lease_until into word, lease_until
    from ledger_heartbeat_v1(ledger_agent_workspace_v1(false), p_claim, p_fence) h;
end $$;
