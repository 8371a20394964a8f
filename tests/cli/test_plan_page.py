"""The page of `bedstone plan --html`, clicked through in a headless Chromium."""

import json
import re

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from chromium import chromium
from command_line import bedstone

pytestmark = pytest.mark.browser
FACTS = re.compile(r'<script type="application/json" id="facts">(.*?)</script>', re.DOTALL)


class Page:
    """The open page, asked by what a reader sees."""

    def __init__(self, driver, path):
        self.driver, self.path = driver, path
        self.facts = json.loads(FACTS.search(path.read_text())[1])

    def load(self):
        self.driver.set_window_size(1440, 1100)
        self.driver.get(self.path.as_uri())

    def one(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def count(self, css):
        return len(self.driver.find_elements(By.CSS_SELECTOR, css))

    def text(self, css):
        return self.one(css).text

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def click(self, css):
        self.one(css).click()

    def point(self, css):
        ActionChains(self.driver).move_to_element(self.one(css)).perform()

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def launches(self, form, **fields):
        """The numbers of the launches of a form whose fields hold these values."""
        steps = self.facts["forms"][form]["steps"]
        return [i for i, s in enumerate(steps) if all(s[k] == v for k, v in fields.items())]

    def lit(self):
        """The launches that are not dimmed."""
        css = "#chart .launch:not(.dim)"
        found = self.driver.find_elements(By.CSS_SELECTOR, css)
        return [int(bar.get_attribute("data-launch")) for bar in found]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="session")
def written(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "step.html"
    command = ("plan", "--config", "qwen3-4b", "--format", "q4_0", "--bandwidth", "30")
    assert bedstone(*command, "--sequences", "2", "--html", path).code == 0
    return Page(browser, path)


@pytest.fixture
def page(written):
    written.load()
    yield written
    assert written.driver.get_log("browser") == []


def test_the_whole_step_is_seen_at_once(page):
    assert page.text("#model") == "qwen3-4b"
    assert page.count("#chart .launch") == 292
    assert page.count("#chart .life") == len(page.facts["forms"]["decode"]["lives"])
    assert "292" in page.text("#numbers")
    assert "36 layers of 8, 4 outside" in page.text("#numbers")
    wide = page.run("return document.querySelector('#chart').clientWidth")
    assert wide <= page.run("return document.querySelector('#scroller').clientWidth")
    bar = page.run("return document.querySelector('#chart .bar').getBoundingClientRect().width")
    assert bar > 2
    bands = page.run(
        "return [...document.querySelectorAll('#chart > text')].map(t => t.textContent)"
    )
    assert bands == [str(layer) for layer in range(36)]
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_nothing_is_fetched(page):
    assert page.run("return performance.getEntriesByType('resource').length") == 0


def test_pointing_at_a_launch_shows_its_kernel_shapes_and_bytes(page):
    (glu, *_) = page.launches("decode", kind="glu", layer=9)
    page.point(f'#chart [data-launch="{glu}"] .hit')
    tip = page.text("#tip")
    assert f"{glu} · glu_q_q4_0_q" in tip
    assert "model.layers.9.mlp.gate_proj.weight [9,728, 2,560] q4_0, 13.4 MiB" in tip
    assert page.count("#chart .life.hinted") > 1
    page.point("#model")
    assert not page.one("#tip").is_displayed()
    assert page.count(".hinted") == 0


def test_clicking_a_launch_keeps_its_operands_and_what_joined_it(page):
    (glu, *_) = page.launches("decode", kind="glu", layer=9)
    page.click(f'#chart [data-launch="{glu}"] .hit')
    details = page.text("#details")
    for words in (
        f"{glu} · glu_q_q4_0_q",
        "glu, layer 9, linear.c",
        "l9.gate = linear(x=l9.m, w=model.layers.9.mlp.gate_proj.weight)",
        "l9.glu = mul(a=l9.act, b=l9.up)",
        "Joined by\nglu",
        "[1, 9,728]",
    ):
        assert words in details
    assert page.count("#chart .life.reads") == 3
    assert page.count("#chart .life.writes") == 3
    assert page.text('#list [aria-current="true"] .number') == str(glu)
    assert page.one('#list [aria-current="true"]').is_displayed()


def test_clicking_a_buffer_shows_who_writes_and_reads_it(page):
    lives = page.facts["forms"]["decode"]["lives"]
    index = next(i for i, life in enumerate(lives) if life[:2] == ["x.5", "f32"])
    page.click(f'#chart [data-life="{index}"] rect')
    details = page.text("#details")
    assert "x.5" in details
    assert "[1, 2,560] f32 · 10.0 KiB at offset" in details
    writers, readers = lives[index][7:]
    assert page.lit() == sorted({*writers, *readers})
    page.click(f'#details [data-launch="{writers[0]}"]')
    assert page.text("#details").startswith(f"{writers[0]} · ")


def test_searching_lights_what_is_found_and_enter_walks_it(page):
    page.press("/")
    page.press("attention_r_q")
    assert page.text("#found").startswith("36 launches")
    found = page.launches("decode", kind="attention")
    assert page.lit() == found
    page.press(Keys.ENTER)
    page.press(Keys.ENTER)
    assert page.text("#details").startswith(f"{found[1]} · attention_r_q")
    page.press(Keys.ESCAPE)
    assert page.text("#details").startswith("Nothing selected")
    assert len(page.lit()) == 292


def test_a_search_finds_ops_and_tensors(page):
    page.one("#search").send_keys("l17.act")
    assert page.lit() == page.launches("decode", kind="glu", layer=17)
    page.one("#search").send_keys(Keys.ESCAPE, "no such thing")
    assert page.text("#found") == "0 launches, 0 buffers"


def test_a_chip_lights_where_a_rule_fired(page):
    page.click('[data-query="rule:qk_norm_rope"]')
    assert page.lit() == page.launches("decode", kind="rope_parts")
    page.click('[data-query="rule:qk_norm_rope"]')
    assert len(page.lit()) == 292


def test_each_form_is_drawn_and_its_misses_are_named(page):
    page.click('[data-form="chunk"]')
    chunk = page.facts["forms"]["chunk"]
    assert page.count("#chart .launch") == chunk["launches"]
    assert "gemv_parts 72 · shim" in page.text("#chips")
    page.click('[data-query="missed:gemv_parts"]')
    assert len(page.lit()) == 72
    page.click('[data-form="batch"]')
    assert page.count("#chart .launch") == page.facts["forms"]["batch"]["launches"]
    assert page.one('[data-form="batch"]').get_attribute("aria-selected") == "true"


def test_the_keyboard_reaches_everything(page):
    page.run("document.querySelector('#chart').focus()")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.text("#details").startswith("1 · norm_q")
    page.press(Keys.ARROW_DOWN)
    second = page.launches("decode", layer=1)[0]
    assert page.text("#details").startswith(f"{second} · ")
    page.press(Keys.END)
    assert page.text("#details").startswith("291 · argmax")
    page.run("""document.querySelector('[data-form="decode"]').focus()""")
    page.press(Keys.ARROW_RIGHT)
    assert page.run("return document.activeElement.dataset.form") == "chunk"
    assert page.count("#chart .launch") == page.facts["forms"]["chunk"]["launches"]
    page.run("""document.querySelector('#list [data-launch="0"]').focus()""")
    page.press(Keys.ENTER)
    assert page.text("#details").startswith("0 · embed_q4_0")


def test_zooming_in_names_launches_and_buffers(page):
    assert page.count("#chart .launch text") == 0
    page.run("document.querySelector('#chart').focus()")
    page.press(Keys.END, *"+++++++")
    assert page.count("#chart .launch text") == 292
    names = page.run("return [...document.querySelectorAll('.life text')].map(t => t.textContent)")
    assert {"x.35", "l35.h", "logits"} <= set(names)
    scroller = page.one("#scroller").rect
    last = page.one('#chart [data-launch="291"] .bar').rect
    assert scroller["x"] <= last["x"] <= scroller["x"] + scroller["width"]
    page.click("#fit")
    assert page.count("#chart .launch text") == 0


def test_colours_follow_the_reader(page):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.click("#theme")
    assert page.run(ground) != light
    assert page.text("#theme") == "Light"
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    page.load()
    assert page.run("return document.documentElement.dataset.theme") == "dark"
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_window_needs_no_sideways_scrolling(page):
    page.driver.set_window_size(600, 900)
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
