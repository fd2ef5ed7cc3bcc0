"""Shared fixtures: where the reference data lies, and one thread per process."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("LSER_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder with data from the original simulators."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip(f"reference data not found at {folder}; set LSER_SHARED")
    return folder
