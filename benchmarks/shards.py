"""A sharded memory beside dm-reverb, and how evenly codes fill shards, up to 10^9 transitions.

``python benchmarks/shards.py`` prints tables and writes JSON. Speed: two shards on a local Ray
cluster and a Reverb server take turns; the ratios are medians over turns. Reverb 0.14 needs old
TensorFlow and NumPy, so it gets an environment of its own, ``.venv-reverb``, made on first use.
Balance: codes of real observations (Bazaar, and VirtualTaobao where its weights are) over 2 to 64
shards, by a mix of their bits and by their prefix; then traffic of 10^9 transitions of them.
"""

import argparse
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import gymnasium as gym
import numpy as np

import lser
from lser.ray.codes import even_salt, owners
from lser.replay import SimHash

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-reverb"
REVERB = ("dm-reverb==0.14.0", "tensorflow==2.15.1", "numpy==1.26.4")
WIDE, ACTED, CAPACITY, BATCH, BLOCK = 91, 27, 200_000, 128, 1024
SAMPLE = 10_000  # observations from which features and salt are fitted
TARGETS = {"push": 4.0, "sample": 1.0, "busiest": 1.2}


def reverb_python() -> Path:
    """The Python of ``.venv-reverb``; one process makes it, others wait."""
    python, done = FOLDER / "bin" / "python", FOLDER / ".installed"
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_file():
            venv.create(FOLDER, with_pip=True, clear=True)
            inside = os.environ | {"PIP_REQUIRE_VIRTUALENV": "1"}
            subprocess.run(
                [str(python), "-m", "pip", "install", "-q", *REVERB], check=True, env=inside
            )
            done.touch()
    return python


class Reverb:
    """A Reverb server and client in their own process."""

    def __init__(self) -> None:
        sizes = [str(n) for n in (WIDE, ACTED, CAPACITY, BATCH)]
        script = str(Path(__file__).with_name("shards_reverb.py"))
        quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        quiet.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            [str(reverb_python()), script, *sizes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=quiet,
        )
        self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("dm-reverb ended")
        return line

    def rate(self, what: str, count: int) -> float:
        """Let it push items, or sample batches; returns how many per second."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        return float(self._line())


def timed(count: int, work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def speed(turns: int) -> dict[str, Any]:
    """Rates of two shards, of one memory in this process, and of Reverb, by turn."""
    import ray

    from lser.ray.shards import ShardedReplay

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((500, WIDE))

    def block() -> tuple[Any, ...]:
        seen = centres[rng.integers(500, size=BLOCK)] + 0.3 * rng.standard_normal((BLOCK, WIDE))
        seen = seen.astype(np.float32)
        action = rng.uniform(-1, 1, (BLOCK, ACTED)).astype(np.float32)
        reward = rng.integers(0, 11, BLOCK).astype(np.float32)
        flags = np.zeros((2, BLOCK), np.bool_)
        return seen, action, reward, np.roll(seen, 1, 0), *flags

    blocks = [block() for _ in range(40)]
    queries = np.concatenate([b[0][:20] for b in blocks])
    ray.init(
        "local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=600 << 20,
    )
    from lser.ray.rooms import start_rooms

    sharded = ShardedReplay(
        CAPACITY, WIDE, ACTED, shards=2, bits=12, rooms=start_rooms(2, cpus=0.5)
    )
    local = lser.LocalityReplay(CAPACITY, WIDE, ACTED, bits=12)
    reverb = Reverb()

    def push_shards() -> None:
        for each in blocks:
            sharded.push(*each)
        sharded.flush()

    def push_local() -> None:
        for each in blocks:
            local.extend(*each)

    def sample_waiting() -> None:
        for query in queries[:100]:
            sharded.sample(BATCH, query)

    def sample_ahead() -> None:
        for _ in sharded.sample_many(BATCH, queries):
            pass

    def sample_local() -> None:
        for query in queries:
            local.sample(BATCH, query)

    items, many = len(blocks) * BLOCK, len(queries)
    plan: dict[str, Callable[[], float]] = {
        "push, two shards": lambda: timed(items, push_shards),
        "push, reverb": lambda: reverb.rate("push", items // 4),
        "push, one memory here": lambda: timed(items, push_local),
        "sample ahead, two shards": lambda: timed(many, sample_ahead),
        "sample ahead, reverb": lambda: reverb.rate("sample", many // 2),
        "sample and wait, two shards": lambda: timed(100, sample_waiting),
        "sample, one memory here": lambda: timed(many, sample_local),
    }
    push_shards(), push_local(), sample_ahead(), sample_local()
    rates: dict[str, list[float]] = {name: [] for name in plan}
    for turn in range(turns):
        order = list(plan.items())
        for name, work in order if turn % 2 else order[::-1]:
            rates[name].append(work())
    reverb.process.kill()
    reverb.process.wait()
    ray.shutdown()
    ratios = {
        "push": ratio(rates["push, two shards"], rates["push, reverb"]),
        "sample": ratio(rates["sample ahead, two shards"], rates["sample ahead, reverb"]),
    }
    return {"rates": rates, "ratios": ratios}


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def observations(name: str, steps: int, users: int = 1024) -> Any:
    """What users see under random recommendations, (steps * users, O)."""
    env = gym.make_vec(name, num_envs=users)
    seen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    found = [np.array(seen, np.float32)]
    for _ in range(steps - 1):
        seen, *_ = env.step(env.action_space.sample())
        found.append(np.array(seen, np.float32))
    return np.concatenate(found)


def balance(steps: int) -> dict[str, Any]:
    """The busiest shard over the mean, by platform, features, bits and number of shards."""
    platforms = ["lser/Bazaar-v0"]
    if os.environ.get("LSER_VIRTUAL_TAOBAO"):
        platforms.append("lser/VirtualTaobao-v0")
    found: dict[str, Any] = {}
    for name in platforms:
        seen = observations(name, steps)
        for features in ("raw", "standardised"):
            for bits in (10, 20):
                encoder = SimHash(seen.shape[1], bits=bits, features=features, warmup=10_000)
                if features != "raw":
                    encoder.observe(seen[:SAMPLE])
                sample = encoder.encode(seen[:SAMPLE])
                codes, counts = np.unique(encoder.encode(seen[SAMPLE:]), return_counts=True)
                label = f"{name.removeprefix('lser/')}, {features}, {bits} bits"
                found[label] = spread(codes, counts, sample, bits) | {
                    "day": day(codes, counts, even_salt(sample, 8), np.random.default_rng(0))
                }
    return found


def spread(codes: Any, counts: Any, sample: Any, bits: int) -> dict[str, Any]:
    """How codes fill shards: by salt 0, by the salt that suits a sample before them, by prefix."""
    total, row = int(counts.sum()), {}
    for shards in (2, 4, 8, 64):
        by_prefix = (codes.astype(np.int64) * shards) >> bits
        chosen = owners(codes, shards, even_salt(sample, shards))
        ways = (("mixed", owners(codes, shards)), ("chosen", chosen), ("prefix", by_prefix))
        for way, whose in ways:
            load = np.bincount(whose, counts, shards)
            row[f"{way} {shards}"] = float(load.max() / load.mean())
    return {
        "transitions": total,
        "codes": len(codes),
        "largest_bucket": float(counts.max() / total),
        "unseen": float((counts == 1).sum() / total),  # Good and Turing: mass of codes not met
        "busiest": row,
    }


def day(
    codes: Any, counts: Any, salt: int, rng: Any, shards: int = 8, parts: int = 100
) -> dict[str, Any]:
    """10^9 transitions of these codes into shards that hold 10^8 together."""
    arrivals, capacity = 10**9, 10**8 // shards
    share, whose = counts / counts.sum(), owners(codes, shards, salt)
    held, known = np.zeros(shards), np.zeros(len(codes), np.bool_)
    got, unseen = np.zeros(shards), 0
    full_at = np.full(shards, np.inf)
    for part in range(parts):
        came = rng.multinomial(arrivals // parts, share)
        new = ~known & (came > 0)
        late = new & (held[whose] >= capacity)  # a code that comes when its shard is full
        unseen += int(came[late].sum())
        known |= new & ~late
        load = np.bincount(whose, came, shards)
        got += load
        held = np.minimum(held + load, capacity)
        full_at = np.where((held >= capacity) & np.isinf(full_at), (part + 1) / parts, full_at)
    full = full_at[np.isfinite(full_at)]
    return {
        "busiest": float(got.max() / got.mean()),
        "idlest": float(got.min() / got.mean()),
        "first_full": float(full.min()) if len(full) else None,
        "last_full": float(full.max()) if len(full) == shards else None,
        "dropped_for_an_unseen_code": unseen / arrivals,
    }


def show(result: dict[str, Any]) -> str:
    lines = []
    if "speed" in result:
        lines += ["| per second | median | best |", "|---|---|---|"]
        for name, rates in result["speed"]["rates"].items():
            lines.append(f"| {name} | {statistics.median(rates):,.0f} | {max(rates):,.0f} |")
        for what, value in result["speed"]["ratios"].items():
            met = "met" if value >= TARGETS[what] else "MISSED"
            lines.append(f"\n{what} beside Reverb: {value:.2f}, >= {TARGETS[what]} {met}")
    for label, row in result.get("balance", {}).items():
        busiest = ", ".join(f"{way} {load:.2f}" for way, load in row["busiest"].items())
        lines.append(
            f"{label}: {row['codes']} codes, largest {row['largest_bucket']:.3f}; {busiest}"
        )
        lines.append(f"    10^9 transitions: {row['day']}")
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write; the exit code says whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9, help="the memories alternate so often")
    parser.add_argument("--steps", type=int, default=1000, help="of 1,024 users, for the balance")
    parser.add_argument("--only", choices=("speed", "balance"))
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_shards.json")
    options = parser.parse_args()
    result = json.loads(options.output.read_text()) if options.output.exists() else {}
    result["targets"] = TARGETS
    if options.only != "balance":
        result["speed"] = speed(options.turns)
    if options.only != "speed":
        result["balance"] = balance(options.steps)
    sys.stdout.write(show(result) + "\n")
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    ratios = result.get("speed", {}).get("ratios", {})
    even = [
        row["busiest"]["chosen 8"] <= TARGETS["busiest"]
        for label, row in result.get("balance", {}).items()
        if "standardised" in label
    ]
    return int(not (all(r >= TARGETS[what] for what, r in ratios.items()) and all(even)))


if __name__ == "__main__":
    sys.exit(main())
