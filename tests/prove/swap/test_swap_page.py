"""The page of `bedstone prove swap --html`, as text and drawn by a headless Chromium."""

from html.parser import HTMLParser

import pytest

from bedstone.prove.swap.page import emit_page
from bedstone.prove.swap.report import lines
from bedstone.prove.swap.verdict import Bounds
from chromium import chromium


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = []

    def handle_starttag(self, tag, _attrs):
        self.names.append(tag)


@pytest.fixture(scope="module")
def text(timed_proof):
    return emit_page(timed_proof, Bounds(), lines(timed_proof), ("old<script>", "new"))


def test_the_page_is_one_file_that_runs_nothing(text, timed_proof):
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.names
    assert "http" not in text
    assert tags.names.count("svg") == 1 + len(timed_proof.perf.steps)
    assert tags.names.count("strong") == 1


def test_the_page_says_all_that_the_command_does(text, timed_proof):
    verdict = timed_proof.verdict
    assert f">{verdict.word}</strong>: {verdict.rule}" in text
    assert text.count("<tr><td>perf<td>") == sum(
        line.startswith("perf: ") for line in lines(timed_proof)
    )
    assert "old&lt;script&gt;" in text


def test_ops_are_listed_with_their_worst_errors_first(text, timed_proof):
    table = text.partition("<th>Worst error")[2].partition("</table>")[0]
    rows = [row.partition("</span>")[2].split("<td>") for row in table.split("<tr>")[1:]]
    ops = {"+".join(result.span.a.ops) for result in timed_proof.results}
    assert {name for name, _, _ in rows} == ops
    assert sum(int(count) for _, count, _ in rows) == len(timed_proof.results)
    errors = [float(error) for _, _, error in rows]
    assert errors == sorted(errors, reverse=True)
    # norms are off by two percent
    assert errors[0] == pytest.approx(0.02, rel=0.1)


OUTSIDE = """
return [...document.querySelectorAll("svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text, circle")].filter(it => {
    const at = it.getBoundingClientRect();
    return at.width === 0 || at.left < box.left - 1 || at.right > box.right + 1
      || at.top < box.top - 1 || at.bottom > box.bottom + 1;
  });
}).map(it => it.textContent);
"""
HEIGHTS = """
const middle = it => { const at = it.getBoundingClientRect(); return at.top + at.height / 2; };
return [...document.querySelector("svg").querySelectorAll(arguments[0])].map(middle);
"""
browser = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    path.write_text(text)
    with chromium(folder / "profile") as driver:
        driver.get(path.as_uri())
        yield driver


class TestDrawn:
    pytestmark = browser

    @pytest.mark.parametrize("width", [1440, 500])
    def test_all_that_is_drawn_can_be_seen(self, page, width):
        page.set_window_size(width, 1000)
        assert page.execute_script(OUTSIDE) == []

    def test_spans_beyond_the_bound_are_above_its_line(self, page, timed_proof):
        points = page.execute_script(HEIGHTS, "circle")
        (bound,) = page.execute_script(HEIGHTS, ".floor")
        assert len(points) == len(timed_proof.results)
        beyond = [r.numbers.relative > Bounds().drift for r in timed_proof.results]
        assert [height < bound for height in points] == beyond
        assert all(beyond)

    def test_the_page_logs_no_error(self, page):
        assert page.get_log("browser") == []
