"""The learner's life: it waits for the lease, learns while it holds it, and saves at the end.

``python -m lser.online.learner_process LOG PARENT`` is a learner in a process of its own.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from lser.online.learning import Learning
from lser.online.log import LeaseLostError, Log
from lser.online.store import Lease, Store, open_store

IDLE = 0.05  # seconds between looks at a log without news
REPORT = 0.5  # seconds between reports
AGAIN = 1.0  # seconds until a store that does not answer is asked again
WAIT = 0.25  # seconds between looks at a lease that another has
logger = logging.getLogger("lser")


def learn_until(store: Store, stopping: Callable[[], bool], log: Log | None = None) -> None:
    """Learn for a shop until told to stop; `log` is the writer of this process, if it has one."""
    while not stopping():
        lease = store.lease(log)
        if lease is None:  # another learns: stand by
            time.sleep(WAIT)
            continue
        try:
            _learn(store, lease, stopping)
        except LeaseLostError as error:
            logger.warning("another learner has taken over: %s", error)
        finally:
            lease.close()


def _learn(store: Store, lease: Lease, stopping: Callable[[], bool]) -> None:
    reader = store.reader()
    try:
        learning = Learning(lease.shelf, reader, lease.outbox)
        reported = 0.0
        while not stopping() and lease.held():
            worked = learning.step(50)
            if time.monotonic() - reported >= REPORT:
                reported = time.monotonic()
                learning.report()
            if not worked:
                time.sleep(IDLE)
        learning.save()  # not after a failure: what is half folded is no function of the log
        learning.report()
    finally:
        reader.close()


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
