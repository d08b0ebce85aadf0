"""`python -m tests.laws FIRST COUNT`: see `tests.laws.simulate`."""

import django

django.setup()

from tests.laws.simulate import main  # noqa: E402 - the models need the set-up before

raise SystemExit(main())
