"""`python -m tests.screenshots [page …]`: a picture of every page, in light, dark and narrow.

The data is made up and always the same; only the instants are of today. Pictures go to
`var/screenshots/PAGE-LOOK.png`; nothing is judged, somebody looks at them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import Browser, Error, Page, sync_playwright

from tests.screenshots import place
from tests.support.browser import LAUNCH_ARGUMENTS, find_chromium

if TYPE_CHECKING:
    from tests.screenshots.scenes import Scene
    from tests.screenshots.shots import Shot

LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 320, "height": 720}, "color_scheme": "light"},
}
STEP_MILLISECONDS: Final = 8000
HEIGHT_MAX: Final = 6000
"""Nobody looks at more of a page, in pixels."""


def main() -> int:
    options = _options()
    began = time.monotonic()
    with place.database() as folder:
        # Models may be imported only now that Django's settings are in place.
        from tests.screenshots import scenes, shots  # noqa: PLC0415 - as said

        wanted = shots.named(options.pages)
        scene = scenes.everything()
        with place.desk(folder) as desk, _chromium() as browser:
            faults = list(_take(browser, desk, scene, wanted, options))
    for fault in faults:
        print(fault, file=sys.stderr)
    taken = len(wanted) * len(options.looks)
    print(f"{taken} pictures in {options.folder}, {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="names, or the beginnings of names; all")
    parser.add_argument("--folder", type=Path, default=Path("var/screenshots"))
    parser.add_argument("--looks", nargs="+", choices=LOOKS, default=list(LOOKS))
    options = parser.parse_args()
    options.pages = [name for given in options.pages for name in given.split(",") if name]
    return options


@contextmanager
def _chromium() -> Iterator[Browser]:
    found = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.executable,
            args=[*LAUNCH_ARGUMENTS, "--font-render-hinting=none", "--hide-scrollbars"],
            env={**os.environ, **found.env},
        )
        yield browser
        browser.close()


def _take(
    browser: Browser, desk: str, scene: Scene, wanted: list[Shot], options: argparse.Namespace
) -> Iterator[str]:
    """Takes the pictures; yields a sentence for each that shows something else than was meant."""
    options.folder.mkdir(parents=True, exist_ok=True)
    for look in options.looks:
        context = browser.new_context(
            base_url=desk, reduced_motion="reduce", locale="en-GB", timezone_id="UTC", **LOOKS[look]
        )
        context.set_default_timeout(STEP_MILLISECONDS)
        page = context.new_page()
        for shot in wanted:
            path = options.folder / f"{shot.name}-{look}.png"
            try:
                yield from _one(page, desk, scene, shot, path)
            except Error as error:
                yield f"{shot.name}, {look}: {str(error).splitlines()[0]}"
        context.close()


def _one(page: Page, desk: str, scene: Scene, shot: Shot, path: Path) -> Iterator[str]:
    from tests.support.looking import come_in  # noqa: PLC0415 - as in `main`

    page.context.clear_cookies()
    if shot.who:
        come_in(page, scene.people[shot.who], desk)
    if shot.before:
        shot.before(scene)
    response = page.goto(shot.address(scene), wait_until="load")
    if response is None or response.status != shot.status:
        yield f"{shot.name}: answered {response.status if response else 'nothing'}"
    if shot.steps:
        shot.steps(page)
    page.evaluate("document.fonts.ready.then(() => true)")
    size = page.viewport_size
    assert size is not None
    height = min(page.evaluate("document.documentElement.scrollHeight"), HEIGHT_MAX)
    # What sticks to the window is drawn where a person would see it: the window is the whole page.
    page.set_viewport_size({"width": size["width"], "height": max(height, size["height"])})
    page.screenshot(path=path)
    page.set_viewport_size(size)


sys.exit(main())
