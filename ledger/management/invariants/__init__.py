"""What must be true of the record, each as a check that lists every place where it is not.

A check reads and never repairs: a record that was changed behind the ledger's back is evidence, and
what repairs it by itself destroys that evidence.
"""
