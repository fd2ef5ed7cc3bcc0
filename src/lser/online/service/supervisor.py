"""The supervisor: keeps a server process running, and ends it in peace."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from types import FrameType

from lser.online.service.server import Options

BAD_OPTIONS = 2  # exit code of a server that starting again will not help
LONGEST_PAUSE = 10.0
logger = logging.getLogger("lser")


class Supervisor:
    """Starts a server, and another one whenever it ends unasked. The server tends its learner."""

    def __init__(self, options: Options, *, longest_pause: float = LONGEST_PAUSE) -> None:
        """Serve with `options`; before a start, wait longer each time, up to a limit."""
        self._options, self._longest_pause = options, longest_pause
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The server's process."""
        return self._process.pid if self._process else None

    def run(self) -> int:
        """Keep it running until `stop` or a signal; returns the exit code."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._signalled)
            signal.signal(signal.SIGINT, self._signalled)
        pause = 0.2
        code = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = self._start()
            code = self._process.wait()
            if self._stopping.is_set() or code in (0, BAD_OPTIONS):
                break
            pause = 0.2 if time.monotonic() - began > 30 else min(2 * pause, self._longest_pause)
            logger.warning("the server ended (%s): starting it again", code)
            self._stopping.wait(pause)
        return max(code, 0)

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        options = [self._options.as_json(), str(os.getpid())]
        command = [sys.executable, "-m", "lser.online.service.server", *options]
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def _signalled(self, _signal: int, _frame: FrameType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask the server to drain, flush, save and end."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait_until_ready(self, timeout: float = 60.0) -> bool:
        """Wait until the service answers; False if it ends or takes too long."""
        address = f"http://{self._options.host}:{self._options.port}/health/ready"
        end = time.monotonic() + timeout
        while time.monotonic() < end and not self._stopping.is_set():
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                if self._process is not None and self._process.poll() == BAD_OPTIONS:
                    return False
                time.sleep(0.1)
        return False
