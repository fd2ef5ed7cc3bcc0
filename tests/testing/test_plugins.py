"""Somebody else's memory, by `module:Class` or by an entry point: trained, named, saved, loaded."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import lser
from lser.catalogue import MEMORIES, Catalogue
from lser.experiments import records
from lser.experiments.experiment import from_json, to_json
from lser.experiments.presets import preset
from lser.experiments.run import run
from lser.replay import load_replay
from lser.testing import CHECKS, subject

TOY = '''"""Newer transitions come back more often."""

from dataclasses import dataclass

import numpy as np

from lser.params import MemoryParams
from lser.replay import Memory


@dataclass(frozen=True, kw_only=True)
class ToyParams(MemoryParams):
    """Settings of ToyReplay."""

    power: float = 2.0
    """Of the recency; 1 is uniform."""


class ToyReplay(Memory):
    """A ring whose newer transitions are drawn more often."""

    KIND = "toy"
    Params = ToyParams

    def draw(self, size, query):
        age = (len(self) * self.rng.random(size) ** self.params.power).astype(np.int64)
        return (self.store.written - 1 - age) % self.capacity, None
'''
SHORT = {
    "sessions": 40,
    "evaluate_every": 20,
    "evaluate_sessions": 10,
    "final_sessions": 10,
    "capacity": 500,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path with a module."""
    (tmp_path / "toy_pkg.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("toy_pkg", None)


@pytest.fixture
def announced(folder):
    """The same folder with a distribution that announces the memory."""
    info = folder / "toy_pkg-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pkg\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lser.memories]\ntoy = toy_pkg:ToyReplay\n")
    return folder


def toy():
    return MEMORIES["toy_pkg:ToyReplay"].load()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_plugin_keeps_the_contract(folder, check):
    check(subject("toy_pkg:ToyReplay", needs=frozenset(), power=3.0))


def test_a_plugin_is_trained_by_an_experiment_and_its_record_read_back(folder, tmp_path):
    experiment = replace(preset("bazaar", "toy_pkg:ToyReplay"), **SHORT, users=4, batch_size=16)
    assert experiment.names[1] == "toy_pkg:ToyReplay"
    assert from_json(to_json(experiment)) == experiment
    run(experiment, tmp_path / "record")
    record = records.load(tmp_path / "record")
    assert record.experiment["memory"] == {
        "name": "toy_pkg:ToyReplay",
        "newest": 0,
        "power": 2.0,
    }
    assert record.final


def test_a_plugin_is_saved_and_loaded_by_its_class(folder, tmp_path):
    kind = toy()
    memory = kind(5, 1, 1, power=4.0)
    memory.extend([[1.0]], [[0.0]], [1.0], [[2.0]], [True], [False])
    memory.save(tmp_path / "memory")
    loaded = load_replay(tmp_path / "memory", kind=kind)
    assert (type(loaded), loaded.params.power, len(loaded)) == (kind, 4.0, 1)
    with pytest.raises(ValueError, match="holds a 'toy' memory.*kind=YourClass"):
        load_replay(tmp_path / "memory")
    with pytest.raises(ValueError, match="holds a 'toy' memory, not a 'uniform' one"):
        load_replay(tmp_path / "memory", kind=lser.UniformReplay)


def test_a_plugin_is_announced_by_an_entry_point(announced):
    known = Catalogue("memory", "memories", *MEMORIES.own.values())
    assert set(known) == {"toy", *MEMORIES.own}
    assert known["toy"].load() is toy()
    assert known.name_of(toy().Params(power=5.0)) == "toy"


def test_a_plugin_with_the_settings_of_another_is_refused(folder):
    """Records name a memory by its settings: `uniform` would be trained in its place."""
    (folder / "toy_pkg.py").write_text(
        "from lser import UniformReplay\nclass Same(UniformReplay):\n    KIND = 'same'\n"
    )
    with pytest.raises(ValueError, match="toy_pkg:Same inherits its Params"):
        preset("bazaar", "toy_pkg:Same")


def test_a_broken_plugin_harms_nobody_else(announced):
    (announced / "toy_pkg.py").write_text("import nothing_of_this_name\n")
    known = Catalogue("memory", "memories", *MEMORIES.own.values())
    assert known.name_of(known["lser-p"].params()) == "lser-p"
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        known["toy"].load()


def python(folder, *words):
    """A process of its own, as entry points are looked up once."""
    source = Path(lser.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{folder}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), [("toy_pkg:ToyReplay", "folder"), ("toy", "announced")])
def test_a_plugin_is_named_on_the_command_line(name, place, request):
    folder = request.getfixturevalue(place)
    options = [f"--{knob.replace('_', '-')}={value}" for knob, value in SHORT.items()]
    out = python(folder, "-m", "lser", "train", "bazaar", name, "--memory.power=3", *options)
    record = records.load(Path(folder) / out.strip())
    assert record.experiment["memory"] == {"name": name, "newest": 0, "power": 3.0}


@pytest.mark.slow
def test_an_announced_plugin_is_listed_and_its_files_are_read_by_kind(announced):
    assert "toy" in python(announced, "-m", "lser", "memories")
    script = (
        "import lser, toy_pkg\n"
        "toy_pkg.ToyReplay(5, 1, 1).save('memory')\n"
        "print(type(lser.load_replay('memory')).__name__)\n"
    )
    assert python(announced, "-c", script).strip() == "ToyReplay"
