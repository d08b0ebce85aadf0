"""Settings of a test run: its own folder, its own ports, its own passwords.

pytest-django loads this module before any conftest runs, and mypy's plugin loads it as well. So it
only decides; `tests/conftest.py` makes the folder and starts the services.
"""

import os
import secrets
import tempfile
from pathlib import Path

from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres
from effects.local.valkey import LocalValkey

# Whoever runs the tests may have a demo running, or its variables exported: neither is ours.
for _name in [name for name in os.environ if name.startswith("COUNTERFOIL_")]:
    del os.environ[_name]

TEST_VAR = Path(tempfile.gettempdir()) / f"counterfoil-tests-{os.getpid()}"
TEST_POSTGRES = LocalPostgres(
    home=TEST_VAR / "postgres",
    port=any_free_port(),
    password=secrets.token_urlsafe(24),
    durable=False,
)
TEST_VALKEY = LocalValkey(
    home=TEST_VAR / "valkey", port=any_free_port(), password=secrets.token_urlsafe(24)
)
os.environ |= {
    "COUNTERFOIL_VAR": str(TEST_VAR),
    "COUNTERFOIL_SECRET_KEY": secrets.token_urlsafe(48),
    "DATABASE_URL": TEST_POSTGRES.url,
    "REDIS_URL": TEST_VALKEY.url,
    "CELERY_BROKER_URL": TEST_VALKEY.url,
    # Tests empty the tables on purpose, which is what the fence is there to notice.
    "COUNTERFOIL_RESTORE_FENCE": "off",
    # Playwright's synchronous API keeps an event loop in the thread that runs the tests.
    "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
}

from effects.settings import *  # noqa: E402, F403 - it reads what was just decided.

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Pages rendered inside the test process find their files unhashed; the real servers that browser
# tests start run on the product's settings and collect them first.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405 - ours.
