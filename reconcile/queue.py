"""The statements of the queue: which calls need a person, in which order, page by page.

The ledger's work lists name the candidates; one statement reads those claims as the clock leaves
them at one instant, so a lease that is over shows as unknown whether or not a sweep has been by.
That instant is frozen on the first page and travels in the cursor: rows that stay in the list keep
their place while others come and go, so each is seen exactly once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from reconcile.news import NO_NEWS_KINDS, NO_NEWS_SIGHTINGS
from reconcile.search import Search
from reconcile.views.filters import ME, NO_EVIDENCE, NOBODY, Filters, Group, Sort, View

ROWS_PER_PAGE: Final = 50
NEWEST_MAX: Final = 20_000
"""Of all calls, the newest that the view "All calls" sorts and searches."""
MENTIONED_LATELY: Final = timedelta(days=30)
"""How long a call in which somebody is mentioned stays under that tab."""
CLOSING_SOON: Final = timedelta(hours=2)
"""How near the end of its window a call is urgent, and an in-flight one is listed."""
EVENTS_LOOKED_BACK_MAX: Final = 200
"""How far back the newest evidence and report of a call are looked for: a call with thousands of
attempts must not slow the list down."""

UNCOUNTED: Final = frozenset({View.MENTIONS, View.RESOLVED, View.ALL})  # lists of their own
GROUP_WORDS: Final = {
    Group.NO_KEY: ("No key to lean on", "a retry can never be made safe; decide from evidence"),
    Group.CLOSING: ("Closing within 2 h", "the provider forgets the key"),
    Group.OPEN: ("Open", "sorted by the time left, then by amount"),
    Group.UNPUBLISHED: ("Window not published", "nobody says how long the key is honoured"),
    Group.LATE: ("Window closed", "a retry with the old key is a new request"),
    Group.NO_KEY_NO_AMOUNT: ("No key, no amount", "a retry can never be made safe"),
}


# The statement


CLOCK_HAS_WORK: Final = """(c.state = 'in_flight' AND c.lease_until <= %(at)s
    OR coalesce(c.grant_until <= %(at)s, false) OR coalesce(c.pending_at <= %(at)s, false))"""

# An attempt's own grant: the claim's own instant is that of its first one.
_ATTEMPT_TOO_OLD: Final = """(CASE WHEN c.fence = 1 THEN c.granted_at ELSE
      (SELECT e.at FROM ledger_event e
        WHERE e.claim_id = c.id AND e.kind = 'granted' AND e.fence = c.fence) END
    + make_interval(secs => t.attempt_seconds_max) < %(at)s)"""

_USED_UP: Final = """(c.fence >= c.budget AND EXISTS (SELECT FROM ledger_case x
      WHERE x.claim_id = c.id AND x.code = 'attempts_exhausted'
        AND x.seen IS DISTINCT FROM x.closed_seen))"""

CANDIDATES: Final = f"""(c.state IN ('unknown', 'conflicted', 'released', 'closed')
   OR {CLOCK_HAS_WORK}
   OR c.pending_at IS NOT NULL
   OR c.state = 'in_flight' AND c.window_until > %(at)s AND c.window_until <= %(soon)s
   OR c.state = 'in_flight' AND {_ATTEMPT_TOO_OLD}
   OR c.state = 'not_executed' AND {_USED_UP})"""

# What the ledger lists as work, and what is in flight and too young to be listed: the sweep files
# leases from its watermark on. `verify_ledger` checks that no candidate is missing there. Look-ups
# are no work of people: a call that was found keeps its own for ever, and there is one for each.
# The upper bound is only for the planner, which without it expects a third of all claims.
LISTED: Final = """SELECT claim_id AS id FROM ledger_due
    WHERE why IN ('clock', 'person') {of_workspace}
  UNION SELECT id FROM ledger_claim
    WHERE id > coalesce((SELECT claim_id FROM ledger_watermark WHERE name = 'leases'),
                        '00000000-0000-0000-0000-000000000000')
      AND id < 'ffffffff-ffff-ffff-ffff-ffffffffffff'
      AND state = 'in_flight' {of_workspace}"""

# A request for a second person may be about a call that is settled: to reopen it, for example.
_LISTED_HERE: Final = f"""{LISTED.format(of_workspace="AND workspace_id = %(workspace_id)s")}
  UNION SELECT claim_id FROM reconcile_proposal
    WHERE workspace_id = %(workspace_id)s AND status = 'open'"""  # noqa: S608 - no word is typed
# Put off by a person, and nothing learnt since: a look-up without an answer is no news.
_NO_NEWS_KINDS: Final = ", ".join(f"'{kind}'" for kind in NO_NEWS_KINDS)
_NO_NEWS_WORDS: Final = ", ".join(f"'{word}'" for word in NO_NEWS_SIGHTINGS)
_SNOOZED: Final = f"""CASE WHEN z.claim_id IS NULL THEN false ELSE NOT EXISTS (
      SELECT FROM ledger_event e WHERE e.claim_id = c.id AND e.seq > z.claim_version
        AND e.kind NOT IN ({_NO_NEWS_KINDS})
        AND NOT (e.kind = 'sighting' AND e.word IN ({_NO_NEWS_WORDS}))) END"""
_SETTLED_HERE: Final = """SELECT claim_id AS id FROM ledger_due
    WHERE why IN ('settled', 'person') AND workspace_id = %(workspace_id)s"""
_MENTIONED_HERE: Final = """SELECT DISTINCT claim_id AS id FROM reconcile_mention
    WHERE workspace_id = %(workspace_id)s AND user_id = %(user_id)s AND at >= %(mentioned_since)s"""
# Every call there is cannot be sorted by what stands in its arguments while somebody waits.
_NEWEST_HERE: Final = """(SELECT id FROM ledger_claim
    WHERE workspace_id = %(workspace_id)s ORDER BY id DESC LIMIT %(newest_max)s)
  UNION (SELECT id FROM ledger_claim WHERE workspace_id = %(workspace_id)s AND ({named}))"""

# Settled since midnight by a rule or a person; a call that simply went well was never in the queue.
_RESOLVED: Final = """(c.state IN ('completed', 'not_executed', 'closed') AND EXISTS (
    SELECT FROM ledger_event e WHERE e.claim_id = c.id AND e.at >= %(midnight)s
      AND (e.kind = 'decided' OR e.kind = 'sighting' AND e.counts)))"""

# As an array: a list is read claim by claim, by their ids. A planner that joins it expects more of
# it than there is, and would read every claim there ever was.
SEEN: Final = """
seen AS MATERIALIZED (
  SELECT c.id, c.version, c.effect_class, c.granted_at, c.window_until, c.key, c.object, c.call_id,
    c.caller, c.conversation, c.response_id,
    c.pending_at, t.name AS tool,
    CASE WHEN {clock_has_work} THEN (ledger_seen_v1(c, %(at)s)).state ELSE c.state END AS state,
    CASE WHEN c.state = 'not_executed' THEN {used_up} ELSE false END AS used_up,
    w.claim_id IS NOT NULL AS waiting, {snoozed} AS snoozed,
    k.amount, k.currency, k.places, k.customer, k.summary,
    k.claim_id IS NULL OR k.tool_version <> t.version AS unread, {here} AS here
  FROM ledger_claim c
  JOIN effects_tool t ON t.id = c.tool_id
  LEFT JOIN reconcile_card k ON k.claim_id = c.id AND k.filled_at <= %(at)s
  LEFT JOIN reconcile_proposal w ON w.claim_id = c.id AND w.status = 'open'
    AND w.expires_at > %(at)s
  LEFT JOIN reconcile_snooze z ON z.claim_id = c.id AND z.ended_at IS NULL AND z.until > %(at)s
  WHERE c.id = ANY(ARRAY({listed})) AND ({candidates})
)"""

NEEDS_A_PERSON: Final = """(s.state IN ('unknown', 'conflicted', 'in_flight')
    OR s.state = 'not_executed' AND s.used_up)"""

_AWAKE: Final = f"{NEEDS_A_PERSON} AND NOT s.snoozed"
# Who has taken which call: a small table, and only of this workspace.
_TAKEN: Final = """SELECT claim_id FROM reconcile_take
    WHERE workspace_id = %(workspace_id)s AND ended_at IS NULL AND until > %(at)s"""
_ASSIGNED: Final = """SELECT claim_id FROM reconcile_assignment
    WHERE workspace_id = %(workspace_id)s AND ended_at IS NULL"""

_VIEWS: Final = {
    View.OPEN: _AWAKE,
    View.MINE: f"""{NEEDS_A_PERSON} AND (s.id IN ({_TAKEN} AND taken_by_id = %(user_id)s)
      OR s.id IN ({_ASSIGNED} AND assigned_to_id = %(user_id)s))""",
    View.MENTIONS: "true",
    View.UNTAKEN: f"{_AWAKE} AND s.id NOT IN ({_TAKEN}) AND s.id NOT IN ({_ASSIGNED})",
    View.CLOSING: f"{_AWAKE} AND s.window_until > %(at)s AND s.window_until <= %(soon)s",
    View.UNKEYED: f"{_AWAKE} AND s.effect_class = 'unkeyed_write'",
    View.LATE: f"{_AWAKE} AND s.window_until <= %(at)s",
    View.SNOOZED: f"{NEEDS_A_PERSON} AND s.snoozed",
    View.WAITING: "s.waiting",
    View.HELD: "s.pending_at > %(at)s",
    View.RELEASED: "s.state = 'released'",
    View.CLOSED: "s.state = 'closed'",
    View.RESOLVED: "true",
    View.ALL: "true",
}

_GROUP: Final = """CASE
    WHEN s.effect_class = 'unkeyed_write' THEN CASE WHEN s.amount > 0 THEN 0 ELSE 5 END
    WHEN s.window_until IS NULL THEN 3
    WHEN s.window_until <= %(at)s THEN 4
    WHEN s.window_until <= %(soon)s THEN 1
    ELSE 2 END"""

# Each order ascends in two numbers, then in the id, which ascends in time: no two rows tie.
_SORTS: Final = {
    Sort.WINDOW: (
        _GROUP,
        """CASE WHEN s.effect_class = 'unkeyed_write' OR s.window_until IS NULL THEN 0
             WHEN s.window_until <= %(at)s THEN -extract(epoch FROM s.window_until)
             ELSE extract(epoch FROM s.window_until) END""",
        "-coalesce(s.amount, 0)",
    ),
    Sort.AMOUNT: (
        "CASE WHEN s.amount IS NULL THEN 1 ELSE 0 END",
        "-coalesce(s.amount, 0)",
        "extract(epoch FROM s.granted_at)",
    ),
    Sort.AGE: ("0", "extract(epoch FROM s.granted_at)", "0"),
}


def seen_for(view: View, *, named: str = "false", also: str = "") -> str:
    """The common table `seen`: the claims that the view may show, as the clock leaves them.

    `named`: which claims "All calls" shows in any case, as a condition on their indexed columns.
    `also`: the parameter with the id of one claim that is among them whatever it is like.
    """
    listed, candidates = {
        View.RESOLVED: (_SETTLED_HERE, _RESOLVED),
        View.MENTIONS: (_MENTIONED_HERE, "true"),
        View.ALL: (_NEWEST_HERE.format(named=named), "true"),
    }.get(view, (_LISTED_HERE, f"({CANDIDATES} OR w.claim_id IS NOT NULL)"))
    if not also:
        return _seen(listed, candidates)
    # Only of this workspace: another's claim stays outside.
    every = f"SELECT one.id FROM ({listed}) one"  # noqa: S608 - no word is typed
    here = f"(c.id <> {also} OR c.id IN ({every})) AND coalesce({candidates}, false)"
    listed = f"""{every} UNION SELECT id FROM ledger_claim
      WHERE workspace_id = %(workspace_id)s AND id = {also}"""  # noqa: S608 - as above
    return _seen(listed, f"({candidates} OR c.id = {also})", here=here)


def _seen(listed: str, candidates: str, *, here: str = "true") -> str:
    return SEEN.format(
        listed=listed,
        clock_has_work=CLOCK_HAS_WORK,
        used_up=_USED_UP,
        snoozed=_SNOOZED,
        candidates=candidates,
        here=here,
    )


def rows_statement(filters: Filters, search: Search, *, counted: bool = False) -> str:
    """One page of the list. Every word of it is ours; what people typed is in the parameters.

    `counted`: each row says how many there are on all pages, up to the parameter `count_max`.
    """
    matching = "(SELECT count(*) FROM (SELECT FROM placed LIMIT %(count_max)s) every)"
    after = (
        "WHERE (p.grp, p.first, p.second, p.id) > "
        "(%(after_group)s, %(after_first)s, %(after_second)s, %(after_id)s)"
        if filters.after
        else ""
    )
    return f"""{_placed(filters, search)}
SELECT p.id, p.version, p.state, p.grp, p.first, p.second, p.waiting,
  coalesce(p.pending_at > %(at)s, false) AS held, {matching if counted else "0"} AS matching
FROM placed p {after}
ORDER BY p.grp, p.first, p.second, p.id LIMIT %(limit)s"""  # noqa: S608 - no word of it is typed


def chosen_statement() -> str:
    """The claims of the workspace that `ids` name, whatever they are like, in the usual order."""
    group, first, second = _SORTS[Sort.WINDOW]
    return f"""WITH {_seen(_CHOSEN_HERE, "true")}
SELECT s.id, s.version, s.state, ({group})::int AS grp, ({first})::numeric AS first,
  ({second})::numeric AS second, s.waiting, coalesce(s.pending_at > %(at)s, false) AS held
FROM seen s ORDER BY 4, 5, 6, 1"""  # noqa: S608 - no word of it is typed


_CHOSEN_HERE: Final = """SELECT id FROM ledger_claim
    WHERE workspace_id = %(workspace_id)s AND id = ANY(%(ids)s)"""


def count_statement(filters: Filters, search: Search) -> str:
    """How many rows the list has in all its pages, counted no further than `limit`."""
    return f"""{_placed(filters, search)}
SELECT count(*) AS matching FROM (SELECT FROM placed p LIMIT %(limit)s) p"""  # noqa: S608 - ours


def neighbours_statement(filters: Filters, search: Search) -> str:
    """Where one call stands among those that match, and what stands beside it: one row, or none.

    The call is placed whether or not it still matches: whoever has just decided about it goes on
    from where it stood. What is held is decided already, so nobody is led on to it.
    """
    group, first, second = _SORTS[filters.sort]
    matches = f"s.here AND {_matching(filters, search)}"
    here = "(p.grp, p.first, p.second, p.id)"
    own = "(SELECT o.grp, o.first, o.second, o.id FROM placed o WHERE o.id = %(walk_id)s)"
    to_decide = "true" if filters.view in _VIEWS_OF_HELD else "NOT p.is_held"
    return f"""WITH {seen_for(filters.view, named=search.named, also="%(walk_id)s")},
placed AS (
  SELECT s.id, ({group})::int AS grp, ({first})::numeric AS first, ({second})::numeric AS second,
    coalesce(s.pending_at > %(at)s, false) AS is_held, ({matches}) AS matches
  FROM seen s WHERE ({matches}) OR s.id = %(walk_id)s
)
SELECT (SELECT count(*) FROM placed p WHERE p.matches) AS total,
  (SELECT count(*) FROM placed p WHERE p.matches AND {here} < {own}) AS before,
  (SELECT p.matches FROM placed p WHERE p.id = %(walk_id)s) AS listed,
  (SELECT p.id FROM placed p WHERE p.matches AND {here} < {own}
    ORDER BY p.grp DESC, p.first DESC, p.second DESC, p.id DESC LIMIT 1) AS previous,
  (SELECT p.id FROM placed p WHERE p.matches AND {here} > {own} AND {to_decide}
    ORDER BY p.grp, p.first, p.second, p.id LIMIT 1) AS next"""  # noqa: S608 - no word is typed


_VIEWS_OF_HELD: Final = frozenset({View.HELD, View.RELEASED, View.CLOSED, View.RESOLVED, View.ALL})


def _placed(filters: Filters, search: Search) -> str:
    """The common table `placed`: the claims that match, each with its place in the list."""
    group, first, second = _SORTS[filters.sort]
    return f"""WITH {seen_for(filters.view, named=search.named)},
placed AS (
  SELECT s.*, ({group})::int AS grp, ({first})::numeric AS first, ({second})::numeric AS second
  FROM seen s WHERE {_matching(filters, search)}
)"""  # noqa: S608 - no word of it is typed


_CARED_FOR: Final = f"s.id IN ({_TAKEN}) OR s.id IN ({_ASSIGNED})"
_NEWEST_STRENGTH: Final = f"""coalesce((SELECT coalesce(e.data->>'strength', 'says_nothing')
    FROM ledger_event e WHERE e.claim_id = s.id AND e.kind = 'sighting'
      AND e.seq > s.version - {EVENTS_LOOKED_BACK_MAX}
    ORDER BY e.seq DESC LIMIT 1), '{NO_EVIDENCE}')"""  # noqa: S608 - every word is ours


def _matching(filters: Filters, search: Search) -> str:
    """The condition on the table `seen s` that the filters are. Words of people are parameters."""
    narrowing = {
        "s.tool = %(tool)s": filters.tool,
        "s.state = %(state)s::ledger_claim_state": filters.state,
        "s.effect_class = %(effect_class)s": filters.effect_class,
        f"{_NEWEST_STRENGTH} = %(strength)s": filters.strength,
        _who(filters.who): filters.who,
        "s.amount >= %(amount_from)s": filters.amount_from is not None,
        "s.amount <= %(amount_to)s": filters.amount_to is not None,
        "s.currency = %(currency)s": filters.currency,
        "s.granted_at <= %(at)s - make_interval(secs => %(older_seconds)s)": filters.older_seconds,
    }
    conditions = [_VIEWS[filters.view], search.condition]
    conditions += [condition for condition, wanted in narrowing.items() if wanted]
    return " AND ".join(f"({condition})" for condition in conditions)


def _who(who: str) -> str:
    """Whose call it is: whoever has taken it now, or was assigned it."""
    if who == NOBODY:
        return f"NOT ({_CARED_FOR})"
    person = "user_id" if who == ME else "who"
    return f"""s.id IN ({_TAKEN} AND taken_by_id = %({person})s)
      OR s.id IN ({_ASSIGNED} AND assigned_to_id = %({person})s)"""


def figures_statement() -> str:
    """Counts of every tab and the sums at risk, one row for each currency (and for none)."""
    counted = ",\n  ".join(
        f"count(*) FILTER (WHERE {_VIEWS[view]}) AS {view}"
        for view in View
        if view not in UNCOUNTED
    )
    return f"""WITH {seen_for(View.OPEN)}
SELECT coalesce(s.currency, '') AS currency, max(s.places) AS places,
  sum(s.amount) FILTER (WHERE {NEEDS_A_PERSON}) AS at_risk,
  sum(s.amount) FILTER (WHERE {NEEDS_A_PERSON} AND s.window_until <= %(at)s) AS at_risk_late,
  count(*) FILTER (WHERE s.state = 'unknown') AS unknown,
  count(*) FILTER (WHERE s.unread) AS unread,
  min(s.window_until) FILTER (WHERE {_VIEWS[View.CLOSING]}) AS closes_next,
  {counted}
FROM seen s GROUP BY 1"""  # noqa: S608 - no word of it is typed
