"""The statements that sum up one day: what they read is a range of ids or of instants.

`%(first)s` and `%(beyond)s` bound the day's claims, `%(begins)s` and `%(ends)s` its streams.
"""

from __future__ import annotations

from typing import Final

from reconcile.exposure.measuring import BIN_RATIO

_DAYS_CLAIMS: Final = "c.id >= %(first)s AND c.id < %(beyond)s"
_DAYS_EVENTS: Final = "e.claim_id >= %(first)s AND e.claim_id < %(beyond)s"
_DAYS_STREAMS: Final = "s.received_at >= %(begins)s AND s.received_at < %(ends)s"

# A report of an unknown outcome after the effect was reported as done is no doubt about it.
_DOUBTED: Final = f"""SELECT e.claim_id, min(e.seq) AS seq, min(e.at) AS at FROM ledger_event e
   WHERE {_DAYS_EVENTS}
     AND (e.kind = 'lapsed' OR e.kind = 'reported' AND e.word = 'unknown')
     AND NOT EXISTS (SELECT FROM ledger_event b WHERE b.claim_id = e.claim_id AND b.seq < e.seq
                      AND b.kind = 'reported' AND b.word = 'completed')
   GROUP BY e.claim_id"""  # noqa: S608 - no word of it is typed

UNSURE: Final = f"""
INSERT INTO reconcile_unsurecall (claim_id, workspace_id, tool_id, day, unknown_at, ended_at, by,
                                  window_until, race_at, contradicted_at)
SELECT c.id, c.workspace_id, c.tool_id, %(day)s, u.at, n.at, coalesce(n.by, ''), c.window_until,
       CASE WHEN c.window_until IS NOT NULL THEN least(n.at, c.window_until) END,
       (SELECT min(x.at) FROM reconcile_contradiction x
         WHERE x.claim_id = c.id AND x.at >= n.at AND n.by <> 'agent')
  FROM ({_DOUBTED}) u
  JOIN ledger_claim c ON c.id = u.claim_id
  JOIN effects_workspace w ON w.id = c.workspace_id
  LEFT JOIN LATERAL (
    SELECT e.at, CASE WHEN e.kind = 'reported' THEN 'agent'
                      WHEN e.kind = 'decided' AND d.decided_by_id IS NOT NULL THEN 'person'
                      ELSE 'rule' END AS by
      FROM ledger_event e LEFT JOIN ledger_decision d ON d.id = e.decision_id
     WHERE e.claim_id = u.claim_id AND e.seq > u.seq
       AND (e.kind = 'decided' AND e.word IN ('happened', 'not_happened', 'release_same',
                                              'release_new', 'close', 'settle')
            OR e.kind = 'sighting' AND e.counts AND e.word IN ('found', 'found_many', 'absent')
            OR e.kind = 'reported' AND e.word <> 'unknown')
     ORDER BY e.seq LIMIT 1) n ON true
"""  # noqa: S608 - no word of it is typed

SLOTS: Final = f"""
INSERT INTO reconcile_toolslot (workspace_id, tool_id, day, at, calls, unknown)
SELECT c.workspace_id, c.tool_id, %(day)s,
       date_bin('15 minutes', c.granted_at, '2000-01-01 00:00:00+00'),
       count(*), count(u.claim_id)
  FROM ledger_claim c
  JOIN effects_workspace w ON w.id = c.workspace_id
  LEFT JOIN reconcile_unsurecall u ON u.claim_id = c.id AND u.day = %(day)s
 WHERE {_DAYS_CLAIMS}
 GROUP BY 1, 2, 4
"""  # noqa: S608 - no word of it is typed


def _bin(seconds: str) -> str:
    return f"floor(ln(greatest(1, 1000 * {seconds})) / ln({BIN_RATIO}))::int"


# Times of one clock only: the ledger's for its own attempts, the sender's for mirrored ones.
_SAID: Final = """CASE WHEN 'mirrored' = ANY (c.flags)
    THEN (e.data->>'said_at')::timestamptz ELSE e.at END"""

LATENCY: Final = f"""
SELECT a.workspace_id, a.tool_id, {_bin("extract(epoch FROM a.ended - a.begun)")} AS bin,
       count(*) AS n
  FROM (
    SELECT c.workspace_id, c.tool_id,
           coalesce(min({_SAID}) FILTER (WHERE e.kind = 'sent'),
                    min({_SAID}) FILTER (WHERE e.kind = 'granted')) AS begun,
           min({_SAID}) FILTER (WHERE e.kind = 'reported'
             AND e.word IN ('completed', 'refused', 'refused_stored')) AS ended
      FROM ledger_event e JOIN ledger_claim c ON c.id = e.claim_id
      JOIN effects_workspace w ON w.id = c.workspace_id
     WHERE {_DAYS_EVENTS} AND e.kind IN ('sent', 'granted', 'reported')
     GROUP BY c.id, e.fence) a
 WHERE a.ended >= a.begun
 GROUP BY 1, 2, 3
"""  # noqa: S608 - no word of it is typed

# A stream that failed although a call of it had been granted. The call is the response's own where
# both name it; otherwise one that ended in it and has the same id. A first attempt that provably
# sent nothing leaves nothing behind.
_CAUGHT: Final = f"""SELECT DISTINCT s.id, s.workspace_id, c.tool_id
    FROM ledger_stream s
    JOIN ledger_claim c ON c.scope = s.scope AND c.workspace_id = s.workspace_id
   WHERE {_DAYS_STREAMS} AND s.terminal IN ('cut', 'error_event')
     AND (c.response_id = s.response_id
          OR (c.response_id IS NULL OR s.response_id IS NULL) AND c.call_id = ANY (ARRAY(
               SELECT k.call_id FROM ledger_call k WHERE k.stream_id = s.id AND k.complete)))
     AND NOT EXISTS (SELECT FROM ledger_event e WHERE e.claim_id = c.id AND e.kind = 'reported'
                      AND e.word = 'not_sent' AND e.fence = 1)"""  # noqa: S608 - as above

STREAMS: Final = f"""
WITH caught AS ({_CAUGHT})
SELECT s.workspace_id,
       count(*) FILTER (WHERE s.terminal = 'success') AS success,
       count(*) FILTER (WHERE s.terminal = 'incomplete') AS incomplete,
       count(*) FILTER (WHERE s.terminal = 'error_event') AS error_event,
       count(*) FILTER (WHERE s.terminal = 'cut') AS cut,
       count(*) FILTER (WHERE s.terminal = 'cancelled') AS cancelled,
       count(*) FILTER (WHERE s.terminal IS NULL) AS without_end,
       count(*) FILTER (WHERE s.id IN (SELECT id FROM caught)) AS in_window
  FROM ledger_stream s JOIN effects_workspace w ON w.id = s.workspace_id
 WHERE {_DAYS_STREAMS}
 GROUP BY 1
"""  # noqa: S608 - no word of it is typed

ANNOUNCED: Final = f"""
WITH caught AS ({_CAUGHT}),
named AS (
  SELECT DISTINCT s.workspace_id, t.id AS tool_id, s.id
    FROM ledger_stream s JOIN ledger_call k ON k.stream_id = s.id
    JOIN effects_tool t ON t.workspace_id = s.workspace_id AND t.name = k.tool
   WHERE {_DAYS_STREAMS} AND s.terminal IS NOT NULL
  UNION SELECT workspace_id, tool_id, id FROM caught
)
SELECT n.workspace_id, n.tool_id, count(*) AS responses,
       count(*) FILTER (WHERE EXISTS (SELECT FROM caught x
         WHERE x.id = n.id AND x.tool_id = n.tool_id)) AS in_window
  FROM named n
 GROUP BY 1, 2
"""  # noqa: S608 - no word of it is typed

# When a call's arguments ended is known where an event told of it by itself, or where the record of
# the whole response gave it a time of its own.
GAP: Final = f"""
SELECT g.workspace_id, t.id AS tool_id, {_bin("extract(epoch FROM g.gap)")} AS bin, count(*) AS n
  FROM (
    SELECT s.workspace_id, s.id, s.closed_at - max(
             CASE WHEN i.type = 'call.announced' THEN i.said_at
                  WHEN k.said_at IS DISTINCT FROM i.said_at THEN k.said_at END) AS gap,
           array_agg(DISTINCT k.tool) AS tools
      FROM ledger_stream s
      JOIN ledger_call k ON k.stream_id = s.id AND k.complete
      JOIN ledger_ingestitem i ON i.id = k.item_id
     WHERE {_DAYS_STREAMS} AND s.terminal = 'success'
     GROUP BY s.id) g
  JOIN effects_tool t ON t.workspace_id = g.workspace_id AND t.name = ANY (g.tools)
 WHERE g.gap >= interval '0'
 GROUP BY 1, 2, 3
"""  # noqa: S608 - no word of it is typed

_OURS: Final = """btrim(e.facts->>'key', '"') IN (
    SELECT c.key || '-' || g FROM generate_series(1, c.generation) g
    UNION ALL SELECT c.sent_key WHERE c.sent_key IS NOT NULL)"""

WIRE: Final = f"""
SELECT c.workspace_id, c.tool_id,
       count(*) FILTER (WHERE e.facts->>'key' IS NOT NULL AND {_OURS}) AS wire_same,
       count(*) FILTER (WHERE e.facts->>'key' IS NOT NULL AND NOT {_OURS}) AS wire_other,
       count(*) FILTER (WHERE e.facts->>'key' IS NULL) AS wire_missing
  FROM reconcile_importedevidence e
  JOIN ledger_claim c ON c.id = e.claim_id AND c.workspace_id = e.workspace_id
 WHERE {_DAYS_EVENTS}
   AND e.source IN ('provider', 'stripe', 'gateway') AND e.facts->>'key_seen' = 'true'
 GROUP BY 1, 2
"""  # noqa: S608 - no word of it is typed
