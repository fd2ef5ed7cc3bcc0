"""Shared fixtures: where the reference data lies, and one thread per process.

The large golden set of the original simulators lies outside this repository. Where it is absent,
tests use the small one in tests/golden/originals, which ``python -m parity record`` wrote.
"""

import importlib
import importlib.util
import os
import secrets
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray reads these when it is imported: its clusters here ask for a token, and tell nobody of it
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

settings.register_profile("lser", deadline=None)  # a first example compiles, machines are busy
settings.load_profile("lser")

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("LSER_SHARED", ROOT.parent / "shared"))


RECORDED = ROOT / "tests" / "golden" / "originals"
GOLDEN = SHARED / "golden" if (SHARED / "golden").is_dir() else RECORDED


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder with data from the original simulators."""
    return GOLDEN


@pytest.fixture(scope="module")
def build():
    """The script that writes the pages of results, with what it imports beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "results"))
        spec = importlib.util.spec_from_file_location("results_build", ROOT / "results/build.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@pytest.fixture(scope="module")
def scripts():
    """The scripts that read planned studies by name, and what they share."""
    from made_up import READ  # here: the environment has to be set first

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "results"))
        more = ("cells", "control", "cure", "sections", "scored", "slow", "first")
        names = (*READ, *more)
        return {name: importlib.import_module(name) for name in names}


@pytest.fixture
def fresh(scripts, monkeypatch, tmp_path):
    """The scripts as if nothing had run: their files lie in an empty folder."""
    from made_up import READ

    def forget():
        for name in READ:
            scripts[name].runs.cache_clear()
        for name in ("length", "like_with_like", "more_seeds"):
            scripts[name].standing.cache_clear()

    for name in READ:
        monkeypatch.setattr(scripts[name], "FILE", tmp_path / f"{name}.jsonl.gz")
    forget()
    yield scripts
    forget()
