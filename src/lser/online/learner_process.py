"""The learner in a process of its own: ``python -m lser.online.learner_process FOLDER PARENT``."""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from lser.online.learning import Learning
from lser.online.outbox import FolderOutbox
from lser.online.sqlite_reader import SqliteReader

LOCK = "learner.lock"
IDLE = 0.05  # seconds between looks at a log without news
REPORT = 0.5  # seconds between reports


def run(folder: Path, parent: int) -> None:
    """Learn until the process is told to end, or `parent`, who started it, is gone."""
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server passes on what it wants
    lock = (folder / LOCK).open("w")
    while True:  # an orphan of a server that was killed may still be about to end
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if stopping or os.getppid() != parent:
                return
            time.sleep(IDLE)
    reader = SqliteReader(folder)
    learning = Learning(folder, reader, FolderOutbox(folder))
    reported = 0.0
    while not stopping and os.getppid() == parent:
        worked = learning.step(50)
        if time.monotonic() - reported >= REPORT:
            reported = time.monotonic()
            learning.report()
        if not worked:
            time.sleep(IDLE)
    learning.save()
    learning.report()
    reader.close()
    lock.close()


if __name__ == "__main__":
    os.nice(5)  # serving goes first
    run(Path(sys.argv[1]), int(sys.argv[2]))
