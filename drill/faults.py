"""The faults of the drill: each does `count` of its kind in a folder and says what they broke."""

import contextlib
import errno
import json
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from drill import samples, workers
from drill.forge import damaged, forged
from drill.power import Disk
from drill.workers import Worker
from lser import files
from lser.catalogue import MEMORIES
from lser.experiments import recording, records
from lser.experiments.owner import OWNER, owned
from lser.experiments.run import CHECKPOINTS, Run, run
from lser.replay import load_replay
from lser.testing import subject
from lser.testing.traffic import Snapshot, blocks_of

Count = tuple[int, list[str]]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)]),
}


def kill_saves(folder: Path, count: int) -> Count:
    """SIGKILL a process that saves a memory over and over: the file is of one save or the next."""
    broken, chance = [], random.Random(1)
    path = folder / "memory.lser"
    for number in range(count):
        with Worker(workers.save, str(path)) as process:
            process.stdout.readline()  # it has saved once
            time.sleep(chance.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        memory = load_replay(path)
        rewards = {float(r) for r in memory.store.rows[:, memory.store.layout.reward]}
        if len(rewards) != 1:
            broken.append(f"save {number}: rows of {len(rewards)} saves in one file")
    memory.save(path)
    left = [name for name in os.listdir(folder) if name != path.name]
    return count, broken + [f"left behind: {name}" for name in left]


def outcome(folder: Path) -> tuple[bytes, bytes]:
    """What must be equal: the curve and the final evaluation, byte for byte."""
    return (folder / "curve.jsonl").read_bytes(), (folder / "final.json").read_bytes()


def kill_training(folder: Path, count: int) -> Count:
    """SIGKILL runs after a checkpoint of their own, and let them go on."""
    chance, broken, kills = random.Random(2), [], 0
    plain = {"sessions": 3000 if count > 10 else 600, "evaluate_every": 500}
    run(samples.experiment(**plain), folder / "whole")
    while kills < count:
        killed = folder / f"killed{kills}"
        lives = 0
        while lives < 6 and kills < count:
            before = _marks(killed)
            with Worker(workers.train, str(killed), json.dumps(plain)) as process:
                _wait(lambda b=before, k=killed, p=process: _marks(k) != b or p.poll() is not None)
                time.sleep(chance.uniform(0, 0.15))
                process.send_signal(signal.SIGKILL)
            lives, kills = lives + 1, kills + 1
            if records.read(killed).status == "done":
                break
        if records.read(killed).status != "done":
            run(samples.experiment(**plain), killed)
        if outcome(killed) != outcome(folder / "whole"):
            broken.append(f"{killed.name}: another outcome after {lives} kills")
    return kills, broken


def _marks(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / CHECKPOINTS).glob("0*.lser"))


def kill_studies(folder: Path, count: int) -> Count:
    """Kill a study or one of its workers: what is left ends, and the same command completes it."""
    broken, kills, plain = [], 0, {"sessions": 1000, "evaluate_every": 500}
    for seed in (0, 1):
        run(samples.experiment(seed=seed, **plain), folder / "whole" / str(seed))
    while kills < count:
        out = folder / f"study{kills}"
        for whom in ("parent", "parent, asked", "worker")[: count - kills]:
            with Worker(workers.study, str(out), json.dumps(plain)) as process:
                _wait(lambda o=out, p=process: _at_work(o) or p.poll() is not None)
                if whom == "worker":
                    _kill_owner(_at_work(out))
                else:
                    process.send_signal(signal.SIGKILL if whom == "parent" else signal.SIGTERM)
            kills += 1
            folders = [path.parent for path in out.rglob("experiment.json")]
            try:
                _wait(lambda f=folders: not any(map(owned, f)), 30)
            except TimeoutError:
                broken.append(f"{out.name}: a worker outlives its study")
        with Worker(workers.study, str(out), json.dumps(plain)) as process:
            code = process.wait()
        for seed in (0, 1):
            (found,) = out.rglob(f"*seed{seed}*")
            if code or outcome(found) != outcome(folder / "whole" / str(seed)):
                broken.append(f"{found.name}: another outcome, or exit {code}")
    return kills, broken


def _at_work(out: Path) -> list[Path]:
    """The records under `out` that a process writes to."""
    return [path.parent for path in out.rglob("progress.json") if owned(path.parent)]


def _kill_owner(folders: list[Path]) -> None:
    """Kill the process that has the first of these records."""
    for folder in folders[:1]:
        with contextlib.suppress(OSError, ValueError, KeyError):
            os.kill(json.loads((folder / OWNER).read_text())["pid"], signal.SIGKILL)


def damage_files(folder: Path, count: int) -> Count:
    """Damage the bytes of files at random: all are refused."""
    chance, broken = random.Random(3), []
    whole = [path.read_bytes() for path in [*samples.memories(folder), samples.agent(folder)]]
    path = folder / "damaged.lser"
    for number in range(count):
        data = whole[number % len(whole)]
        bad = damaged(data, chance)
        path.write_bytes(bad)
        try:
            files.load(path)
        except ValueError:
            continue
        if bad != data:
            broken.append(f"damaged file {number} was read")
    return count, broken


def forge_files(folder: Path, count: int) -> Count:
    """Change contents under right checksums: what loads works, and nothing crashes."""
    chance, broken, done = random.Random(4), [], 0
    whole = [*samples.memories(folder), samples.agent(folder), samples.checkpoint(folder)]
    while done < count:
        some = []
        for number in range(min(100, count - done)):
            some.append(folder / f"forged{number}.lser")
            forged(chance.choice(whole), some[-1], chance)
        command = [sys.executable, "-m", "drill.loading", *map(str, some)]
        ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        if ended.returncode:
            broken.append(f"exit {ended.returncode}: {ended.stderr[-300:]}")
        done += len(some)
    return done, broken


def fill_disks(folder: Path, count: int) -> Count:
    """Let files end at a limit of size: a save fails, the earlier file stays, nothing is left."""
    chance, broken = random.Random(5), []
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    names = list(MEMORIES.own)
    try:
        for number in range(count):
            memory = subject(names[number % len(names)]).make(40)
            samples.use(memory, 3)
            path = folder / "memory.lser"
            memory.save(path)
            before, size = path.read_bytes(), path.stat().st_size
            samples.use(memory, 3, seed=9)
            resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randrange(0, size // 2), limits[1]))
            try:
                memory.save(path)
                broken.append(f"save {number} did not fail")
            except OSError:
                pass
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            if path.read_bytes() != before or os.listdir(folder) != [path.name]:
                broken.append(f"save {number}: the earlier file is gone, or something is left")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    return count, broken


def fail_allocations(_folder: Path, count: int) -> Count:
    """Fail one allocation of a call after the other: the memory is as before or as after."""
    broken, tried, rng = [], 0, np.random.default_rng(6)
    while tried < count:
        for name in MEMORIES.own:
            memory = subject(name).make(60)
            samples.use(memory, 6)
            (block,) = blocks_of(rng, 1, size=50)
            before, twin = Snapshot(memory), pickle.loads(pickle.dumps(memory))
            twin.extend(*block)
            after = Snapshot(twin)
            for at in range(1, 100):
                other = pickle.loads(pickle.dumps(memory))
                left = [at]
                with _failing(left):
                    try:
                        other.extend(*block)
                    except MemoryError:
                        tried += 1
                if Snapshot(other) not in (before, after):
                    broken.append(f"{name}: neither before nor after, allocation {at}")
                if left[0] > 0:
                    break
    return tried, broken


def _failing(left: list[int]) -> Any:
    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise MemoryError
            return real(*args, **kwargs)

        return allocate

    names = ("empty", "zeros", "full", "arange", "concatenate", "array")
    return mock.patch.multiple(np, **{name: wrapped(getattr(np, name)) for name in names})


def two_owners(folder: Path, count: int) -> Count:
    """Start two processes on one record: one of them is refused, and the record is right."""
    broken, plain = [], {"sessions": 300, "evaluate_every": 100}
    run(samples.experiment(**plain), folder / "whole")
    for number in range(count):
        shared = str(folder / f"shared{number}")
        pair = [Worker(workers.train, shared, json.dumps(plain)) for _ in range(2)]
        codes = []
        for process in pair:
            with process:
                codes.append(process.wait())
        if 0 not in codes or outcome(Path(shared)) != outcome(folder / "whole"):
            broken.append(f"record {number}: exits {codes}, or another outcome")
    return count, broken


def drop_writes(folder: Path, count: int) -> Count:
    """Lose what was not synced when the power goes: the record goes on and ends the same."""
    chance, broken, lost = random.Random(7), [], 0
    small = samples.experiment(sessions=14, evaluate_every=4)
    run(small, folder / "whole")
    for number in range(count):
        disk, record = Disk(), folder / f"lost{number}"
        with disk.watched():
            under_way = Run(small, record, checkpoint_seconds=0)
            under_way.recorder.fail = lambda _: None  # nobody is there to write that
            with contextlib.suppress(_Stop):
                under_way.go(_stopper(chance.randrange(1, 17)))
        lost += disk.lose(record, chance)
        try:
            if records.read(record).status != "done":
                run(small, record)
        except (ValueError, OSError) as error:
            broken.append(f"run {number}: {error}")
            continue
        if outcome(record) != outcome(folder / "whole"):
            broken.append(f"run {number}: another outcome after a loss of power")
    return count, broken if lost > count // 2 else [*broken, f"only {lost} files were lost"]


class _Stop(Exception):
    pass


def _stopper(sessions: int) -> Any:
    def stop(status: Any) -> None:
        if status.step.sessions >= sessions:
            raise _Stop

    return stop


def jump_clock(folder: Path, count: int) -> Count:
    """Let the clock of the wall jump back and forth: records do not depend on it."""
    chance, broken = random.Random(8), []
    run(samples.experiment(), folder / "whole")
    real = time.time

    def wall() -> float:
        return real() + chance.uniform(-1e9, 1e9)

    def day() -> str:
        return f"{chance.randrange(1970, 2100)}-01-01"

    for number in range(count):
        with (
            mock.patch.object(time, "time", wall),
            mock.patch.object(recording, "_now", day),
        ):
            run(samples.experiment(), folder / str(number), checkpoint_seconds=0)
        if outcome(folder / str(number)) != outcome(folder / "whole"):
            broken.append(f"run {number}: another outcome")
    return count, broken


def _wait(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "it did not happen in time")
        time.sleep(0.01)
