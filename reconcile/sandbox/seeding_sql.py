"""The statements that make many calls at once. Every word of them is ours; what differs from one
run to the next is in the parameters.

They write what the record's own functions would have written for such calls, a set at a time; the
digests are those of `effects.core.identity`, which a test compares. What they do not write is said
in `reconcile.sandbox.seeding`.
"""

from __future__ import annotations

from typing import Final

# The digests' alphabet: see `effects.core.identity.digest`. They live as long as the session.
FUNCTIONS: Final = """
CREATE OR REPLACE FUNCTION pg_temp.seed_text(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT int4send(octet_length(convert_to($1, 'UTF8'))) || 's'::bytea || convert_to($1, 'UTF8') $$;
CREATE OR REPLACE FUNCTION pg_temp.seed_number(bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT int4send(length($1::text)) || 'i'::bytea || convert_to($1::text, 'UTF8') $$;
CREATE OR REPLACE FUNCTION pg_temp.seed_digest(text, bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT substr(sha256(pg_temp.seed_text($1) || $2), 1, 16) $$;
-- The canonical form of arguments whose one number comes before the currency and ends with no zero.
CREATE OR REPLACE FUNCTION pg_temp.seed_arguments(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_temp.seed_text(replace($1, ',"currency"', 'e0,"currency"')) $$;
-- The same number for the same name in every run: between 0 and 1.
CREATE OR REPLACE FUNCTION pg_temp.seed_chance(text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || substr(md5($1), 1, 8))::bit(32)::bigint / 4294967296.0 $$;
"""

# What each call is about, by its number `i`. The first calls make a few very long conversations;
# after that a conversation has eight turns of two calls.
_PLACES: Final = """
places AS (
  SELECT i, coalesce(%(undecided_every)s > 0 AND i %% greatest(%(undecided_every)s, 1) = 0, false)
      AS undecided,
    CASE WHEN i <= %(long_until)s THEN %(tag)s || '-long-' || (i %% %(long_conversations)s)
      ELSE %(tag)s || '-' || (i / 16) END AS conversation,
    CASE WHEN i <= %(long_until)s THEN i / %(long_conversations)s
      ELSE i %% 16 / 2 END AS turn_index,
    CASE WHEN i <= %(long_until)s THEN 0 ELSE i %% 2 END AS position,
    (%(tool_ids)s::bigint[])[1 + i * 7 %% cardinality(%(tool_ids)s::bigint[])] AS tool_id,
    pg_temp.seed_chance('a' || i) AS chance
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) i
),
facts AS (
  SELECT p.*, t.name AS tool, t.effect_class, t.attempts_max, t.lease_seconds, t.window_seconds,
    CASE
      WHEN p.undecided THEN CASE WHEN p.chance < 0.03 THEN 'twice' ELSE 'lost' END
      WHEN p.chance < 0.02 THEN 'not_sent'
      WHEN p.chance < 0.05 THEN 'found'
      ELSE 'done' END AS story,
    -- What is undecided is mostly of the last days: everything older was settled in the end.
    now() - make_interval(secs => 3600 + %(days)s * 86400 * CASE
      WHEN p.undecided THEN pg_temp.seed_chance('u' || p.i) ^ 3
      ELSE 1 - p.i::float8 / %(total)s END) AS at,
    'msg_' || substr(md5(p.conversation || '/' || p.turn_index), 1, 24) AS response_id,
    'toolu_' || substr(md5(%(tag)s || p.i), 1, 24) AS call_id,
    format('{"amount":%%s,"currency":"eur","customer":"cus_%%s","order":"%%s"}',
      -- Never a multiple of ten, whose canonical form is another text: 14900 is 149e2 there.
      10 * (50 + 5000 * pg_temp.seed_chance('m' || p.i) ^ 2)::bigint + 1 + p.i %% 9,
      substr(md5('c' || p.i %% 50000), 1, 12), 100000 + p.i) AS arguments
  FROM places p JOIN effects_tool t ON t.id = p.tool_id
),
digests AS (
  SELECT f.*, pg_temp.seed_text(f.tool) AS in_tool,
    pg_temp.seed_arguments(f.arguments) AS in_arguments,
    pg_temp.seed_number(%(workspace_id)s) || pg_temp.seed_text(f.conversation) AS spoken
  FROM facts f
),
made AS MATERIALIZED (
  SELECT d.*, uuidv7(d.at - clock_timestamp()) AS id,
    pg_temp.seed_digest('scope.v1', spoken || pg_temp.seed_number(turn_index)) AS scope,
    pg_temp.seed_digest('turn.v1', spoken || pg_temp.seed_number(turn_index) || in_tool
      || pg_temp.seed_number(0) || in_arguments) AS turn,
    pg_temp.seed_digest('call.v1', spoken || pg_temp.seed_text(call_id)) AS call,
    pg_temp.seed_digest('repeat.v1', spoken || in_tool || in_arguments) AS repeat,
    sha256(pg_temp.seed_text('args.v1') || in_tool || in_arguments) AS arguments_digest,
    'pi_' || substr(md5('o' || %(tag)s || d.i), 1, 24) AS object
  FROM digests d
)"""

CALLS: Final = f"""WITH {_PLACES},
claims AS (
  INSERT INTO ledger_claim (id, workspace_id, tool_id, effect_class, state, version, budget,
    open_truth, granted_at, completed_at, lease_until, window_until, key, conversation, turn_index,
    position, ordinal, response_id, call_id, scope, turn, call, repeat, arguments_digest, arguments,
    object, result, result_stored)
  SELECT id, %(workspace_id)s, tool_id, effect_class,
    (CASE story WHEN 'lost' THEN 'unknown' WHEN 'twice' THEN 'conflicted'
      WHEN 'not_sent' THEN 'not_executed' ELSE 'completed' END)::ledger_claim_state,
    CASE WHEN story IN ('found', 'twice') OR story = 'lost' AND chance < 0.6 THEN 3 ELSE 2 END,
    attempts_max, story IN ('lost', 'twice', 'found'), at,
    CASE story WHEN 'done' THEN at + interval '2 seconds'
      WHEN 'found' THEN at + interval '1 minute' END,
    at + make_interval(secs => lease_seconds),
    CASE WHEN effect_class = 'keyed_write' THEN at + make_interval(secs => window_seconds) END,
    'cf1-' || encode(turn, 'hex'), conversation, turn_index, position, 0, response_id, call_id,
    scope, turn, call, repeat, arguments_digest, arguments,
    CASE WHEN story IN ('done', 'found') THEN object END,
    CASE story WHEN 'done' THEN format('{{"id":"%%s"}}', object) END,
    CASE story WHEN 'done' THEN true END
  FROM made ORDER BY id
),
events AS (
  INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, object, objects_seen,
    marker_sent, counts, data)
  SELECT id, e.seq, m.at + e.after, e.kind::ledger_event_kind, e.word::ledger_event_word, 1, 1,
    e.object, e.objects, e.marker, e.counts, e.data
  FROM made m CROSS JOIN LATERAL (VALUES
    (1, interval '0', 'granted', null, null, null::text[], null::boolean, null::boolean,
      '{{"worker": "w-7"}}'::jsonb, true),
    (2, interval '2 seconds', 'reported', 'completed', m.object, null, null, null, null,
      story = 'done'),
    (2, interval '2 seconds', 'reported', 'not_sent', null, null, null, null,
      '{{"error": "ConnectError"}}', story = 'not_sent'),
    (2, interval '30 seconds', 'reported', 'unknown', null, null, true, null,
      '{{"error": "ReadTimeout after 30 s"}}', story IN ('lost', 'twice', 'found')),
    (3, interval '1 minute', 'sighting', 'found', null, array[m.object], null, true,
      '{{"route": "Seeded look-up", "strength": "strong", "why": "It carries our marker."}}',
      story = 'found'),
    (3, interval '1 minute', 'sighting', 'found_many', null, array[m.object, m.object || 'b'], null,
      true, '{{"route": "Seeded look-up", "strength": "strong", "why": "Two carry our marker."}}',
      story = 'twice'),
    (3, interval '1 minute', 'sighting', 'absent', null, null, null, false,
      '{{"route": "Seeded look-up", "strength": "weak", "why": "It may still come."}}',
      story = 'lost' AND chance < 0.6)
  ) AS e (seq, after, kind, word, object, objects, marker, counts, data, told)
  WHERE e.told ORDER BY id, e.seq
)
INSERT INTO ledger_due (claim_id, why, workspace_id, at, since)
SELECT m.id, d.why, %(workspace_id)s, d.at, m.at + interval '30 seconds'
FROM made m CROSS JOIN LATERAL (VALUES
  ('person', null::timestamptz, story IN ('lost', 'twice')),
  -- Nobody is asked about a made-up call by itself; a person may ask.
  ('lookup', null, story IN ('lost', 'twice', 'found')),
  ('settled', m.at + interval '1 minute',
    story = 'found' AND m.at > now() - interval '3 days')
) AS d (why, at, filed)
WHERE d.filed"""  # noqa: S608 - every word is ours

# Streams of every tenth conversation: what was announced fits the calls that were made.
STREAMS: Final = """
WITH turns AS MATERIALIZED (
  SELECT conversation, turn_index, response_id, min(granted_at) AS at, scope, count(*) AS calls,
    jsonb_agg(jsonb_build_object('position', position, 'tool', t.name, 'call_id', call_id,
      'complete', true) ORDER BY position) AS announced,
    pg_temp.seed_chance(response_id) < 0.05 AS cut
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) i
  JOIN ledger_claim c ON c.scope = pg_temp.seed_digest('scope.v1',
      pg_temp.seed_number(%(workspace_id)s) || pg_temp.seed_text(%(tag)s || '-' || (i / 16))
      || pg_temp.seed_number(i %% 16 / 2))
  JOIN effects_tool t ON t.id = c.tool_id
  WHERE i > %(long_until)s AND i %% 2 = 0 AND i / 16 %% 10 = 0
  GROUP BY 1, 2, 3, scope
),
streams AS (
  INSERT INTO ledger_stream (workspace_id, source, name, scope, conversation, turn_index,
    response_id, model, opened_at, received_at, terminal, closed_at, cursor, error)
  SELECT %(workspace_id)s, %(source)s, response_id, scope, conversation, turn_index, response_id,
    'claude-opus-4-5', at - interval '3 seconds', at,
    CASE WHEN cut THEN 'cut' ELSE 'success' END, at, calls,
    CASE WHEN cut THEN 'The connection was reset by the peer.' END
  FROM turns RETURNING id, name
),
items AS (
  INSERT INTO ledger_ingestitem (workspace_id, door, source, event_id, type, digest, holds_id,
    state, raw, raw_bytes, said_at, received_at, last_seen_at, applied_at, stream_id)
  SELECT %(workspace_id)s, 'streams', %(source)s, response_id, 'stream.recorded',
    sha256(convert_to(response_id, 'UTF8')), true, 'applied', convert_to(raw, 'UTF8'),
    octet_length(convert_to(raw, 'UTF8')), at, at, at, at, s.id
  FROM turns JOIN streams s ON s.name = response_id
  CROSS JOIN LATERAL (SELECT jsonb_build_object('id', response_id, 'source', %(source)s::text,
    'type', 'stream.recorded', 'data', jsonb_build_object('stream', response_id,
      'conversation', conversation, 'turn_index', turn_index, 'response_id', response_id,
      'model', 'claude-opus-4-5', 'terminal', CASE WHEN cut THEN 'cut' ELSE 'success' END,
      'calls', announced))::text AS raw) said
  RETURNING id, stream_id
)
INSERT INTO ledger_call (workspace_id, stream_id, position, tool, call_id, complete,
  arguments_bytes, arguments_digest, said_at, at, item_id)
SELECT %(workspace_id)s, i.stream_id, (one->>'position')::smallint, one->>'tool', one->>'call_id',
  true, 64, sha256(convert_to(one->>'call_id', 'UTF8')), t.at, t.at, i.id
FROM turns t JOIN streams s ON s.name = t.response_id JOIN items i ON i.stream_id = s.id
CROSS JOIN LATERAL jsonb_array_elements(t.announced) one"""

# One call that was tried very often: every attempt but the last one proved that it sent nothing.
OFTEN: Final = """
WITH one AS MATERIALIZED (
  SELECT *, uuidv7(at - clock_timestamp()) AS id FROM (
    SELECT now() - make_interval(secs => 3600 + %(attempts)s) AS at, id AS tool_id, effect_class,
      pg_temp.seed_text(name) AS in_tool, pg_temp.seed_arguments(%(arguments)s) AS in_arguments,
      pg_temp.seed_number(%(workspace_id)s) || pg_temp.seed_text(%(tag)s || '-often') AS spoken
    FROM effects_tool WHERE id = %(tool_id)s) facts
),
claim AS (
  INSERT INTO ledger_claim (id, workspace_id, tool_id, effect_class, state, version, fence, budget,
    granted_at, lease_until, window_until, key, conversation, turn_index, position, ordinal, scope,
    turn, repeat, arguments_digest, arguments)
  SELECT id, %(workspace_id)s, tool_id, effect_class, 'unknown', 2 * %(attempts)s, %(attempts)s,
    %(attempts)s + 1, at, now() - interval '1 hour',
    CASE WHEN effect_class = 'keyed_write' THEN at + interval '7 days' END,
    'cf1-' || encode(pg_temp.seed_digest('turn.v1', spoken || pg_temp.seed_number(0) || in_tool
      || pg_temp.seed_number(0) || in_arguments), 'hex'),
    %(tag)s || '-often', 0, 0, 0,
    pg_temp.seed_digest('scope.v1', spoken || pg_temp.seed_number(0)),
    pg_temp.seed_digest('turn.v1', spoken || pg_temp.seed_number(0) || in_tool
      || pg_temp.seed_number(0) || in_arguments),
    pg_temp.seed_digest('repeat.v1', spoken || in_tool || in_arguments),
    sha256(pg_temp.seed_text('args.v1') || in_tool || in_arguments), %(arguments)s
  FROM one
),
events AS (
  INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, data)
  SELECT id, 2 * n - 1 + end_, at + make_interval(secs => n - 1 + end_ * 0.4),
    (CASE end_ WHEN 0 THEN 'granted' ELSE 'reported' END)::ledger_event_kind,
    (CASE WHEN end_ = 1 THEN CASE WHEN n < %(attempts)s THEN 'not_sent' ELSE 'unknown' END END)
      ::ledger_event_word,
    n, 1, CASE end_ WHEN 0 THEN '{"worker": "w-7"}' ELSE '{"error": "ConnectError"}' END::jsonb
  FROM one, generate_series(1, %(attempts)s) n, generate_series(0, 1) end_
)
INSERT INTO ledger_due (claim_id, why, workspace_id, since)
SELECT id, why, %(workspace_id)s, now() FROM one, unnest(array['person', 'lookup']) why
RETURNING claim_id"""

# One call with very large arguments: larger than the door takes, as an older ledger may hold it.
LARGE: Final = """
WITH one AS MATERIALIZED (
  SELECT *, uuidv7(at - clock_timestamp()) AS id, convert_to(arguments, 'UTF8') AS body FROM (
    SELECT now() - interval '2 hours' AS at, id AS tool_id, effect_class,
      pg_temp.seed_text(name) AS in_tool,
      format('{"amount":4201,"currency":"eur","customer":"cus_Large","order":"1","text":"%%s"}',
        repeat('A line of an order that is very long. ', %(bytes)s / 38)) AS arguments,
      pg_temp.seed_number(%(workspace_id)s) || pg_temp.seed_text(%(tag)s || '-large') AS spoken
    FROM effects_tool WHERE id = %(tool_id)s) facts
),
claim AS (
  INSERT INTO ledger_claim (id, workspace_id, tool_id, effect_class, state, version, budget,
    granted_at, lease_until, window_until, key, conversation, turn_index, position, ordinal, scope,
    turn, repeat, arguments_digest)
  SELECT id, %(workspace_id)s, tool_id, effect_class, 'unknown', 2, 3, at,
    at + interval '90 seconds',
    CASE WHEN effect_class = 'keyed_write' THEN at + interval '1 day' END,
    'cf1-' || encode(pg_temp.seed_digest('turn.v1', spoken || pg_temp.seed_number(0) || in_tool
      || pg_temp.seed_number(0) || pg_temp.seed_arguments(arguments)), 'hex'),
    %(tag)s || '-large', 0, 0, 0,
    pg_temp.seed_digest('scope.v1', spoken || pg_temp.seed_number(0)),
    pg_temp.seed_digest('turn.v1', spoken || pg_temp.seed_number(0) || in_tool
      || pg_temp.seed_number(0) || pg_temp.seed_arguments(arguments)),
    pg_temp.seed_digest('repeat.v1', spoken || in_tool || pg_temp.seed_arguments(arguments)),
    sha256(pg_temp.seed_text('args.v1') || in_tool || pg_temp.seed_arguments(arguments))
  FROM one
),
payload AS (
  INSERT INTO ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes)
  SELECT %(workspace_id)s, id, 0, 'arguments', body, sha256(body), octet_length(body) FROM one
),
events AS (
  INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, data)
  SELECT id, n, at + make_interval(secs => 30 * (n - 1)),
    (array['granted', 'reported'])[n]::ledger_event_kind,
    (array[null, 'unknown'])[n]::ledger_event_word, 1, 1,
    (array['{"worker": "w-7"}', '{"error": "ReadTimeout after 30 s"}'])[n]::jsonb
  FROM one, generate_series(1, 2) n
)
INSERT INTO ledger_due (claim_id, why, workspace_id, since)
SELECT id, why, %(workspace_id)s, now() FROM one, unnest(array['person', 'lookup']) why
RETURNING claim_id"""
