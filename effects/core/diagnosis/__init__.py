"""At which layer one call became two, told from evidence about both executions.

Five layers can execute one call twice, and their remedies have nothing in common, so a guess is
worse than no answer. Each fingerprint rules layers out; what no fingerprint rules out stays a
candidate, and only a single candidate is an answer. Pure: no clock, no database.
"""

from effects.core.diagnosis.bands import DEFAULTS, Constants
from effects.core.diagnosis.decide import Diagnosis, Group, GroupDiagnosis, diagnose, diagnose_pair
from effects.core.diagnosis.evidence import Execution, GatewayRecord, Source, Upstream
from effects.core.diagnosis.layers import Layer

__all__ = [
    "DEFAULTS",
    "Constants",
    "Diagnosis",
    "Execution",
    "GatewayRecord",
    "Group",
    "GroupDiagnosis",
    "Layer",
    "Source",
    "Upstream",
    "diagnose",
    "diagnose_pair",
]
