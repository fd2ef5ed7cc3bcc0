"""The public names are what `__all__` says, importable, and light to import."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lser


def test_every_public_name_can_be_imported():
    for name in lser.__all__:
        assert getattr(lser, name) is not None


def test_the_names_of_the_stub_are_the_public_ones():
    stub = Path(lser.__file__).with_suffix(".pyi").read_text()
    names = re.findall(r"^from \S+ import (\w+) as \1$", stub, re.MULTILINE)
    assert sorted(names) == sorted(lser.__all__)


def test_packages_export_what_they_list():
    for info in pkgutil.walk_packages(lser.__path__, "lser."):
        if info.name.startswith("lser.adapters.") or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.{name}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = lser.NoSuchThing


def test_importing_lser_loads_neither_torch_nor_numba():
    code = "import lser, sys; print([m for m in ('torch', 'numba', 'scipy') if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_help_of_a_training_loads_neither_torch_nor_numba():
    code = """
import runpy, sys
sys.argv = ["lser", "train", "bazaar", "per", "td3", "--help"]
try:
    runpy.run_module("lser", run_name="__main__")
except SystemExit as done:
    assert done.code == 0
print([m for m in ("torch", "numba", "scipy") if m in sys.modules], file=sys.stderr)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "--memory.alpha" in result.stdout
    assert "--agent.smoothing-clip" in result.stdout
    assert result.stderr.strip() == "[]"


def test_the_version_is_the_package_metadata_s():
    from importlib.metadata import version

    assert version("lser") == lser.__version__
