"""The tutorial prints what it says: run as a whole, with numbers compared in kind."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def tutorial():
    """The script that fills the page."""
    spec = importlib.util.spec_from_file_location("tutorial", DOCS / "tutorial.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shape(text):
    """The page without what another processor may round otherwise: numbers, and who leads."""
    text = re.sub(r"[−+-]?\d[\d,.]*", "0", text)
    text = re.sub(r"^mine/NewsDesk.*?\n\n", "the verdict\n\n", text, flags=re.DOTALL | re.M)
    return re.sub(r"[ ▲▼△▽=]+", " ", text)


@pytest.mark.slow
def test_the_tutorial_runs_and_its_outputs_are_those_of_the_page(tutorial):
    text = tutorial.PAGE.read_text()
    assert shape(tutorial.filled(text)) == shape(text)


def test_every_block_that_prints_has_its_output(tutorial):
    text = tutorial.PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert sum("print(" in code for code in blocks) == text.count("```text\n")


SAID = {  # a verdict of the page's comparison, and what the text below it must say then
    "ends clearly above uniform": "On this desk LSER wins",
    "ends clearly below uniform": "On this desk LSER loses",
    "is not separated from uniform": "On this desk the two cannot be told apart",
}


def test_the_text_says_what_its_comparison_found(tutorial):
    text = tutorial.PAGE.read_text()
    printed, below = re.search(r"```text\n(mine/NewsDesk.*?)```(.*?)```", text, re.DOTALL).groups()
    found = " ".join(printed.split())
    (wanted,) = (words for verdict, words in SAID.items() if verdict in found)
    assert [words for words in SAID.values() if words in below] == [wanted]


def test_numbers_and_leaders_may_differ_and_words_may_not():
    assert shape("CTR 0.25 [−0.1, +0.3]") == shape("CTR 0.31 [−0.2, −0.1]")
    assert shape("one") != shape("two")
