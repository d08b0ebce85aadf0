"""`python -m tests.bench.pages_alone [claims]`: the pages' figures alone, on a database of their
own. `PAGES_CLAIMS` says how many calls, too."""

from __future__ import annotations

import json
import os
import sys

from tests.bench import pages
from tests.bench.ground import ground

claims = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PAGES_CLAIMS", "100000"))
with ground(door=False):
    said = pages.measure(claims, lambda sentence: print(sentence, file=sys.stderr))
for one in said:
    print(json.dumps(one.line()))
print(pages.table(said), file=sys.stderr)
