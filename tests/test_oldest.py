"""The oldest versions that are allowed: those that `make oldest` tests with."""

import os
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
EXTRAS = re.search(r"^OLD_EXTRAS := (\S+)$", MAKEFILE, re.MULTILINE)[1].split(",")
OTHERWISE = {"torch"}  # builds for old versions and the CPU alone are not on every index
UNTESTED = {  # extras without a test of their bounds, and why
    "torchrl": "its binaries belong to one version of torch each",
    "tianshou": "2.0 is its first version with this interface, and pinned",
    "ray": "2.60 is its bound and pinned",
    "rllib": "the same",
}
TOOLS = {"docs", "bench", "dev"}


def plain(name):
    return name.lower().replace("_", "-")


def bounds():
    """The lower bound of every dependency, of the package and of the extras that are tested."""
    extras = PROJECT["optional-dependencies"]
    found = {}
    for words in [*PROJECT["dependencies"], *(w for extra in EXTRAS for w in extras[extra])]:
        name, bound = re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", words).groups()
        found[plain(name)] = bound
    return found


def held():
    lines = (ROOT / "constraints-oldest.txt").read_text().split()
    return {plain(name): number for name, number in (line.split("==") for line in lines)}


def release(text):
    """A version as numbers, without zeros at its end: 2.0 is 2.0.0."""
    numbers = [int(part) for part in re.findall(r"\d+", text.split("+")[0].split(".post")[0])]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


@pytest.mark.parametrize("name", sorted(bounds().keys() - OTHERWISE))
def test_the_oldest_version_is_the_lower_bound(name):
    assert release(held()[name]) == release(bounds()[name])


def test_every_extra_has_its_bounds_tested_or_says_why_not():
    assert {*EXTRAS, *UNTESTED, *TOOLS} == set(PROJECT["optional-dependencies"])


@pytest.mark.skipif(
    "LSER_OLDEST" not in os.environ, reason="only in the environment of make oldest"
)
def test_these_versions_are_installed():
    assert {n: release(version(n)) for n in bounds()} == {n: release(held()[n]) for n in bounds()}
