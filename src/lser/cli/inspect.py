"""``lser inspect``: would replaying by similarity pay on these transitions?"""

import json
import zipfile
from collections import deque
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import tyro
from rich.table import Table

from lser.checks import check_count
from lser.cli.display import stdout
from lser.cli.json_text import json_text
from lser.experiments.preflight import available_bytes
from lser.files import taken_from
from lser.opening import open_plain
from lser.types import Float32


class Log(NamedTuple):
    """Transitions to look at."""

    observation: Float32
    action: Float32
    reward: Float32


def inspect(argv: list[str]) -> int:
    """Look at a log."""
    return int(tyro.cli(_inspect, args=argv, prog="lser inspect"))


def _inspect(
    log: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")],
    /,
    bits: tuple[int, ...] = (4, 6, 8, 10, 12, 14),
    rows: int = 50_000,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """What the code of an observation explains of the reward and of rewarded actions.

    Shares of variance, out of sample, beside codes given to somebody else; and advice on bits,
    features and batch. LOG is a memory that `save` wrote, the folder of a run with a checkpoint or
    of a shop of `lser serve` (or its database: an action is the mean of the clicked items), an .npz
    with observation, action and reward, or a .csv with columns o*, a* and reward.

    example: lser inspect memory.lser

    Args:
        log: Memory, run, shop, .npz or .csv.
        bits: Numbers of bits to try.
        rows: The newest so many transitions are looked at.
        json_output: Print JSON.
    """
    from lser.replay.inspect import advise, explained

    check_count("--rows", rows)
    found = read(log, rows)
    lines = explained(*found, bits=bits)
    advice = advise(lines, len(found.reward))
    if json_output:
        told = {"rows": [line._asdict() for line in lines], "advice": advice._asdict()}
        print(json_text({"transitions": len(found.reward), **told}))
        return 0
    title = f"What codes explain of {len(found.reward):,} transitions (in brackets: by chance)"
    table = Table(title=title)
    columns = ("features", "bits", "of the reward", "of rewarded actions", "codes", "bucket")
    for column in columns:
        table.add_column(column, justify="left" if column == "features" else "right")
    for line in lines:
        table.add_row(
            line.features,
            str(line.bits),
            f"{line.reward:.3f} ({line.reward_chance:.3f})",
            f"{line.action:.3f} ({line.action_chance:.3f})",
            f"{line.occupied:,}",
            f"{line.median:,.0f}",
        )
    stdout().print(table)
    print(advice.words)
    return 0


def read(log: str | Path, rows: int = 50_000) -> Log:
    """The newest transitions of a log, oldest first; ValueError where it holds none."""
    found = _from_shop(log, rows) if _is_shop(log) else _from_file(Path(log))
    return Log(*(part[-rows:] for part in found))


def _is_shop(log: str | Path) -> bool:
    from lser.online.store import is_database, open_store

    return is_database(log) or (Path(log).is_dir() and open_store(log).exists())


def _from_shop(log: str | Path, rows: int) -> Log:
    """Pages that were served: what was known of a visitor, the items clicked, how many.

    Where nobody clicked the action is the mean of what was shown; it weighs nothing.
    """
    from lser.online.seen import pages
    from lser.online.store import open_store

    store = open_store(log)
    reader = store.reader()
    kept: deque[tuple[Float32, Float32, float]] = deque(maxlen=rows)
    try:
        for page, vectors in pages(reader):
            if len(vectors):
                chosen = page.clicked if page.clicked.any() else None
                mean = np.average(vectors, axis=0, weights=chosen)
                kept.append((page.observation, mean.astype(np.float32), page.reward))
    finally:
        reader.close()
        store.close()
    if not kept:
        raise ValueError(f"{store.name} has no closed pages yet: there is nothing to look at")
    observation, action, reward = zip(*kept, strict=True)
    return Log(np.stack(observation), np.stack(action), np.asarray(reward, np.float32))


def _from_file(path: Path) -> Log:
    if path.is_dir():
        return _from_run(path)
    if path.suffix == ".npz":
        with taken_from(path):
            return _checked(path, _arrays(path))
    if path.suffix == ".csv":
        with taken_from(path):
            return _from_csv(path)
    from lser.replay import load_replay

    return _held(load_replay(path))


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with open_plain(path) as file, np.load(file) as arrays:
            _check_room(path, arrays)
            return dict(arrays)
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no .npz of arrays: {error}") from None


def _check_room(path: Path, arrays: Any) -> None:
    """Refuse an archive of which a little unpacks to more than there is memory for."""
    size = sum(entry.file_size for entry in arrays.zip.infolist())
    if size > available_bytes():
        raise MemoryError(f"{path} takes {size / 2**30:,.1f} GiB of memory when it is opened")


def _held(replay: Any) -> Log:
    """What a memory holds, by age."""
    store = replay.store
    slots = np.flatnonzero(store.ids >= 0)
    slots = slots[np.argsort(store.ids[slots])]
    if not len(slots):
        raise ValueError("the memory is empty: there is nothing to look at")
    batch = store.batch(slots)
    return Log(batch.observation, batch.action, batch.reward)


def _from_run(folder: Path) -> Log:
    """The memory in the newest checkpoint of a run."""
    from lser.catalogue import MEMORIES
    from lser.experiments import records
    from lser.experiments.run import CHECKPOINTS
    from lser.files import State
    from lser.training import checkpoint

    tree = checkpoint.load_latest(folder / CHECKPOINTS)
    if tree is None:
        raise ValueError(
            f"{folder} has no checkpoint: a finished run keeps none; inspect a run that was "
            "stopped, or a memory that was saved"
        )
    kind = MEMORIES[records.load(folder).memory].load()
    with taken_from(folder / CHECKPOINTS):
        saved = tree["replay"]
        return _held(kind.from_state(State(json.loads(saved["config"]), saved["arrays"])))


def _from_csv(path: Path) -> Log:
    head, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    names = [name.strip() for name in head.split(",")]
    if not any(line.strip() for line in lines):
        raise ValueError(f"{path} has no rows")
    try:
        table = np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.float32)
    except ValueError as error:
        raise ValueError(f"{path} is no table of numbers: {error}") from None
    if table.shape[1] != len(names):
        raise ValueError(f"{path} names {len(names)} columns and has {table.shape[1]}")
    of = {part: [k for k, name in enumerate(names) if _is(part, name)] for part in ("o", "a")}
    if "reward" not in names or not of["o"] or not of["a"]:
        raise ValueError(f"{path} needs columns o0, o1, ..., a0, a1, ... and reward, got {names}")
    return Log(table[:, of["o"]], table[:, of["a"]], table[:, names.index("reward")])


def _is(part: str, name: str) -> bool:
    return name.startswith(part) and name[1:].isdigit()


def _checked(path: Path, arrays: dict[str, Any]) -> Log:
    missing = [name for name in Log._fields if name not in arrays]
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}; it has {', '.join(arrays)}")
    return Log(*(np.asarray(arrays[name], np.float32) for name in Log._fields))
