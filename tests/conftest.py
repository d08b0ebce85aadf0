"""One throw-away PostgreSQL and Valkey for each run, and real doors for the tests that knock."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError
from django.core.management.commands import flush
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser, sync_playwright

from tests import settings as test_settings
from tests.chaos import cells
from tests.support import road, stack
from tests.support.browser import LAUNCH_ARGUMENTS, find_chromium

# A run that judges a change finds the same examples each time: what it says is about the change.
# `make slow` goes looking for new ones, with more of them.
hypothesis_settings.register_profile("same", derandomize=True, deadline=None, database=None)
hypothesis_settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis_settings.load_profile("same")

_services = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    if config.option.collectonly or config.option.help or config.option.version:
        return
    if config.option.numprocesses and not hasattr(config, "workerinput"):
        return  # Each worker has services of its own; who hands out the tests needs none.
    test_settings.TEST_VAR.mkdir(mode=0o700)
    (test_settings.TEST_VAR / "static").mkdir()  # Whitenoise warns of a missing one.
    services = config.stash[_services] = ExitStack()
    for folder in (test_settings.TEST_VAR, test_settings.TEST_POSTGRES.data.parent):
        services.callback(shutil.rmtree, folder, ignore_errors=True)
    try:
        test_settings.TEST_POSTGRES.initialise()
        for service in (test_settings.TEST_POSTGRES, test_settings.TEST_VALKEY):
            program = service.program()
            log = test_settings.TEST_VAR / f"{program.name}.log"
            services.enter_context(stack.running(program, log=log))
    except BaseException:
        services.close()
        raise


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every process must give a test the same name, or they cannot share the work: a name made of
    an object's place in memory is another one in each."""
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        raise pytest.UsageError(f"Give these tests ids of their own: {odd[0]} ({len(odd)} in all)")


FLUSHES_MAX = 5


@pytest.fixture(autouse=True, scope="session")
def _patient_flush() -> Iterator[None]:
    """A reader in a live process and the flush after a test may each hold a table that the other
    waits for. PostgreSQL ends one of the two; where it is the flush, it is made once more."""
    handle = flush.Command.handle

    def patiently(self: flush.Command, **options: Any) -> None:
        for _ in range(FLUSHES_MAX - 1):
            try:
                return handle(self, **options)
            except CommandError as error:
                if "deadlock" not in str(error.__cause__):
                    raise
        return handle(self, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush.Command, "handle", patiently)
        yield


def pytest_unconfigure(config: pytest.Config) -> None:
    if _services in config.stash:
        config.stash[_services].close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    cells.note(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    cells.show(terminalreporter)


@pytest.fixture(scope="session")
def process_env(django_db_setup: None) -> dict[str, str]:
    """The environment in which a real process of ours meets the database of the tests."""
    name = settings.DATABASES["default"]["NAME"]
    return {
        **os.environ,
        "DATABASE_URL": test_settings.TEST_POSTGRES.url.rsplit("/", 1)[0] + f"/{name}",
        "DJANGO_SETTINGS_MODULE": "effects.settings",
    }


@pytest.fixture(scope="session")
def _desk_url(process_env: dict[str, str]) -> Iterator[str]:
    stack.manage("collectstatic", "--noinput", "-v0", env=process_env)
    url, program = stack.door("desk", "asginl", "effects.asgi:application", env=process_env)
    with stack.running(program, log=test_settings.TEST_VAR / "desk.log"):
        yield url


@pytest.fixture(scope="session")
def _api_url(process_env: dict[str, str]) -> Iterator[str]:
    url, program = stack.door("api", "wsgi", "effects.wsgi:application", env=process_env)
    with stack.running(program, log=test_settings.TEST_VAR / "api.log"):
        yield url


@pytest.fixture
def live_desk(transactional_db: None, _desk_url: str) -> str:
    """The address of a real desk process; what the test wrote is committed, then flushed."""
    return _desk_url


@pytest.fixture
def live_api(transactional_db: None, _api_url: str) -> str:
    """The address of a real api process; what the test wrote is committed, then flushed."""
    return _api_url


@pytest.fixture
def worker(process_env: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A real Celery worker on the tests' database; the address of the provider that it may ask."""
    with road.a_worker(process_env, tmp_path) as provider_url:
        yield provider_url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the run."""
    found = find_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=found.executable,
            args=list(LAUNCH_ARGUMENTS),
            env={**os.environ, **found.env},
        )
        yield chromium
        chromium.close()
