"""The documentation: its Python runs, and it names every key, command and study there is."""

import gc
import json
import re
from pathlib import Path

import gymnasium as gym
import pytest
import torch

from lser.catalogue import MEMORIES
from lser.cli import COMMANDS
from lser.experiments.experiment import Experiment
from lser.experiments.progress import ProgressFile
from lser.experiments.run import run
from lser.experiments.studies import GROUPS, STUDIES
from lser.simulators import SIMULATORS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^( *)```python\b[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
RUNNABLE = "<!-- runnable -->"  # the line before a block of a guide that a test runs

# every block of these runs; guides mark theirs, as some need data or hours
WHOLE = ["README.md", "docs/index.md", "docs/how_it_works.md", "docs/extending.md"]
GUIDES = sorted(
    str(path.relative_to(ROOT))
    for room in ("guides", "online")
    for path in (DOCS / room).glob("*.md")
)


def blocks(page):
    """The page's Python, each block at the line it has in the page."""
    text = (ROOT / page).read_text()
    for found in BLOCK.finditer(text):
        before = text[: found.start()]
        if page in WHOLE or before.rstrip().endswith(RUNNABLE):
            indent = len(found[1])
            code = "\n".join(line[indent:] for line in found[2].splitlines())
            yield "\n" * (before.count("\n") + 1) + code


SLOW = pytest.param(
    "README.md", marks=pytest.mark.slow
)  # it trains until there is something to see


@pytest.mark.parametrize("page", [SLOW, *WHOLE[1:], *GUIDES])
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    names = {"__name__": "docs"}
    for code in blocks(page):
        exec(compile(code, ROOT / page, "exec"), names)
    names.clear()
    gc.collect()  # what a block leaves open warns here, and a warning is an error


@pytest.mark.parametrize("page", WHOLE)
def test_a_page_has_python_to_run(page):
    assert list(blocks(page))


def named(page):
    """Everything that a page of the docs has in backticks."""
    return set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text()))


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_key_of_a_record_has_a_meaning(memory, tmp_path):
    experiment = Experiment(
        memory=MEMORIES[memory].params(),
        sessions=2,
        capacity=500,
        learning_starts=8,
        batch_size=4,
        evaluate_sessions=2,
        final_sessions=2,
    )
    run(experiment, tmp_path, watch=ProgressFile(tmp_path, every=0.0))
    keys = set()
    for name in ("experiment.json", "meta.json", "final.json", "times.json", "progress.json"):
        keys |= json.loads((tmp_path / name).read_text()).keys()
    keys |= json.loads((tmp_path / "final.json").read_text())["memory"].keys()
    keys |= json.loads((tmp_path / "curve.jsonl").read_text().splitlines()[0]).keys()
    assert keys <= named("metrics.md")


@pytest.mark.parametrize("identity", SIMULATORS)
def test_every_number_in_info_has_a_meaning(identity):
    knobs = {"generated": True} if "Taobao" in identity else {}
    env = gym.make_vec(identity, num_envs=2, **knobs)
    env.reset(seed=0)
    env.action_space.seed(0)
    info = env.step(env.action_space.sample())[4]
    assert {key for key in info if "final" not in key} <= named("metrics.md")
    env.close()


def test_every_command_and_study_is_on_the_page_of_the_command_line():
    page = (DOCS / "command_line.md").read_text()
    assert [name for name in COMMANDS if f"\nlser {name}" not in page] == []
    assert {*STUDIES, *GROUPS} <= named("command_line.md")


def test_every_memory_is_named_where_its_numbers_are_explained():
    assert set(MEMORIES) <= named("metrics.md")


def test_no_page_holds_what_a_merge_left():
    pages = [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *DOCS.rglob("*.md"),
        *ROOT.glob("results/*.md"),
    ]
    marks = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
    assert [str(page) for page in pages if marks.search(page.read_text())] == []


def test_programs_named_on_pages_are_there():
    yours = {"my_study.py", "my_pkg.py"}
    tracked = {path.name for room in ("src", "tests", "docs", "benchmarks", "results", "examples")
               for path in (ROOT / room).rglob("*.py")}  # fmt: skip
    tracked |= {path.name for room in ("drill", "parity") for path in (ROOT / room).rglob("*.py")}
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        named = set(re.findall(r"`[^`\n]*?(\w+\.py)\b", page.read_text()))
        assert named - tracked - yours == set(), page
