"""How fast the memories are, beside each other in one run: `python benchmarks/replay.py`.

Repetitions are interleaved, medians taken and processor time counted, so that ratios hold on a
machine with other work; absolute numbers do not. The memories are measured in groups that fit in
10 GB together; each group has the packed ring, by whose rate in the first group all are scaled.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from replay_peers import ACTION, BATCH, OBSERVATION, PackedRing, contenders, versions

os.environ["OMP_NUM_THREADS"] = "1"  # torch's threads would wait for each other
ROOT = Path(__file__).resolve().parents[1]
RING, UNIFORM = "packed ring", "lser uniform"
ONCE = {"SB3 x64": (64,), "SB3 x1024": (1024,), "SB3": (1,)}  # block sizes a buffer can take
NARROW = 8, 2  # observation and action of the rows with which growth is measured once more
MEASURED = ("LSER greedy", RING, "five arrays", "SB3", "TorchRL", "cpprb")  # resident memory
PARTLY = {"Tianshou": 200_000, "Tianshou PER": 200_000}  # filling them takes minutes
NOTES = (
    "SB3 writes one transition of each of n environments: blocks go to buffers with n_envs = 64 "
    "and 1024 (131,072 transitions); their draws are not measured.",
    "Tianshou adds one transition at a time, and holds 200,000 of the 1,000,000 here, which "
    "favours it. PER rows: a draw includes the update of priorities.",
    "TorchRL's PrioritizedSampler needs a C++ extension that its wheels do not load with "
    "torch 2.13 (pytorch/rl#3508): its uniform sampler is measured.",
)


def traffic(rng: np.random.Generator, n: int, centres: np.ndarray) -> tuple[np.ndarray, ...]:
    """A block: users around centres, so that 20-bit codes meet again; clicks as rewards."""
    users = centres[rng.integers(len(centres), size=n)]
    width = users.shape[1]
    observation = users + 0.1 * rng.standard_normal((n, width), np.float32)
    action = rng.random((n, ACTION if width == OBSERVATION else 2), np.float32)
    reward = rng.integers(0, 11, n).astype(np.float32)
    following = observation + 0.1 * rng.standard_normal((n, width), np.float32)
    return observation, action, reward, following, rng.random(n) < 0.1, np.zeros(n, np.bool_)


def rate(call: Any, seconds: float) -> float:
    """Calls per second of processor time, so that waiting for other work does not count."""
    done, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        for _ in range(4):
            call()
        done += 4
    return done / spent


def interleaved(calls: dict[str, Any], repetitions: int, seconds: float) -> dict[str, float]:
    """Median calls per second of each, taken in turns."""
    rates: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            rates[name].append(rate(call, seconds))
    return {name: median(values) for name, values in rates.items()}


def pusher(contender: Any, blocks: list[tuple[np.ndarray, ...]]) -> Any:
    turn = iter(range(sys.maxsize))
    return lambda: contender.push(blocks[next(turn) % len(blocks)])


def rising(contender: Any, blocks: list[tuple[np.ndarray, ...]]) -> Any:
    """Pushes whose rewards rise: a full memory stores every row instead of dropping most."""
    turn = iter(range(sys.maxsize))

    def push() -> None:
        block = blocks[next(turn) % len(blocks)]
        block[2][:] += 11
        contender.push(block)

    return push


def groups(names: list[str]) -> list[list[str]]:
    """The names in groups that fit in memory together, each with the packed ring."""
    slow = ["Tianshou", "Tianshou PER"]
    kinds = [n for n in names if n.startswith("lser ") and n not in ("lser per", "lser uniform")]
    first = [n for n in names if n not in (*slow, *kinds)]
    rest = [kinds[k : k + 8] for k in range(0, len(kinds), 8)]
    return [first, *([RING, *[n for n in g if n in names]] for g in (slow, *rest))]


def in_groups(
    capacity: int, queries: np.ndarray, blocks: Any, only: list[str] | None, options: Any, log: Any
) -> dict[str, dict[str, float]]:
    """`speeds` of all groups on the scale of the first."""
    result: dict[str, dict[str, float]] = {}
    names = [n for n in contenders(capacity, queries) if not only or n in only or n == RING]
    for group in groups(names):
        built = build(capacity, queries, blocks, group, log)
        for operation, rates in speeds(built, blocks, options.repetitions, options.seconds).items():
            known = result.setdefault(operation, dict(rates))
            scale = known[RING] / rates[RING]
            known |= {n: r * scale for n, r in rates.items() if n not in known}
        built.clear()
    return result


def build(
    capacity: int, queries: np.ndarray, blocks: Any, only: list[str], log: Console
) -> dict[str, Any]:
    """The contenders, full."""
    built = {}
    for name, make in contenders(capacity, queries).items():
        if name not in only:
            continue
        size = ONCE.get(name, (1024,))[0]
        start = time.perf_counter()
        try:
            contender = make()
            room = min(capacity, 131_072) if name in ("SB3 x64", "SB3 x1024") else capacity
            room = min(room, PARTLY.get(name, room))
            for k in range(-(-room // size)):
                contender.push(blocks[size][k % len(blocks[size])])
            contender.sample()
        except Exception as error:
            log.print(f"left out {name}: {type(error).__name__}: {error}")
            continue
        built[name] = contender
        log.print(f"filled {name} in {time.perf_counter() - start:.1f} s")
    return built


def speeds(built: dict[str, Any], blocks: Any, repetitions: int, seconds: float) -> Any:
    """Thousands of transitions (pushes) or batches (samples) per second."""
    result: dict[str, dict[str, float]] = {}
    for size in (1, 64, 1024):
        able = {n: c for n, c in built.items() if size in ONCE.get(n, (1, 64, 1024))}
        calls = {n: pusher(c, blocks[size]) for n, c in able.items()}
        rates = interleaved(calls, repetitions, seconds)
        result[f"push {size}"] = {n: r * size / 1e3 for n, r in rates.items()}
    calls = {n: c.sample for n, c in built.items() if not n.startswith("SB3 x")}
    rates = interleaved(calls, repetitions, seconds)
    result[f"sample {BATCH}"] = {n: r / 1e3 for n, r in rates.items()}
    return result


def memory(names: list[str], capacity: int) -> dict[str, float]:
    """Resident MB of a full memory, each measured in a process of its own (Linux)."""
    sizes = {}
    for name in names:
        command = [sys.executable, __file__, "--capacity", str(capacity), "--memory-of", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            sizes[name] = float(done.stdout.split()[-1])
    return sizes


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def memory_of(name: str, capacity: int) -> float:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((4096, OBSERVATION), np.float32)
    make = contenders(capacity, centres)[name]
    size = ONCE.get(name, (1024,))[0]
    block = traffic(rng, size, centres)
    warm = contenders(2048, centres)[name]()  # what code and libraries need is not counted
    warm.push(block)
    warm.sample()
    before = resident()
    contender = make()
    for _ in range(-(-capacity // size)):
        contender.push(traffic(rng, size, centres) if size > 1 else block)
    contender.sample()
    return resident() - before


def filing(rng: np.random.Generator, centres: np.ndarray, repetitions: int) -> dict[str, float]:
    """Seconds to save and load 200k transitions."""
    names = ("LSER greedy", "packed ring", "SB3")
    built = {n: contenders(200_000, centres)[n]() for n in names}
    for name, contender in built.items():
        size = 1 if name == "SB3" else 1000
        block = traffic(rng, size, centres)
        for _ in range(200_000 // size):
            contender.push(traffic(rng, size, centres) if size > 1 else block)
    seconds: dict[str, list[float]] = {n: [] for n in names}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repetitions + 1):  # the first one warms up
            for name, contender in built.items():
                start = time.perf_counter()
                contender.save(Path(folder) / name)
                contender.load(Path(folder) / name)
                seconds[name].append(time.perf_counter() - start)
    return {n: median(s[1:]) for n, s in seconds.items()}


def growth(
    largest: int, repetitions: int, seconds: float, observation: int, action: int
) -> dict[int, dict[str, float]]:
    """Rates of LSER and the packed ring from 10^4 transitions on, as far as memory goes.

    Rewards rise, so that every row is stored at every size: a small memory full of the best would
    only drop, a large one would still store.
    """
    from lser.experiments.preflight import available_bytes, replay_bytes
    from lser.replay import LocalityReplay
    from replay_peers import Ours

    rng = np.random.default_rng(1)
    centres = rng.standard_normal((20_000, observation), np.float32)
    blocks = {n: [traffic(rng, n, centres) for _ in range(k)] for n, k in ((64, 200), (8192, 20))}
    result = {}
    capacity = 10_000
    while capacity <= largest:
        if 2 * replay_bytes(capacity, observation, action) > available_bytes():
            break
        replay = LocalityReplay(capacity, observation, action, bits=10, greedy=1)
        both = {"LSER": Ours(replay, centres), "ring": PackedRing(capacity, observation, action)}
        for contender in both.values():
            for k in range(-(-capacity // 8192)):
                contender.push(tuple(f[:capacity] for f in blocks[8192][k % 20]))
        pushes = interleaved(
            {n: rising(c, blocks[64]) for n, c in both.items()}, repetitions, seconds
        )
        draws = interleaved({n: c.sample for n, c in both.items()}, repetitions, seconds)
        result[capacity] = {f"{n} push 64": r * 64 / 1e3 for n, r in pushes.items()}
        result[capacity] |= {f"{n} sample {BATCH}": r / 1e3 for n, r in draws.items()}
        capacity *= 10
    return result


def slowdown(grown: dict[int, dict[str, float]], operation: str) -> float:
    """How many times as much as the ring LSER slows down from the smallest size to the largest."""
    first, last = grown[min(grown)], grown[max(grown)]
    ours, rings = (first[f"{n} {operation}"] / last[f"{n} {operation}"] for n in ("LSER", "ring"))
    return ours / rings


def fallback(seconds: float) -> dict[int, float]:
    """Milliseconds for a query without a bucket, by the number of occupied codes."""
    from lser.replay.index.index import BucketIndex, Rules

    rng = np.random.default_rng(2)
    times = {}
    for count in (1_000, 10_000, 100_000, 1_000_000):
        codes = rng.choice(2**32, 2 * count, replace=False).astype(np.uint32)
        buckets = BucketIndex(np.full(count, -1, np.int64), Rules())
        buckets.place(codes[:count], np.zeros(count, np.float32))
        turn = iter(range(count, sys.maxsize))
        ask = lambda b=buckets, c=codes, t=turn, n=count: b.pick(  # noqa: E731
            int(c[n + next(t) % n]), BATCH, 1.0
        )
        times[count] = 1e3 / max(rate(ask, seconds) for _ in range(5))
    return times


def import_seconds() -> dict[str, float]:
    """Warm import of `lser` and of `lser.replay`, less the start of Python; best of five."""

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    check = "import sys; assert 'torch' not in sys.modules, 'torch was imported'"
    codes = {"python": "pass", "lser": f"import lser; {check}", "lser.replay": "import lser.replay"}
    best = {name: min(run(code) for _ in range(5)) for name, code in codes.items()}
    return {name: best[name] - best["python"] for name in ("lser", "lser.replay")}


FIRST_USE = """
import numpy as np
from lser.replay import LocalityReplay
replay = LocalityReplay(10_000, 91, 27)
seen, none = np.ones((64, 91), np.float32), np.zeros(64, bool)
replay.extend(seen, np.ones((64, 27), np.float32), np.ones(64, np.float32), seen, none, none)
replay.sample(32, seen[0])
"""


def first_use_seconds() -> float:
    """Processor time of a process that makes, fills and samples the first LSER of a machine."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", FIRST_USE]
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        subprocess.run(command, check=True, env=environment, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def targets(r: dict[str, Any]) -> list[tuple[str, float, str, float, bool]]:
    """(what, measured, relation, wanted, reached) for everything that was measured."""
    rows: list[tuple[str, float, str, float, bool]] = []

    def want(what: str, value: float | None, relation: str, bound: float) -> None:
        if value is not None:
            good = value >= bound if relation == ">=" else value <= bound
            rows.append((what, value, relation, bound, good))

    def ratio(operation: str, name: str, other: str) -> float | None:
        s = r["speeds"][operation]
        return s[name] / s[other] if name in s and other in s else None

    draw = f"sample {BATCH}"
    want("push 1 / SB3", ratio("push 1", "LSER greedy", "SB3"), ">=", 1)
    want("push 1 / cpprb", ratio("push 1", "LSER greedy", "cpprb"), ">=", 5)
    want("push 64 / cpprb PER", ratio("push 64", "LSER greedy", "cpprb PER"), ">=", 0.65)
    want("push 64 / Tianshou", ratio("push 64", "LSER greedy", "Tianshou"), ">=", 5)
    uniform = [n for n in ("SB3", "TorchRL", "Tianshou", "cpprb") if n in r["speeds"][draw]]
    for name in ("LSER greedy", "LSER random", "LSER 20 bits"):
        fastest = max(uniform, key=lambda n: r["speeds"][draw][n], default="none")
        want(f"{name} sample / {fastest}, the fastest peer", ratio(draw, name, fastest), ">=", 3)
        want(f"{name} sample / packed ring", ratio(draw, name, "packed ring"), ">=", 0.8)
    payload = r["capacity"] * (2 * OBSERVATION + ACTION + 3) * 4 / 1e6
    if "LSER greedy" in r["memory"]:
        want("memory / payload", r["memory"]["LSER greedy"] / payload, "<=", 1.1)
    if "filing" in r:
        f = r["filing"]
        want("save + load of 200k / packed ring", f["LSER greedy"] / f["packed ring"], "<=", 3)
    sizes = sorted(r["growth"])
    if len(sizes) > 1:
        for operation in ("push 64", draw):
            what = f"slowdown of {operation}, {sizes[0]:,} to {sizes[-1]:,} / ring's"
            want(what, slowdown(r["growth"], operation), "<=", 1.5)
    s = r["speeds"][draw]
    others = [n for n in ("cpprb PER", "Tianshou PER") if n in s]
    if others and "lser per" in s:
        fastest = max(others, key=lambda n: s[n])
        want(f"PER sample + update / {fastest}", ratio(draw, "lser per", fastest), ">=", 1)
    for name in ("lser der", "lser ser", "lser her", "lser aer"):
        first, bound = (", at its first draw", 0.4) if name == "lser aer" else ("", 0.5)
        want(f"{name} sample / our uniform's{first}", ratio(draw, name, UNIFORM), ">=", bound)
    half = ratio(draw, "lser aer, 2.5 candidates", UNIFORM)
    if half is not None:  # 4 candidates fall to 1 over the first half of a training
        whole = 2 / (1 / half + 1)
        want("lser aer sample / our uniform's, over a training", whole, ">=", 0.5)
    want("fallback over 1,000,000 codes, ms", r["fallback_ms"][1_000_000], "<=", 2)
    want("import lser, s", r["import_s"]["lser"], "<=", 1)
    want("first use of LSER, s of processor time", r["first_use_s"], "<=", 10)
    return rows


def show(r: dict[str, Any]) -> None:
    """The result on stdout."""
    console = Console(width=120)
    table = Table(title=f"capacity {r['capacity']:,}, observation {OBSERVATION}, action {ACTION}")
    table.add_column("memory")
    for operation in r["speeds"]:
        unit = "k batches/s" if operation.startswith("sample") else "k transitions/s"
        table.add_column(f"{operation}\n{unit}", justify="right")
    table.add_column("resident\nMB", justify="right")
    names = list(dict.fromkeys(n for s in r["speeds"].values() for n in s))
    for name in names:
        cells = [f"{s[name]:,.1f}" if name in s else "-" for s in r["speeds"].values()]
        table.add_row(name, *cells, f"{r['memory'][name]:,.0f}" if name in r["memory"] else "-")
    console.print(table)
    verdict = Table(title="targets")
    for column in ("what", "measured", "wanted", ""):
        verdict.add_column(column)
    for what, value, relation, bound, good in r["targets"]:
        verdict.add_row(what, f"{value:.2f}", f"{relation} {bound:g}", "pass" if good else "FAIL")
    console.print(verdict)
    index = (
        f"With rows of {NARROW[0]} + {NARROW[1]} numbers, where the index weighs most, push 64 "
        f"slows down {r['slowdown_of_narrow_rows']:.2f} times as much as the ring."
    )
    for note in (*NOTES, index):
        console.print(note, style="dim")


def draw_figure(r: dict[str, Any], path: Path) -> None:
    """Bars per operation, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(r["speeds"]), figsize=(16, 8), constrained_layout=True)
    for axis, (operation, rates) in zip(axes, r["speeds"].items(), strict=True):
        names = sorted(rates, key=lambda n: rates[n])
        colours = ["#0072B2" if n.lower().startswith("lser") else "#999999" for n in names]
        bars = axis.barh(names, [rates[n] for n in names], color=colours)
        axis.bar_label(
            bars,
            [f"{rates[n]:,.0f}" if rates[n] >= 100 else f"{rates[n]:.3g}" for n in names],
            padding=2,
            fontsize=8,
        )
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter("")
        axis.set_xlim(min(rates.values()) / 2, max(rates.values()) * 4)
        unit = "thousand batches/s" if operation.startswith("sample") else "thousand transitions/s"
        axis.set(title=operation, xlabel=unit)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Replay memories at {r['capacity']:,} transitions (blue: this library)")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--growth-to", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each repetition")
    parser.add_argument("--quick", action="store_true", help="small memories, a minute or two")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_replay.json")
    parser.add_argument(
        "--only", nargs="+", help="just these memories, by their names in the table"
    )
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    capacity = options.capacity
    if options.quick:
        capacity, options.growth_to, options.repetitions = min(capacity, 50_000), 100_000, 3
        options.seconds = 0.03
    if options.memory_of:
        print(memory_of(options.memory_of, capacity))
        return
    log = Console(stderr=True)
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((4096, OBSERVATION), np.float32)
    blocks = {
        size: [traffic(rng, size, centres) for _ in range(count)]
        for size, count in ((1, 4096), (64, 256), (1024, 64))
    }
    result: dict[str, Any] = {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "versions": versions(),
        "capacity": capacity,
        "speeds": in_groups(capacity, centres, blocks, options.only, options, log),
    }
    log.print("memory, files, growth, fallback, import")
    sized = [n for n in MEASURED if n in result["speeds"]["push 64"] or n == "SB3"]
    result["memory"] = memory(sized if not options.quick else ["LSER greedy"], capacity)
    if not options.quick:
        result["filing"] = filing(rng, centres, 5)
    pace = options.growth_to, options.repetitions, options.seconds
    result["growth"] = growth(*pace, OBSERVATION, ACTION)
    result["growth_of_narrow_rows"] = growth(*pace, *NARROW)
    result["slowdown_of_narrow_rows"] = slowdown(result["growth_of_narrow_rows"], "push 64")
    result["fallback_ms"] = fallback(options.seconds)
    result["import_s"] = import_seconds()
    result["first_use_s"] = first_use_seconds()
    result["targets"] = targets(result)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    draw_figure(result, options.output.with_suffix(".svg"))
    show(result)


if __name__ == "__main__":
    main()
