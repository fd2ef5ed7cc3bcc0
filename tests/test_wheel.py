"""What is built installs into a clean environment and works there, from another folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ("lser/py.typed", "lser/__init__.pyi")
USE = """
import gymnasium as gym
import lser
assert "first_site" in lser.__file__, lser.__file__
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_and_works_without_the_checkout(built, kind, tmp_path):
    package = built[0] if kind == "wheel" else built[1]
    site = tmp_path / "first_site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(site), str(package)], check=True)
    # apart from the checkout: its dependencies are those of this environment, itself is not
    env = {**os.environ, "PYTHONPATH": str(site)}
    run = [sys.executable, "-c", USE]
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = [sys.executable, "-m", "lser", "memories", "--json"]
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.count("\n") >= 13, done.stderr


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
