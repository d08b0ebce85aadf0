-- Which rules hide what before it is stored: an agent that speaks to PostgreSQL itself hides by them
-- before it sends, and the version of its rules is compared in the row that says who it is. The role
-- that serves may not write there, so the row follows by itself.
create function ledger_redaction_changed_v1() returns trigger language plpgsql security definer
set search_path = pg_catalog, public, pg_temp as $$
begin
  update ledger_agentrole set redaction_version = new.version
    where workspace_id = new.workspace_id and redaction_version <> new.version;
  return new;
end $$;
create trigger effects_redactionstate_agents after insert or update on effects_redactionstate
  for each row execute function ledger_redaction_changed_v1();
