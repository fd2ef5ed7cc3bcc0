"""The live page in a real browser, on a desk and on a phone, with a service behind it.

Needs Chromium and playwright, like tests/report/test_browser.py; LSER_REQUIRE_BROWSER=1 makes
their absence a failure.
"""

import os
import shutil
import threading

import pytest
from drill.service import Client, running
from shops import Shoppers, catalogue

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > width) found.push('page ' + width);
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect();
    if (element.closest('.scroll, svg') || !box.width) continue;
    if (box.right > width + 1 || box.left < -1) found.push(element.outerHTML.slice(0, 80));
  }
  return found;
}"""


def missing(message):
    if os.environ.get("LSER_REQUIRE_BROWSER") == "1":
        pytest.fail(f"LSER_REQUIRE_BROWSER=1, but {message}")
    pytest.skip(f"the live page was not opened in a browser: {message}")


@pytest.fixture(scope="module")
def browser():
    found = os.environ.get("LSER_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing(f"none of {', '.join(NAMES)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("the playwright package is not installed")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A service with visitors who keep coming."""
    stop = threading.Event()
    with running(tmp_path_factory.mktemp("page")) as (_, port):
        shoppers = Shoppers(catalogue())

        def shop_on():
            client, number = Client(port), 0
            while not stop.wait(0.01):
                user, number = number % 40, number + 1
                ask = {"user": f"u{user}", "features": shoppers.features[user].tolist(), "k": 5}
                page = client("POST", "/recommend", ask)[1]
                clicked = shoppers.clicks(user, page["items"])
                if clicked:
                    client("POST", "/feedback", {"page": page["id"], "clicks": clicked})
            client.close()

        thread = threading.Thread(target=shop_on)
        thread.start()
        yield port
        stop.set()
        thread.join()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_follows_the_service(browser, port, width, scheme):
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view.set_default_timeout(300_000)
    noise = []
    view.on("console", lambda message: noise.append(message.text))
    view.on("pageerror", lambda error: noise.append(str(error)))
    own = f"http://127.0.0.1:{port}/"
    view.on("request", lambda call: call.url.startswith((own, "data:")) or noise.append(call.url))
    view.goto(own)
    view.wait_for_selector("#chart path", timeout=300_000)
    view.wait_for_selector("#policies tbody button", timeout=300_000)
    assert view.locator("#arms tbody tr").count() == 3
    assert view.locator("#chart path").count() >= 2
    assert view.locator("#visits .visit").count() >= 1
    assert "live" in view.locator("#state").inner_text()
    first = view.locator("#tiles .tile b").nth(4).inner_text()
    view.wait_for_function(
        "first => document.querySelectorAll('#tiles .tile b')[4].innerText !== first", arg=first
    )
    assert view.evaluate(OVERFLOW) == []
    assert noise == []
    view.close()


def test_a_version_is_held_and_promoted_by_its_buttons(browser, port):
    view = browser.new_page()
    view.set_default_timeout(300_000)
    view.goto(f"http://127.0.0.1:{port}/")
    view.wait_for_selector("#policies tbody button", timeout=300_000)
    view.evaluate("[...document.querySelectorAll('#policies button')]"
                  ".find(b => b.textContent === 'hold').click()")  # fmt: skip
    view.wait_for_function(
        "() => document.querySelector('#policies tbody').innerText.includes('held')"
    )
    client = Client(port)
    held = [arm for arm, found in client("GET", "/policies")[1].items() if found["held"]]
    assert len(held) == 1
    view.evaluate("[...document.querySelectorAll('#policies button')]"
                  ".find(b => b.textContent === 'promote').click()")  # fmt: skip
    view.wait_for_timeout(1_500)
    client.close()
    view.close()
