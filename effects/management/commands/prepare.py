"""`manage.py prepare`: bring the database and the static files up to this version of the code."""

import hashlib
from pathlib import Path
from typing import Any, override

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Run all checks, apply migrations and collect static files, in one process."
    # They are run below, together with those that ask the database.
    requires_system_checks = ()

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        self.check(databases=["default"])
        call_command("migrate", verbosity=0, interactive=False)
        collect_static_files(Path(settings.STATIC_ROOT))


def collect_static_files(root: Path) -> None:
    """Collect if something changed: hashing and compressing all takes longer than a look."""
    stamp = root / ".collected-from"
    wanted = sources_digest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
        return
    call_command("collectstatic", verbosity=0, interactive=False)
    stamp.write_text(wanted, encoding="ascii")


def sources_digest() -> str:
    """Return a digest of the names, sizes and times of all static files."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            file = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{file.st_size}\0{file.st_mtime_ns}\n".encode())
    return digest.hexdigest()
