from django.db import migrations

# The call's page reads a claim with any number of events in the same time (ledger/excerpts.py).
# Neither index holds an event of a call that simply goes well, so such a call never writes to one.
TOLD = """
CREATE INDEX event_told ON ledger_event (claim_id, kind, seq)
 WHERE kind IN ('sighting', 'noted', 'decision_held', 'hold_extended', 'decision_withdrawn',
                'decision_cancelled', 'decided', 'release_lapsed', 'absence_lapsed')
"""
LATER_ATTEMPTS = """
CREATE INDEX event_later_attempts ON ledger_event (claim_id, fence, kind)
 WHERE fence > 1 AND kind IN ('granted', 'started', 'sent', 'reported', 'lapsed')
"""


class Migration(migrations.Migration):
    dependencies = [("reconcile", "0014_notifications")]

    operations = [
        migrations.RunSQL(TOLD, "DROP INDEX event_told"),
        migrations.RunSQL(LATER_ATTEMPTS, "DROP INDEX event_later_attempts"),
    ]
