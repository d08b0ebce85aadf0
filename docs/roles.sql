-- The role that serves must not own what it serves: an owner could switch the triggers off that
-- keep events from being changed. Run as the owner of the tables, after `manage.py migrate`:
--   psql "$OWNER_URL" -v ON_ERROR_STOP=1 -v app=counterfoil_app -f docs/roles.sql
-- The role itself is made before, once:  create role counterfoil_app login password '…';
grant usage on schema public to :"app";
grant select, insert, update, delete on all tables in schema public to :"app";
grant usage, select on all sequences in schema public to :"app";
grant execute on all functions in schema public to :"app";
-- Tables of later migrations.
alter default privileges in schema public
  grant select, insert, update, delete on tables to :"app";
alter default privileges in schema public grant usage, select on sequences to :"app";
alter default privileges in schema public grant execute on functions to :"app";
-- Events are written once. Triggers refuse the rest as well; nothing should even be able to ask.
revoke update, delete on ledger_event, ledger_askedagain, effects_auditentry from :"app";
-- Agents that speak to PostgreSQL themselves have roles of their own: `manage.py agent_role create`
-- makes and grants them, run as the owner. Which workspace a role opens, only the owner says.
revoke insert, update, delete on ledger_agentrole from :"app";
-- Neither they nor anybody else makes things here that others would find, or fills the disk.
revoke create on schema public from public;
revoke temporary on database :"DBNAME" from public;
