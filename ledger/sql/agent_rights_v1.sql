-- PostgreSQL lets everybody execute a new function. Ours are for the role that serves, which
-- docs/roles.sql names, and for agents only as far as each of them is granted one by one.
do $$
declare
  f regprocedure;
begin
  for f in select p.oid from pg_proc p
      where p.pronamespace = 'public'::regnamespace and p.proname ~ '^(ledger|effects)_' loop
    execute format('revoke execute on function %s from public', f);
  end loop;
end $$;
alter default privileges revoke execute on functions from public;
