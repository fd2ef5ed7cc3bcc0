"""A learner in a process of its own: ``python -m lser.online.learner_process LOG PARENT``."""

import logging
import os
import signal
import sys
import time
from types import FrameType

from lser.online.learner_loop import learn_until
from lser.online.store import open_store

AGAIN = 1.0  # seconds until a store that does not answer is asked again
logger = logging.getLogger("lser")


def run(log: str, parent: int) -> None:
    """Learn until the process is told to end, or `parent`, who started it, is gone; 0: nobody."""
    stopped = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    if parent:  # the server passes on what it wants
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGINT, stop)
    store = open_store(log)

    def stopping() -> bool:
        return stopped or (parent != 0 and os.getppid() != parent)

    while not stopping():
        try:
            learn_until(store, stopping)
        except OSError as error:  # no shop yet, or a database that is away for a while
            logger.warning("the learner waits: %s", error)
            time.sleep(AGAIN)
    store.close()


if __name__ == "__main__":
    os.nice(5)  # serving goes first
    run(sys.argv[1], int(sys.argv[2]))
