"""Exceptions at any allocation or moment leave a memory as before or as after the call."""

import copy
import linecache
import pickle
import random
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from lser.catalogue import MEMORIES
from lser.testing import subject
from lser.testing.traffic import Snapshot, blocks_of

KINDS = {name: (name, {}) for name in MEMORIES}
KINDS |= {
    "lser-return": ("lser", {"order": "return"}),
    "lser-centred": ("lser", {"features": "standardised", "warmup": 60}),
    "lser-random": ("lser", {"codes": "random"}),
    "lser-evict": ("lser", {"unseen": "evict", "bits": 16}),
    "ser-coverage": ("ser", {"strategy": "coverage"}),
    "ser-reward": ("ser", {"strategy": "reward"}),
    "her-balanced": ("her", {"balanced": True}),
}
ALLOCATORS = ("empty", "zeros", "ones", "full", "arange", "concatenate", "array", "where", "unique")


class Stop(Exception):
    """What a signal handler raises."""


def made(name, capacity=60):
    memory, knobs = KINDS[name]
    return subject(memory, **knobs).make(capacity)


def calls_of(name, count, seed=3):
    """Calls to make in turn: a block and a query each, with feedback."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 8, 90], count)
    for size in sizes.tolist():
        (block,) = blocks_of(rng, 1, size=size)
        streams = rng.integers(0, 5, size)
        yield "extend", (*block, streams)
        yield "sample", (8, block[0][0])
        yield "update", (None, rng.normal(size=8))


def do(memory, call, arguments, ids):
    """Make a call; what was sampled last is what feedback is given for."""
    if call == "update":
        return memory.update(ids, arguments[1])
    return getattr(memory, call)(*arguments)


def spoil(arguments):
    """Change a call's arrays, as a caller may once it has returned."""
    for value in arguments:
        if isinstance(value, np.ndarray):
            value[...] = 1


@contextmanager
def failing(monkeypatch, at, *, for_good=False):
    """Fail the allocation number `at`, or all from it on; yields how many there were."""
    count = [0]

    def wrapped(real):
        def allocate(*args, **kwargs):
            count[0] += 1
            if count[0] == at or (for_good and count[0] > at):
                raise MemoryError("no room")
            return real(*args, **kwargs)

        return allocate

    with monkeypatch.context() as patch:
        for name in ALLOCATORS:
            patch.setattr(np, name, wrapped(getattr(np, name)))
        yield count


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", KINDS)
def test_a_failed_allocation_leaves_a_memory_as_before_or_after(name, for_good, monkeypatch):
    memory, failed, ids = made(name), 0, np.zeros(8, np.int64)
    for number, (call, arguments) in enumerate(calls_of(name, 14)):
        before = Snapshot(memory)
        twin = pickle.loads(pickle.dumps(memory))
        result = do(twin, call, arguments, ids)
        after = Snapshot(twin)
        for at in range(1, 200) if number > 6 and number % 2 else ():  # each call in turn
            tried, mine = pickle.loads(pickle.dumps(memory)), copy.deepcopy(arguments)
            with failing(monkeypatch, at, for_good=for_good) as count:
                try:
                    do(tried, call, mine, ids)
                except MemoryError:
                    failed += 1
            spoil(mine)
            if count[0] < at:
                break
            assert Snapshot(tried) in (before, after), f"{call}: neither, allocation {at}"
        do(memory, call, arguments, ids)
        ids = result.ids if call == "sample" else ids
    assert failed > 10


@pytest.mark.parametrize("name", KINDS)
def test_an_interruption_leaves_a_memory_as_before_or_after(name):
    def interrupt(_number, _frame):
        raise Stop

    chance, ids = random.Random(5), np.zeros(8, np.int64)
    memory = made(name)
    for call, arguments in calls_of(name, 6):  # compile
        result = do(memory, call, arguments, ids)
        ids = result.ids if call == "sample" else ids
    earlier = signal.signal(signal.SIGALRM, interrupt)
    hit = 0
    try:
        for call, arguments in calls_of(name, 60, seed=4):
            before = Snapshot(memory)
            twin = pickle.loads(pickle.dumps(memory))
            result = do(twin, call, arguments, ids)
            after = Snapshot(twin)
            mine = copy.deepcopy(arguments)
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 2e-4))
                do(memory, call, mine, ids)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                hit += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            spoil(mine)
            now = Snapshot(memory)
            assert now in (before, after), f"{call} left it neither as before nor as after"
            if call == "sample":
                ids = result.ids
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    assert hit > 10


@pytest.mark.parametrize("name", KINDS)
def test_every_line_of_a_call_may_be_the_last(name):
    """As a signal handler may raise after any call or jump, so does this before any line."""
    memory, ids, hits = made(name), np.zeros(8, np.int64), 0
    for number, (call, arguments) in enumerate(calls_of(name, 13)):
        before = Snapshot(memory)
        twin = pickle.loads(pickle.dumps(memory))
        result = do(twin, call, arguments, ids)
        after = Snapshot(twin)
        for at in range(1, 4000) if number in (21, 22, 23, 36, 37, 38) else ():
            tried, seen = pickle.loads(pickle.dumps(memory)), [0]
            mine = copy.deepcopy(arguments)

            def trace(frame, event, _argument, seen=seen, at=at):
                if "lser" not in frame.f_code.co_filename:
                    return None
                # a lock is released by the line that took it, and no handler runs before that
                line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
                if event == "line" and "with self._lock" not in line:
                    seen[0] += 1
                    if seen[0] == at:
                        raise Stop
                return trace

            sys.settrace(trace)
            try:
                do(tried, call, mine, ids)
            except Stop:
                hits += 1
            finally:
                sys.settrace(None)
            spoil(mine)
            if seen[0] < at:
                break
            assert not tried._lock.locked()
            assert Snapshot(tried) in (before, after), f"{call}: neither, line {at}"
        do(memory, call, arguments, ids)
        ids = result.ids if call == "sample" else ids
    assert hits > 50


@pytest.mark.parametrize("name", ["per", "aer"])
@pytest.mark.parametrize("draws", [-1, 2**70])
def test_a_saved_number_of_draws_that_cannot_be_is_refused(name, draws):
    memory = made(name)
    state = memory.state()
    state.config["own"]["draws"] = draws
    with pytest.raises(ValueError, match=f"draws.*{draws}"):
        type(memory).from_state(state)


FORKING = """
import os, sys, threading, time
import numpy as np
from lser.catalogue import MEMORIES
from lser.testing import subject
from lser.testing.traffic import blocks_of
memory = subject(sys.argv[1]).make(60)
(block,) = blocks_of(np.random.default_rng(0), 1)
memory.extend(*block)
memory.sample(4, block[0][0])
real, begun = memory.insert, threading.Event()
def slow(block):
    begun.set()
    time.sleep(0.3)
    return real(block)
memory.insert = slow
work = threading.Thread(target=memory.extend, args=block) if sys.argv[1] != "lser" else None
if work is None:  # it does not call insert: hold its lock as a call would
    def hold():
        with memory._lock:
            begun.set()
            time.sleep(0.3)
    work = threading.Thread(target=hold)
work.start()
begun.wait()
pid = os.fork()
if pid == 0:
    memory.sample(4, block[0][0])
    os._exit(0)
work.join()
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        sys.exit(status)
    time.sleep(0.01)
os.kill(pid, 9)
sys.exit("the child hangs")
"""


@pytest.mark.parametrize("name", ["uniform", "lser"])  # one lock, in one class
def test_a_fork_while_another_thread_writes_leaves_a_memory_that_answers(name):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING, name], timeout=120)
    assert done.returncode == 0
