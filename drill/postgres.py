"""A PostgreSQL server in a folder of its own, for tests, faults and benchmarks."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")
USERS = ("postgres", "nobody")  # who runs it where we are root, which it refuses to be


def binaries() -> Path | None:
    """Where initdb and postgres lie; None where they are not installed."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return Path(found).parent
    for place in PLACES:
        for path in sorted(Path(place).glob("**/bin/initdb"), reverse=True):
            return path.parent
    return None


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A running server; `address()` names a database or a schema of it."""

    def __init__(self, *, fsync: bool = True) -> None:
        """Make a cluster and start it; without `fsync` it would not survive a loss of power."""
        found = binaries()
        if found is None:
            raise FileNotFoundError("no PostgreSQL server is installed (apt install postgresql)")
        self._bin, self._fsync = found, fsync
        self.folder = Path(tempfile.mkdtemp(prefix="lser-postgres-"))
        self._user = self._account()
        if self._user:
            shutil.chown(self.folder, self._user)
        self.folder.chmod(0o700)
        self.port = free_port()
        data = str(self.folder / "data")
        options = ["-U", "lser", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        self._run("initdb", "-D", data, *options)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _account(self) -> str | None:
        if os.getuid() != 0:
            return None
        names = Path("/etc/passwd").read_text()
        return next(user for user in USERS if f"\n{user}:" in f"\n{names}")

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._bin / name), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, user=self._user, cwd="/", check=False
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stderr[-1000:]}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "max_connections": 60,
            "unix_socket_directories": self.folder, "fsync": "on" if self._fsync else "off",
        }  # fmt: skip
        command = [str(self._bin / "postgres"), "-D", str(self.folder / "data")]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd="/", start_new_session=True
            )
        self.wait()

    def wait(self, seconds: float = 120.0) -> None:
        """Wait until it answers."""
        import psycopg

        end = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    text = (self.folder / "log").read_text()[-1000:]
                    raise RuntimeError(f"the server does not start: {text}") from None
                time.sleep(0.05)

    def address(self, schema: str) -> str:
        """The address of a shop in a schema of its own."""
        where = f"postgresql://lser@127.0.0.1:{self.port}/postgres"
        return f"{where}?options=-csearch_path%3D{schema}"

    def cut(self) -> int:
        """End every connection but this one; returns how many there were."""
        import psycopg

        self.wait()
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            row = connection.execute(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                "where pid <> pg_backend_pid() and backend_type = 'client backend'"
            ).fetchone()
            return int(row[0]) if row else 0

    def kill_backend(self) -> None:
        """SIGKILL one connection's process: all connections end, and the server recovers."""
        import psycopg

        self.wait()
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            row = connection.execute(
                "select pid from pg_stat_activity where pid <> pg_backend_pid() "
                "and backend_type = 'client backend' order by random() limit 1"
            ).fetchone()
        if row:
            os.kill(row[0], 9)

    def holder(self, schema: str) -> int | None:
        """The process that holds the learner's lease in a shop's schema."""
        import psycopg

        self.wait()
        with psycopg.connect(self.address(schema)) as connection:
            row = connection.execute(
                "select holder from lease where until > clock_timestamp()"
            ).fetchone()
        return int(row[0].split("/")[1]) if row else None

    def stop(self) -> None:
        """End it, at once, and remove its folder."""
        if self._process is not None:
            self._process.send_signal(3)  # immediate shutdown
            self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)
