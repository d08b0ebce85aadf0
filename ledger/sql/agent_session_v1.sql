-- Agents that speak to PostgreSQL themselves. Each logs in with a role of its own, which may execute
-- the functions ledger_agent_*_v1 that are granted to it and nothing else. Those run with the rights
-- of the tables' owner, so nothing in them rests on what the agent says about itself: the workspace
-- comes from session_user, which no statement of the agent's changes, and every name is looked up in
-- the same schemas, temporary tables last.
--
-- They are on the path of every claim, and what plpgsql spends on an expression it spends again in
-- each transaction. So they look up all they need in one statement, and say little else.

-- What a restore changes and nothing else does for long: which run of the server, and which file of
-- the claims, this is.
create function ledger_life_v1() returns uuid language sql stable as $$
  select (lpad(to_hex((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint), 16, '0')
    || lpad(to_hex(pg_relation_filenode('ledger_claim')::bigint), 16, '0'))::uuid
$$;

-- The worker has compared this very database with its mark, and it was not set back. An agent has
-- no mark to look at, so it is granted nothing until somebody who has one has looked.
create function ledger_confirm_v1() returns void language sql as $$
  insert into ledger_watermark as w (name, claim_id) values ('confirmed', ledger_life_v1())
  on conflict (name) do update set claim_id = excluded.claim_id
    where w.claim_id <> excluded.claim_id
$$;

-- Why an agent is not served. p_confirmed: whose life the worker has confirmed last, if any.
create function ledger_agent_refuse_v1(p_workspace bigint, p_confirmed uuid) returns void
language plpgsql as $$
begin
  if p_workspace is null then
    raise exception 'The role % opens no workspace, or was revoked.', session_user
      using errcode = 'CF401';
  elsif p_confirmed is null then
    raise exception 'The ledger''s database is older than its worker has seen it, so it may have '
      'forgotten claims. Nothing is granted until a person has looked: manage.py accept_restore.'
      using errcode = 'CF503', hint = 'behind';
  end if;
  raise exception 'The ledger''s database was started since its worker has looked at it, so nothing '
    'is granted yet. The worker looks about once a second.' using errcode = 'CF503';
end $$;

create function ledger_agent_workspace_v1() returns bigint language plpgsql stable as $$
declare
  w bigint;
begin
  select workspace_id into w from ledger_agentrole
    where role = session_user::text and revoked_at is null;
  if w is null then
    perform ledger_agent_refuse_v1(null, null);
  end if;
  return w;
end $$;

-- What must be known of a tool before its arguments can be compared. One that nobody registered is
-- entered as effects.models.Tool enters it.
create function ledger_agent_tool_v1(
  p_name text, out tool_version int, out rules jsonb, out redaction jsonb
)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  w bigint := ledger_agent_workspace_v1();
begin
  if coalesce(p_name, '') = '' or octet_length(p_name) > 255 then
    raise exception 'A tool''s name has 1 to 255 bytes (TOOL_BYTES_MAX).'
      using errcode = 'invalid_parameter_value';
  end if;
  -- What the agent has to hide before it sends; effects/redaction/rules.py reads the same.
  select jsonb_build_object('version', coalesce(
        (select s.version from effects_redactionstate s where s.workspace_id = w), 0),
      'off', (select coalesce(jsonb_agg(o.secret), '[]') from effects_secretswitchedoff o
        where o.workspace_id = w),
      'rules', (select coalesce(jsonb_agg(jsonb_build_array(r."where", r.path, r.mode)
          order by r.id), '[]')
        from effects_redactionrule r left join effects_tool t on t.id = r.tool_id
        where r.workspace_id = w and r.retired_at is null and coalesce(t.name = p_name, true)))
    into redaction;
  select version, argument_rules into tool_version, rules
    from effects_tool where workspace_id = w and name = p_name;
  if found then
    return;
  end if;
  insert into effects_tool (workspace_id, name, effect_class, registered, note, owner, contract,
    window_seconds, margin_seconds, lease_seconds, attempt_seconds_max, attempts_max,
    release_lapse_minutes, server_working_seconds_max, horizon_days, hold_in_turn,
    agent_may_repeat, connection_id, lookup_kind, lookup, lookups_max, argument_rules, summary,
    amount_field, amount_is_minor, currency_field, customer_field, version)
  values (w, p_name, 'unkeyed_write', false, '', '', 'generic', null, 140, 90, 600, 3, 30, null, 30,
    false, false, null, '', '{}', 50, '{}', '', '', true, '', '', 1)
  on conflict (workspace_id, name) do nothing;
  select version, argument_rules into strict tool_version, rules
    from effects_tool where workspace_id = w and name = p_name;
end $$;
