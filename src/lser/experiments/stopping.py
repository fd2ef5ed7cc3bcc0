"""How a run is asked to stop: by a signal, which it heeds between two steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupted(Exception):
    """Training was asked to stop; a checkpoint holds where it stands."""


@contextmanager
def stop_flag() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into a question asked between steps, so that no step is torn."""
    asked: set[int] = set()

    def note(number: int, _: object) -> None:
        again = number in asked  # a terminal's Ctrl-C and whoever started this may both ask
        asked.add(number)
        if again:  # do not wait for the step to end
            raise KeyboardInterrupt

    try:
        previous = {s: signal.signal(s, note) for s in STOPS}
    except ValueError:  # not in the main thread: signals are not ours to catch
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
