"""Logs of both kinds; PostgreSQL by a real server that the tests start."""

import itertools
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the drill is not installed

from drill.postgres import Server, binaries
from shops import hand_clock

from lser.online.folder_store import FolderStore

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres():
    """A server without fsync: the tests end processes, not the machine."""
    if not os.environ.get("LSER_REQUIRE_POSTGRES"):
        pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
        if binaries() is None:
            pytest.skip("no PostgreSQL server is installed (apt install postgresql)")
    server = Server(fsync=False)
    yield server
    server.stop()


@pytest.fixture
def hands():
    """The clock of the logs in this process, turned by the test."""
    with hand_clock() as clock:
        yield clock


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """An empty store, of each kind in turn."""
    if request.param == "sqlite":
        yield FolderStore(tmp_path / "shop")
        return
    from lser.online.postgres.store import PostgresStore

    server = request.getfixturevalue("postgres")
    made = PostgresStore(server.address(f"shop{next(_numbers)}"))
    yield made
    made.close()


@pytest.fixture
def database(postgres):
    """An empty store on PostgreSQL."""
    from lser.online.postgres.store import PostgresStore

    made = PostgresStore(postgres.address(f"shop{next(_numbers)}"))
    yield made
    made.close()
