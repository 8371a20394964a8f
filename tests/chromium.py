"""A headless Chromium for tests that click: one for all of them, and no network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,1100",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class NoBrowserError(Exception):
    """This machine has no browser to click in."""


def _found(*names: str) -> str:
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise NoBrowserError(
        f"none of {', '.join(names)} is on the PATH: install Debian's `chromium` and "
        f"`chromium-driver` (`make test` does, run as root), or leave these tests out with "
        f'`scripts/test -m "not browser"`'
    )


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser whose profile is the empty folder `profile`."""
    options = webdriver.ChromeOptions()
    options.binary_location = _found(*BROWSERS)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(_found("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
