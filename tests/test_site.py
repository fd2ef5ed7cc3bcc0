"""The pages of the site in a real browser: no text is cut at the widths of a desk and a phone."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("playwright")
from test_browser import browser  # noqa: F401  # a fixture

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[1]
CUT = """wide => {
  const width = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > width) found.push('page');
  for (const element of document.querySelectorAll('article *')) {
    const box = element.getBoundingClientRect();
    const scrolls = element.closest('.md-typeset__scrollwrap, pre, svg');
    if (!box.width || scrolls) continue;
    if (box.right > width + 1 || box.left < -1)
      found.push(element.tagName + ' ' + element.textContent.trim().slice(0, 40));
  }
  if (wide) {
    const boxes = [...document.querySelectorAll('article pre > code, .md-typeset__scrollwrap')];
    for (const box of boxes.filter(box => box.scrollWidth > box.clientWidth + 4))
      found.push(box.tagName + ' ' + box.textContent.trim().slice(0, 40));
  }
  const pictures = [...document.images].filter(image => !image.complete || !image.naturalWidth);
  return [...found, ...pictures.map(image => image.src)];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "--no-directory-urls"]
    subprocess.run([*command, "-d", str(out)], cwd=ROOT, check=True)
    return out


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut(browser, site, width):  # noqa: F811
    """Code and tables may scroll in boxes of their own on a phone, on a desk they fit."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    found = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name.startswith("api/") or name == "404.html":
            continue
        page.goto(path.as_uri())
        page.wait_for_load_state("load")
        if cut := page.evaluate(CUT, width > 1000):
            found[name] = cut
    page.close()
    assert found == {}
    assert (site / "index.html").exists()


def test_cells_with_a_verdict_are_coloured(browser, site):  # noqa: F811
    page = browser.new_page()
    page.goto((site / "results.html").as_uri())
    cells = {
        sign: page.locator("td", has_text=sign).evaluate_all("all => all.map(td => td.className)")
        for sign in "▲▼△▽"
    }
    page.close()
    kinds = {sign: set(found) for sign, found in cells.items()}
    assert kinds["▲"] == {"above"}
    assert kinds["▼"] == {"below"}
    assert kinds["△"] == {"above only-before-holm"}
    assert kinds["▽"] == {"below only-before-holm"}
