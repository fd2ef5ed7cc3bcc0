"""Waiting in tests: for what must happen, however slow the machine.

A limit here is no claim about speed. A cold machine may compile kernels in several processes at
once before the first thing happens, so the limit is long and only ends what hangs.
"""

import time

LIMIT = 300.0  # seconds


def until(holds, what="what was waited for", pause=0.05):
    """Return when `holds()` is true; fail with `what` when it is not within the limit."""
    deadline = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen in {LIMIT:.0f} seconds"
        time.sleep(pause)
