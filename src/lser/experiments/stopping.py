"""How a run is asked to stop: by a signal, which it heeds between two steps."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupted(Exception):
    """Training was asked to stop; a checkpoint holds where it stands."""


def heard(signals: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Those of `signals` to listen to: what nohup silenced stays silent."""
    return [s for s in signals if s == signal.SIGINT or signal.getsignal(s) != signal.SIG_IGN]


@contextmanager
def stop_flag() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into a question asked between steps, so that no step is torn.

    A second Ctrl-C does not wait for the step to end; a second SIGTERM does: a service manager
    sends one to all of a group, and whoever started this process may send its own.
    """
    asked: set[int] = set()

    def note(number: int, _: object) -> None:
        again = number in asked
        asked.add(number)
        if again and number == signal.SIGINT:
            raise KeyboardInterrupt

    try:
        previous = {s: signal.signal(s, note) for s in heard(STOPS)}
    except ValueError:  # not in the main thread: signals are not ours to catch
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
