"""The pages in a real browser: nothing overflows, nothing fails to load, every table has rows.

Needs Chromium and the playwright package. Without them the tests are skipped with a message,
unless LSER_REQUIRE_BROWSER=1 says that they must run.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

# What sticks out of the window, and text that its drawing would cut off.
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > width) found.push('page ' + width);
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect();
    if (element.closest('.scroll, .skip, svg') || !box.width) continue;
    if (box.right > width + 1 || box.left < -1)
      found.push(element.tagName + ' ' + element.textContent.slice(0, 40));
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 2 || box.right > frame.right + 2
          || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        found.push(svg.closest('figure').id + ': ' + text.textContent);
    }
  }
  return found;
}"""
EMPTY = """() => [
  ...[...document.querySelectorAll('table')].filter(t => !t.tBodies[0]?.rows.length),
  ...[...document.images].filter(i => !i.complete || !i.naturalWidth),
  ...[...document.querySelectorAll('figure')].filter(f => {
    const svg = f.querySelector('svg');
    return !svg || svg.getBoundingClientRect().height < 80 || !svg.querySelector('path');
  }),
].map(e => e.outerHTML.slice(0, 80))"""
# The colours of all text in figures and of the page; a map's cells have colours of their own.
INK = """() => [
  ...document.querySelectorAll('figure:not([id^=bazaar-map]) svg text'), document.body]
  .map(e => getComputedStyle(e)[e === document.body ? 'color' : 'fill'])"""


def missing(message: str) -> None:
    if os.environ.get("LSER_REQUIRE_BROWSER") == "1":
        pytest.fail(f"LSER_REQUIRE_BROWSER=1, but {message}")
    pytest.skip(f"the pages were not opened in a browser: {message}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = os.environ.get("LSER_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing(f"none of {', '.join(NAMES)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("the playwright package is not installed")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.mark.parametrize("page", ["report", "demo"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_page_shows_everything_it_holds(
    browser: Any, page: str, width: int, scheme: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(page)
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    noise: list[str] = []
    view.on("console", lambda message: noise.append(message.text))
    view.on("pageerror", lambda error: noise.append(str(error)))
    view.on("requestfailed", lambda call: noise.append(call.url))
    view.on(
        "request", lambda call: call.url.startswith(("file:", "data:")) or noise.append(call.url)
    )
    view.goto(path.as_uri())
    assert view.evaluate(OVERFLOW) == []  # folded, as one meets it
    view.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert view.evaluate(OVERFLOW) == []
    assert view.evaluate(EMPTY) == []
    assert len(set(view.evaluate(INK))) == 1  # the figures' text has the colour of the page's
    assert noise == []
    view.close()


def test_the_first_tab_leads_to_the_results(browser: Any, demo: Path) -> None:
    view = browser.new_page()
    view.goto(demo.as_uri())
    view.keyboard.press("Tab")
    assert view.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert view.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.id") == "content"
    view.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_way_to_a_study_is_always_in_sight_and_unfolds_it(
    browser: Any, report: Path, width: int
) -> None:
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.goto(report.as_uri())
    view.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    link = view.locator("nav a[href='#ablation']")
    box = link.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900
    assert not view.locator("#ablation").is_visible()
    link.click()
    assert view.locator("#ablation").is_visible()
    view.close()


def test_the_first_screen_of_a_desk_has_the_whole_first_table(browser: Any, report: Path) -> None:
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    view.goto(report.as_uri())
    box = view.locator("#first table").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    view.close()
