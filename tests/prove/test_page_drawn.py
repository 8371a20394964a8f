"""The page of `bedstone define rank --html`, drawn by a headless Chromium."""

import pytest

from bedstone.prove.page import emit_page
from bedstone.spec.trace import Trace
from chromium import chromium
from definitions import workload
from prove.outcomes import passed

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OUTSIDE = """
const box = document.querySelector("svg").getBoundingClientRect();
return [...document.querySelectorAll("svg text, svg circle")].filter(it => {
  const at = it.getBoundingClientRect();
  return at.width === 0 || at.left < box.left - 1 || at.right > box.right + 1
    || at.top < box.top - 1 || at.bottom > box.bottom + 1;
}).map(it => it.textContent);
"""
HEIGHTS = """
const middle = it => { const at = it.getBoundingClientRect(); return at.top + at.height / 2; };
return [...document.querySelectorAll(arguments[0])].map(middle);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    long = {"num_kv_indices": 123456}
    traces = [
        Trace("gqa", workload(f"w{n}", n=n, **long, pages=n), name, passed(ms, floor_ms=0.01))
        for n in (1, 64, 4096)
        for name, ms in (("fast", 0.1 * n), ("slow", 0.7 * n))
    ]
    path.write_text(emit_page(traces))
    with chromium(folder / "profile") as driver:
        driver.get(path.as_uri())
        yield driver


@pytest.mark.parametrize("width", [1440, 500])
def test_all_that_is_drawn_can_be_seen(page, width):
    page.set_window_size(width, 1000)
    assert page.execute_script("return document.querySelectorAll('svg circle').length") == 6
    assert page.execute_script(OUTSIDE) == []


def test_slower_is_higher_and_everything_is_above_the_least_time(page):
    points = page.execute_script(HEIGHTS, "svg circle")
    fast, slow = points[::2], points[1::2]
    assert all(s < f for f, s in zip(fast, slow, strict=True))
    assert fast == sorted(fast, reverse=True)
    least = min(page.execute_script(HEIGHTS, "svg .floor"))
    assert max(points) < least


def test_the_page_logs_no_error(page):
    assert page.get_log("browser") == []
