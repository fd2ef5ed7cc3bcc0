"""The life of a memory: what it holds, what it replays, and that it can be copied and saved."""

import copy
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from lser.replay import Memory, load_replay
from lser.replay.memory import last_of_each
from lser.testing.subject import (
    ACTION,
    BATCH,
    CAPACITY,
    OBSERVATION,
    NotForThis,
    Subject,
    is_replay,
    require,
)
from lser.testing.traffic import Snapshot, blocks_of, life_of, same_batch


def keeps_the_protocol(subject: Subject) -> None:
    """It has every method of `lser.replay.Replay`."""
    require(is_replay(subject.make()), "a method of lser.replay.Replay is missing")


def fills_up(subject: Subject) -> None:
    """It holds what it was given, up to its capacity and not more."""
    memory = subject.make()
    require(memory.capacity == CAPACITY, f"capacity is {memory.capacity}, not {CAPACITY}")
    for count, block in enumerate(blocks_of(np.random.default_rng(11), CAPACITY + 1, size=1), 1):
        memory.extend(*block)
        held = min(count, CAPACITY)
        require(len(memory) == held, f"after {count} transitions it holds {len(memory)}")


def never_overflows(subject: Subject) -> None:
    """A block larger than the memory is taken, and leaves no more than it holds."""
    memory = subject.make()
    (block,) = blocks_of(np.random.default_rng(11), 1, size=3 * CAPACITY)
    require(len(memory.extend(*block)) == 3 * CAPACITY, "not every row of a block got an id or -1")
    require(0 < len(memory) <= CAPACITY, f"it holds {len(memory)} of at most {CAPACITY}")
    require(len(memory.sample(5, block[0][0]).ids) == 5, "it cannot be sampled")


def holds_a_single_transition(subject: Subject) -> None:
    """A capacity of one is enough to live with."""
    memory = subject.make(1)
    for block in blocks_of(np.random.default_rng(11), 5):
        memory.extend(*block)
        batch = memory.sample(3, block[0][0])
        memory.update(batch.ids, np.ones(3))
        require(len(set(batch.ids.tolist())) == len(memory) == 1, "it holds more than one")


def takes_an_empty_block(subject: Subject) -> None:
    """A block without rows changes nothing."""
    memory, _, _, rng = life_of(subject)
    before = Snapshot(memory)
    (block,) = blocks_of(rng, 1, size=0)
    require(memory.extend(*block).shape == (0,), "an empty block got ids")
    require(Snapshot(memory) == before, "an empty block changed the memory")


def takes_a_block_as_its_rows(subject: Subject) -> None:
    """A block of N is what N blocks of one are."""
    whole, single = subject.make(), subject.make()
    streams = np.arange(8) % 3  # several steps of a stream in one block
    for block in blocks_of(np.random.default_rng(11), 12):
        whole.extend(*block, streams)
        for i in range(8):
            single.extend(*(column[i : i + 1] for column in block), streams[i : i + 1])
        left, right = (memory.sample(BATCH, block[0][0]) for memory in (whole, single))
        require(same_batch(left, right), "rows added one by one are drawn otherwise than a block")


def gives_the_size_asked_for(subject: Subject) -> None:
    """A batch has exactly `batch_size` transitions, in the types of `lser.Batch`."""
    memory, columns, _, _ = life_of(subject)
    for size in (1, 7, 3 * CAPACITY):
        batch = memory.sample(size, columns[0][0])
        shapes = [(size, OBSERVATION), (size, ACTION), (size,), (size, OBSERVATION), *[(size,)] * 4]
        dtypes = [np.dtype(d) for d in ("f4", "f4", "f4", "f4", "?", "?", "i8", "f4")]
        require([part.shape for part in batch] == shapes, f"the shapes are not {shapes}")
        require([part.dtype for part in batch] == dtypes, f"the types are not {dtypes}")


def replays_what_it_holds(subject: Subject) -> None:
    """Batches hold what was added, unchanged but for goals and rewards, under ids still held."""
    memory, columns, ids, _ = life_of(subject)
    known = {int(i): n for n, i in enumerate(np.concatenate(ids).tolist()) if i >= 0}
    drawn: set[int] = set()
    for query in columns[0]:
        batch = memory.sample(20, query)
        serials = batch.action[:, 0].astype(int)
        for at, kept in (
            (0, np.s_[:, :-1]),
            (1, np.s_[:]),
            (3, np.s_[:, :-1]),
            (4, np.s_[:]),
            (5, np.s_[:]),
        ):
            same = np.array_equal(batch[at][kept], columns[at][serials][kept])
            require(same, f"{batch._fields[at]} is not what was added")
        for identity, serial in zip(batch.ids.tolist(), serials.tolist(), strict=True):
            # a memory may keep copies, which have ids of their own
            require(
                known.get(identity, serial) == serial, f"id {identity} is of another transition"
            )
        drawn.update(batch.ids.tolist())
    held = set(np.asarray(memory.state().arrays["ids"]).tolist())
    require(drawn <= held and len(drawn) <= len(memory), "it replays what it no longer holds")


def follows_its_seed(subject: Subject) -> None:
    """The same seed and calls give the same batches."""
    left, right = life_of(subject), life_of(subject)
    for query in left.columns[0][:10]:
        pair = (left.memory.sample(BATCH, query), right.memory.sample(BATCH, query))
        require(same_batch(*pair), "two memories of one seed drew different batches")


def goes_on_after_a_file(subject: Subject) -> None:
    """Saved and loaded, full or empty, it goes on exactly as if nothing had happened."""
    memory, columns, _, rng = life_of(subject)
    with tempfile.TemporaryDirectory() as folder:
        for original in (subject.make(), memory):
            original.save(Path(folder) / "memory")
            loaded = load_replay(Path(folder) / "memory", kind=subject.kind)
            _go_on_alike(original, loaded, rng, len(columns[0]), "loaded")


def goes_on_in_copies(subject: Subject) -> None:
    """`from_state` and `copy.deepcopy` make memories that go on alike and apart."""
    _go_on_as_copies(subject, "made from its state", lambda m: type(m).from_state(m.state()))
    _go_on_as_copies(subject, "copied", copy.deepcopy)


def goes_on_after_a_pickle(subject: Subject) -> None:
    """So does `pickle`, where its class can be imported."""
    kind = type(subject.make())
    found: Any = sys.modules.get(kind.__module__)
    if getattr(found, kind.__qualname__, None) is not kind:
        raise NotForThis(f"{kind.__module__} has no {kind.__qualname__} to import")
    _go_on_as_copies(subject, "pickled", lambda m: pickle.loads(pickle.dumps(m)))


def _go_on_as_copies(subject: Subject, way: str, copied: Callable[[Any], Any]) -> None:
    memory, columns, _, rng = life_of(subject)
    _go_on_alike(memory, copied(memory), rng, len(columns[0]), way)
    apart = copied(memory)
    before = Snapshot(apart)
    memory.extend(*next(blocks_of(rng, 1)))
    require(Snapshot(apart) == before, f"{way}, it changes with the original")


def _go_on_alike(memory: Any, other: Any, rng: np.random.Generator, first: int, way: str) -> None:
    require(Snapshot(memory) == Snapshot(other), f"{way}, it has another state")
    for block in blocks_of(rng, 12, first=first):
        for each in (memory, other):
            each.extend(*block)
        left, right = (each.sample(BATCH, block[0][0]) for each in (memory, other))
        require(same_batch(left, right), f"{way}, it draws other batches")
        errors = rng.normal(size=BATCH)
        for each in (memory, other):
            each.update(left.ids, errors)
    require(Snapshot(memory) == Snapshot(other), f"{way}, it comes to another state")


def says_plain_numbers(subject: Subject) -> None:
    """`stats` holds floats, and the memory can be told to stop exploring."""
    memory, columns, _, _ = life_of(subject)
    memory.stop_exploring()
    require(len(memory.sample(4, columns[0][0]).ids) == 4, "it does not sample after exploring")
    stats = memory.stats()
    require(all(type(value) is float for value in stats.values()), f"not all are floats: {stats}")
    require(stats.get("size", len(memory)) == len(memory), "its size is not its length")


def survives_two_threads(subject: Subject) -> None:
    """One thread may add while another samples and gives feedback."""
    memory, columns, _, rng = life_of(subject)
    blocks = list(blocks_of(rng, 150, first=len(columns[0])))
    for observation, action, *_ in blocks:
        action[:, 1] = observation[:, 0]  # a row half old and half new would break this
    seen = len(columns[0])
    wrong: list[str] = []
    written = Event()

    def write() -> None:
        try:
            for block in blocks:
                memory.extend(*block)
        except Exception as error:
            wrong.append(f"extend raised {error!r}")
        written.set()

    def read() -> None:
        draws = 0
        try:
            while not wrong and (draws < len(blocks) or not written.is_set()):
                block = blocks[draws % len(blocks)]
                draws += 1
                batch = memory.sample(BATCH, block[0][0])
                fresh = batch.action[:, 0] >= seen
                if not np.array_equal(batch.action[fresh, 1], batch.observation[fresh, 0]):
                    wrong.append("a transition came back half written")
                memory.update(batch.ids, batch.reward)
        except Exception as error:
            wrong.append(f"sample or update raised {error!r}")

    threads = [Thread(target=write), Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not wrong, f"with a thread that adds and one that samples: {'; '.join(wrong[:3])}")


def chooses_alike_without_rows(subject: Subject) -> None:
    """With ``storage="none"`` its rule takes and picks the same slots as with rows of its own."""
    if not (isinstance(subject.kind, type) and issubclass(subject.kind, Memory)):
        raise NotForThis("it is no lser.Memory")
    try:
        rule = subject.make(storage="none")
    except ValueError as error:
        raise NotForThis(str(error)) from None
    rng, memory = np.random.default_rng(11), subject.make()
    kept = np.zeros((CAPACITY, OBSERVATION), np.float32)  # as a library that owns the rows has it
    for block in blocks_of(rng, 30):
        ids = memory.extend(*block)
        slots = rule.place(block[0], block[2], block[4] | block[5])
        taken = last_of_each(np.where(ids >= 0, ids % CAPACITY, -1))
        require(np.array_equal(slots, taken), f"newcomers take the slots {slots}, not {taken}")
        kept[slots[slots >= 0]] = block[0][slots >= 0]
        if rule.stale:
            rule.refile(kept[: len(rule)])
        batch = memory.sample(BATCH, block[0][0])
        picked, weights = rule.pick(BATCH, block[0][0])
        require(np.array_equal(picked, batch.ids % CAPACITY), "it picks other slots")
        require(np.array_equal(weights, batch.weights), "it has other weights")
        errors = rng.normal(size=BATCH)
        memory.update(batch.ids, errors)
        rule.report(picked, errors)


CHECKS: tuple[Callable[[Subject], None], ...] = (
    keeps_the_protocol,
    fills_up,
    never_overflows,
    holds_a_single_transition,
    takes_an_empty_block,
    takes_a_block_as_its_rows,
    gives_the_size_asked_for,
    replays_what_it_holds,
    follows_its_seed,
    goes_on_after_a_file,
    goes_on_in_copies,
    goes_on_after_a_pickle,
    says_plain_numbers,
    survives_two_threads,
    chooses_alike_without_rows,
)
