"""Where the audit log is read from: every history that says who did what, as one shape of row.

A history stays where it is written; nothing is copied. Each source answers `id, at, user_id, rule,
act, target, page, ref, before, after, reason`: `rule` names the rule where no person acted, `page`
and `ref` the address of what was acted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Family(StrEnum):
    """What people filter the log by."""

    DECISIONS = "decisions"
    WORK = "work"
    TOOLS = "tools"
    CONNECTIONS = "connections"
    PEOPLE = "people"
    RULES = "rules"
    FINDINGS = "findings"
    OTHER = "other"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS: Final = {
    Family.DECISIONS: "Decisions",
    Family.WORK: "Takes, runs and bulk",
    Family.TOOLS: "Tools",
    Family.CONNECTIONS: "Connections",
    Family.PEOPLE: "People",
    Family.RULES: "Rules and texts",
    Family.FINDINGS: "Duplicates and ghosts",
    Family.OTHER: "Access, settings, looks and exports",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One history. `rows` is a SELECT that names the workspace as `%(workspace_id)s`."""

    word: str
    family: Family
    rows: str


def _call(table: str, *, at: str, user: str, act: str, more: str = "", reason: str = "''") -> str:
    """The rows of a table whose rows are each about one call."""
    return f"""SELECT x.id, x.{at} AS at, x.{user} AS user_id, NULL AS rule, '{act}' AS act,
  x.claim_id::text AS target, 'call' AS page, x.claim_id::text AS ref,
  NULL::jsonb AS before, NULL::jsonb AS after, {reason} AS reason
FROM {table} x WHERE x.workspace_id = %(workspace_id)s AND x.{at} IS NOT NULL {more}"""  # noqa: S608 - every word is ours


def _own(table: str, *, at: str, user: str, act: str, seen: tuple[str, str], more: str) -> str:
    """The rows of a table of the workspace. `seen` is the target as an expression and the page that
    shows it, `more` the rest of the columns."""
    target, page = seen
    return f"""SELECT x.id, x.{at} AS at, x.{user} AS user_id, NULL AS rule, '{act}' AS act,
  {target} AS target, '{page}' AS page, x.id::text AS ref, {more}
FROM {table} x WHERE x.workspace_id = %(workspace_id)s AND x.{at} IS NOT NULL"""  # noqa: S608 - every word is ours


_NO_CHANGE: Final = "NULL::jsonb AS before, NULL::jsonb AS after"

SOURCES: Final = (
    Source(
        word="decision",
        family=Family.DECISIONS,
        rows="""SELECT x.id, x.decided_at AS at, x.decided_by_id AS user_id, x.rule,
  'decision.' || x.verdict::text AS act, x.claim_id::text AS target, 'call' AS page,
  x.claim_id::text AS ref, NULL::jsonb AS before,
  jsonb_strip_nulls(jsonb_build_object('decision', 'dec_' || x.id, 'object', x.object,
    'evidence', CASE WHEN x.evidence = '{}' THEN NULL ELSE to_jsonb(x.evidence) END,
    'claim_version', x.claim_version, 'chain_number', x.chain_number,
    'approved_by', x.approved_by_id, 'withdraws', 'dec_' || x.withdraws)) AS after, x.reason
FROM ledger_decision x WHERE x.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="entry",
        family=Family.OTHER,
        rows="""SELECT x.id, x.at, x.user_id, NULL AS rule, x.act, x.target, '' AS page,
  x.target_address AS ref, x.before, x.after, x.reason
FROM effects_auditentry x WHERE x.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="tool",
        family=Family.TOOLS,
        rows="""SELECT x.id, x.changed_at AS at, x.changed_by_id AS user_id, NULL AS rule,
  CASE WHEN x.before IS NULL THEN 'tool.registered' ELSE 'tool.changed' END AS act,
  t.name AS target, 'tool' AS page, t.id::text AS ref, x.before, x.after, x.reason
FROM effects_toolchange x JOIN effects_tool t ON t.id = x.tool_id
WHERE t.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="connection",
        family=Family.CONNECTIONS,
        rows="""SELECT x.id, x.changed_at AS at, x.changed_by_id AS user_id, NULL AS rule,
  CASE WHEN x.before IS NULL THEN 'connection.added' ELSE 'connection.changed' END AS act,
  c.name AS target, 'connection' AS page, c.id::text AS ref, x.before, x.after, x.reason
FROM effects_connectionchange x JOIN effects_connection c ON c.id = x.connection_id
WHERE c.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="member",
        family=Family.PEOPLE,
        rows="""SELECT x.id, x.changed_at AS at, x.changed_by_id AS user_id, NULL AS rule,
  'member.' || x.kind AS act, u.username AS target, 'people' AS page, '' AS ref,
  CASE WHEN x.role_before = '' THEN NULL ELSE jsonb_build_object('role', x.role_before) END
    AS before,
  CASE WHEN x.role_after = '' THEN NULL ELSE jsonb_build_object('role', x.role_after) END AS after,
  x.reason
FROM effects_memberchange x JOIN auth_user u ON u.id = x.user_id
WHERE x.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="text",
        family=Family.RULES,
        rows=_own(
            "reconcile_customertext",
            at="written_at",
            user="written_by_id",
            act="customer_text.written",
            seen=("x.kind", "customer-texts"),
            more="NULL::jsonb AS before, jsonb_build_object('text', x.text) AS after, '' AS reason",
        ),
    ),
    Source(
        word="rule_made",
        family=Family.RULES,
        rows=_own(
            "reconcile_secondpersonrule",
            at="made_at",
            user="made_by_id",
            act="second_person_rule.made",
            seen=("'rule ' || x.id", "second-person"),
            more="""NULL::jsonb AS before, jsonb_build_object('class', x.effect_class,
  'action', x.action, 'currency', x.currency, 'amount_from', x.amount_from::text,
  'approver', x.approver_role) AS after, x.reason""",
        ),
    ),
    Source(
        word="rule_retired",
        family=Family.RULES,
        rows=_own(
            "reconcile_secondpersonrule",
            at="retired_at",
            user="retired_by_id",
            act="second_person_rule.retired",
            seen=("'rule ' || x.id", "second-person"),
            more=f"{_NO_CHANGE}, x.retired_reason AS reason",
        ),
    ),
    Source(
        word="constants",
        family=Family.RULES,
        rows=_own(
            "reconcile_retryconstants",
            at="changed_at",
            user="changed_by_id",
            act="retry_constants.changed",
            seen=("'version ' || x.version", "duplicate-constants"),
            more="NULL::jsonb AS before, x.figures AS after, x.reason",
        ),
    ),
    Source(
        word="take",
        family=Family.WORK,
        rows=_call("reconcile_take", at="taken_at", user="taken_by_id", act="call.taken"),
    ),
    Source(
        word="takeover",
        family=Family.WORK,
        rows=_call(
            "reconcile_take",
            at="ended_at",
            user="ended_by_id",
            act="call.taken_over",
            more="AND x.ended_how = 'taken_over'",
            reason="x.reason",
        ),
    ),
    Source(
        word="assignment",
        family=Family.WORK,
        rows=_call(
            "reconcile_assignment",
            at="at",
            user="assigned_by_id",
            act="call.assigned",
            reason="x.note",
        ),
    ),
    Source(
        word="snooze",
        family=Family.WORK,
        rows=_call(
            "reconcile_snooze",
            at="at",
            user="snoozed_by_id",
            act="call.snoozed",
            reason="x.reason",
        ),
    ),
    Source(
        word="proposal",
        family=Family.DECISIONS,
        rows=_call(
            "reconcile_proposal",
            at="proposed_at",
            user="proposed_by_id",
            act="second_person.asked",
            reason="x.reason",
        ),
    ),
    Source(
        word="answer",
        family=Family.DECISIONS,
        rows=_call(
            "reconcile_proposal",
            at="answered_at",
            user="answered_by_id",
            act="second_person.refused",
            more="AND x.status = 'rejected'",
            reason="x.answer_reason",
        ),
    ),
    Source(
        word="run",
        family=Family.WORK,
        rows=_own(
            "reconcile_run",
            at="made_at",
            user="started_by_id",
            act="run.started",
            seen=("'run ' || x.id", "run"),
            more="NULL::jsonb AS before, jsonb_build_object('scope', x.words, 'dry', x.dry)"
            " AS after, '' AS reason",
        )
        + " AND x.started_by_id IS NOT NULL",
    ),
    Source(
        word="bulk",
        family=Family.WORK,
        rows=_own(
            "reconcile_bulk",
            at="started_at",
            user="made_by_id",
            act="bulk.started",
            seen=("'bulk ' || x.id", "bulk"),
            more="NULL::jsonb AS before, jsonb_build_object('action', x.action, 'view', x.view)"
            " AS after, x.reason",
        ),
    ),
    Source(
        word="duplicate",
        family=Family.FINDINGS,
        rows="""SELECT x.id, x.at, x.by_id AS user_id, NULL AS rule, 'duplicate.' || x.act AS act,
  'group ' || g.id AS target, 'duplicate' AS page, g.id::text AS ref, NULL::jsonb AS before,
  CASE WHEN x.link = '' THEN NULL ELSE jsonb_build_object('link', x.link) END AS after, x.reason
FROM reconcile_duplicateact x JOIN reconcile_duplicategroup g ON g.id = x.group_id
WHERE g.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="ghost",
        family=Family.FINDINGS,
        rows="""SELECT x.id, x.said_at AS at, x.said_by_id AS user_id, NULL AS rule,
  CASE WHEN x.dismissed THEN 'ghost.explained' ELSE 'ghost.reopened' END AS act,
  g.object_id AS target, 'ghosts' AS page, '' AS ref, NULL::jsonb AS before, NULL::jsonb AS after,
  x.reason
FROM reconcile_ghostsaid x JOIN reconcile_ghost g ON g.id = x.ghost_id
JOIN effects_connection c ON c.id = g.connection_id
WHERE c.workspace_id = %(workspace_id)s""",
    ),
    Source(
        word="agent_address",
        family=Family.CONNECTIONS,
        rows=_own(
            "reconcile_agentaddress",
            at="made_at",
            user="made_by_id",
            act="agent_address.added",
            seen=("x.name", "outbox"),
            more="NULL::jsonb AS before, jsonb_build_object('url', x.url,"
            " 'secret_name', x.secret_name) AS after, '' AS reason",
        ),
    ),
    Source(
        word="chain",
        family=Family.OTHER,
        rows=_own(
            "reconcile_chaincheck",
            at="at",
            user="asked_by_id",
            act="chain.verified",
            seen=("x.decisions || ' decisions'", "audit-log"),
            more="NULL::jsonb AS before, CASE WHEN x.fault = '' THEN NULL ELSE"
            " jsonb_build_object('fault', x.fault) END AS after, '' AS reason",
        ),
    ),
)
