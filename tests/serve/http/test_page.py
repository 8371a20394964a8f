"""The page in a headless Chromium: it chats, draws, and asks for nothing from elsewhere."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from bedstone.serve.http.settings import digests
from chromium import chromium
from fronts import CHAT, Fronted, Served, saying
from scripted import letters

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEY = "a key of it"
ANSWER = "Stones <b>do not</b> float.\nThey sink."
ELSEWHERE = """
return performance.getEntriesByType("resource").map(it => it.name)
  .filter(it => !it.startsWith(location.origin) && !it.startsWith("data:"));
"""
UNLABELLED = """
const named = it => it.labels?.length || it.ariaLabel || it.textContent.trim();
return [...document.querySelectorAll("input, textarea, button, svg, section")]
  .filter(it => !named(it)).map(it => it.outerHTML);
"""
BARS = "return [...document.querySelectorAll(arguments[0])].map(it => it.getBBox().width)"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def page(driver):
    """Opens the page of a front."""
    made = []

    def make(*args, **options):
        server = Served(Fronted(*args, **options))
        made.append(server)
        # what an earlier page said of itself is not this one's
        driver.get_log("browser")
        driver.get(f"{server.url}/")
        return driver

    yield make
    driver.get("about:blank")
    for server in made:
        server.close()
        server.fronted.close()


def until(driver, condition):
    return WebDriverWait(driver, 30).until(lambda _: condition())


def text(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector).text


def ask(driver, message):
    driver.find_element(By.ID, "text").send_keys(message, Keys.ENTER)


def test_it_chats_as_the_answer_streams(page):
    driver = page(*saying(list(ANSWER)), step=0.002)
    until(driver, lambda: text(driver, "#state") == "ready")
    assert text(driver, "#model") == "scripted"
    ask(driver, "Do stones float?")
    until(driver, lambda: text(driver, "#log li.assistant") == ANSWER)
    assert text(driver, "#log li.user") == "Do stones float?"
    # what a model says is text, whatever it looks like
    assert driver.find_elements(By.CSS_SELECTOR, "#log b") == []
    until(driver, lambda: text(driver, "#own").isdigit())
    ask(driver, "Again?")
    until(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "#log li")) == 4)
    assert driver.execute_script(ELSEWHERE) == []
    assert driver.execute_script(UNLABELLED) == []
    assert driver.get_log("browser") == []


def test_it_draws_what_runs_and_stops_it(page):
    def endless(_request):
        while True:
            yield from range(60)

    driver = page(letters(["ab "] * 60), endless, step=0.01)
    ask(driver, "Go on")
    until(driver, lambda: text(driver, "#running") == "1")
    until(driver, lambda: sum(driver.execute_script(BARS, "#batch .made")) > 0)
    fed, made, free = (
        driver.execute_script(BARS, f"#batch .{kind}")[0] for kind in ("fed", "made", "free")
    )
    assert 0 < fed < made + fed < free
    held, kept = (driver.execute_script(BARS, f"#cache .{kind}")[0] for kind in ("made", "kept"))
    assert held > 0
    assert kept == pytest.approx(240 * 3 / 64, rel=1e-3)
    until(driver, lambda: int(text(driver, "#rate")) > 0)
    driver.find_element(By.ID, "stop").click()
    until(driver, lambda: text(driver, "#running") == "0")
    assert driver.find_element(By.ID, "send").is_enabled()
    driver.find_element(By.ID, "clear").click()
    assert driver.find_elements(By.CSS_SELECTOR, "#log li") == []


def test_an_answer_that_comes_faster_than_it_is_drawn_can_be_stopped(page):
    def endless(_request):
        while True:
            yield from range(60)

    driver = page(letters(["ab "] * 60), endless, step=0.0001)
    ask(driver, "Go on")
    until(driver, lambda: len(text(driver, "#log li.assistant")) > 3000)
    driver.find_element(By.ID, "stop").click()
    until(driver, lambda: driver.find_element(By.ID, "send").is_enabled())
    until(driver, lambda: text(driver, "#running") == "0")


def test_it_asks_for_a_key_and_shows_what_was_refused(page):
    driver = page(*saying(["ok"]), keys=digests([KEY]))
    until(driver, lambda: driver.find_element(By.ID, "key").is_displayed())
    assert "expected `Bearer`" in text(driver, "#state")
    driver.find_element(By.ID, "key").send_keys(KEY)
    until(driver, lambda: text(driver, "#state") == "ready")
    driver.find_element(By.ID, "most").send_keys("99999")
    ask(driver, "hi")
    until(driver, lambda: "context holds 4096" in text(driver, "#log li.fault"))


def test_thoughts_stand_apart(page):
    pieces = list("hm</think>yes")
    driver = page(*saying(pieces), reasoning=True, template=CHAT + "<think>\n")
    ask(driver, "hi")
    until(driver, lambda: text(driver, "#log .thought") == "hm")
    until(driver, lambda: text(driver, "#log li.assistant") == "hm\nyes")


@pytest.mark.parametrize("width", [1440, 420])
def test_nothing_sticks_out_sideways(page, driver, width):
    driver.set_window_size(width, 900)
    page(*saying(["ok"]))
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert driver.execute_script(wide) <= 0
