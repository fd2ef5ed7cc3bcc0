"""What is built installs into a clean environment and works there, from another folder."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DATA = ("lser/py.typed", "lser/__init__.pyi")
USE = """
import sys
import gymnasium as gym
import lser
assert not any("%s" in place for place in [lser.__file__, *sys.path]), (lser.__file__, sys.path)
env = gym.make("lser/Bazaar-v0")
env.reset(seed=0)
print(lser.__version__, sorted(lser.__all__)[:3])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of the working tree, built with what is installed here."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


@pytest.mark.slow
def test_both_carry_what_the_package_reads(built):
    wheel, sdist = built
    held = zipfile.ZipFile(wheel).namelist()
    templates = [path.name for path in (ROOT / "src/lser/report/templates").iterdir()]
    wanted = [*DATA, *(f"lser/report/templates/{name}" for name in templates)]
    assert [name for name in wanted if name not in held] == []
    assert templates
    with tarfile.open(sdist) as archive:
        inside = archive.getnames()
    assert [name for name in wanted if not any(n.endswith(f"src/{name}") for n in inside)] == []
    assert not any("tests" in name.split("/")[0] for name in held)


def needed(name, found=None):
    """The distributions that `name` asks for, and those that these do, without its extras."""
    found = {} if found is None else found
    for text in requires(name) or []:
        wanted = Requirement(text)
        key = canonicalize_name(wanted.name)
        if key in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found[key] = distribution(wanted.name)
        needed(wanted.name, found)
    return found


@pytest.fixture
def clean(tmp_path):
    """An environment with nothing in it but what the package says that it needs."""
    folder = tmp_path / "clean"
    venv.create(folder, symlinks=True, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    for one in needed("lser").values():
        tops = {
            file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")
        }
        for top in tops:  # what was downloaded once is not downloaded again
            if not (site / top).exists():
                (site / top).symlink_to(Path(one.locate_file(top)).resolve())
    return folder, site


def apart():
    """The variables of a shell that knows nothing of the checkout."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run_in(folder, place, *arguments):
    """What a command of the environment in `folder` prints when it is run from `place`."""
    keep = {**apart(), "NUMBA_CACHE_DIR": str(place / "numba")}
    command = [str(folder / "bin" / arguments[0]), *arguments[1:]]
    done = subprocess.run(command, cwd=place, env=keep, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_into_a_clean_environment_and_works_there(built, clean, kind, tmp_path):
    package = built[0] if kind == "wheel" else built[1]
    folder, site = clean
    install = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "install"]
    quiet = ["-q", "--no-deps", "--no-build-isolation", "--no-index"]
    if kind == "sdist":  # is built here, as the environment has no tools to build with
        out = tmp_path / "from_sdist"
        build = [sys.executable, "-m", "pip", "wheel", *quiet, "-w", str(out), str(package)]
        subprocess.run(build, check=True, env=apart())
        package = next(out.glob("*.whl"))
    subprocess.run([*install, *quiet, str(package)], check=True, env=apart())
    assert not list(site.glob("__editable__*")), "it is itself there, not a path to the checkout"
    place = tmp_path / "elsewhere"
    place.mkdir()
    run_in(folder, place, "python", "-c", USE % ROOT)
    assert run_in(folder, place, "lser", "agents", "--json").count("\n") >= 12
    if kind == "wheel":
        printed = run_in(folder, place, "lser", "demo", "--sessions", "12", "--seeds", "2")
        assert "LSER's recommender has" in " ".join(printed.split())
        assert (place / "demo" / "index.html").exists()


def test_the_pythons_that_are_promised_are_classified():
    text = (ROOT / "pyproject.toml").read_text()
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in text


def test_no_page_installs_from_an_index_that_does_not_have_it():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    sources = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (*pages, *sources)
        for line in path.read_text().splitlines()
        if "pip install lser" in line or "pip install 'lser" in line
    ]
    assert wrong == []
