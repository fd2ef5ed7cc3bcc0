"""The learner's life: it waits for the lease, learns while it holds it, and saves at the end."""

import logging
import time
from collections.abc import Callable

from lser.online.learning import Learning
from lser.online.log import LeaseLostError, Log
from lser.online.store import Lease, Store

IDLE = 0.05  # seconds between looks at a log without news
REPORT = 0.5  # seconds between reports
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
