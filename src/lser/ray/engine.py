"""Ray itself: imported here and nowhere else, so that its absence is said in one sentence."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

log = logging.getLogger("lser")


def the_ray() -> ModuleType:
    """The module `ray`; ValueError says how to install it where it is missing."""
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ValueError(
            "this needs Ray, which is not installed: pip install 'ray>=2.60' (the extra `ray`)"
        ) from None
    module: ModuleType = ray
    return module


@contextmanager
def connected(address: str = "") -> Iterator[ModuleType]:
    """Ray, connected to the cluster at `address`; a connection that is there already is used.

    An empty address is what ``ray.init()`` makes of it: RAY_ADDRESS, a cluster of this machine, or
    a new one of its cores that ends with the block.
    """
    ray = the_ray()
    if ray.is_initialized():
        yield ray
        return
    with _own_signals():
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ValueError(f"no Ray cluster at {address or 'this machine'}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes over SIGTERM, with a plain exit; here it means what it meant before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
