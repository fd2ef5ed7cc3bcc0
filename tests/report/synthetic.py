"""Made-up records with known effects, for every study the report draws."""

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lser.experiments.records import Record

LEVELS = {
    "lser": 0.9, "per": 0.74, "der": 0.7, "aer": 0.68, "ser": 0.66, "her": 0.72,
    "uniform": 0.7, "reward-top": 0.88, "random-code": 0.6, "lser-p": 0.82, "lser-s": 0.78,
}  # fmt: skip
METRICS = {"long-term-satisfaction": "quality", "interest-evolution": "quality"}


def record(
    study: str,
    label: str,
    seed: int,
    *,
    level: float,
    simulator: dict[str, Any] | None = None,
    memory: dict[str, Any] | None = None,
    agent: str = "ddpg",
    horizon: str = "continuing",
    capacity: int = 1_000_000,
    intervention: float | None = None,
    sessions: int = 15_000,
    points: int = 30,
    spread: float = 0.06,
    status: str = "done",
) -> Record:
    """One run whose curve rises to about ``level``; the seed's luck is shared by all arms."""
    simulator = simulator or {"name": "virtual-taobao"}
    memory = memory or {"name": label}
    luck = np.random.default_rng([7, seed]).normal()
    rng = np.random.default_rng(
        [seed, *zlib.crc32(repr((study, label, simulator, agent, horizon)).encode()).to_bytes(4)]
    )
    top = float(np.clip(level + spread * (0.6 * luck + 0.8 * rng.normal()), 0.02, 1.0))
    pace = sessions / 6 * math.exp(0.3 * rng.normal())
    curve = []
    for at in np.linspace(0, sessions, points + 1)[1:]:
        score = 0.05 + (top - 0.05) * (1 - math.exp(-at / pace)) + 0.015 * rng.normal()
        curve.append(line(int(at), float(np.clip(score, 0, 1))))
    times = {"env": 90.0, "replay": 20 + 60 * rng.random(), "learn": 180.0, "evaluate": 12.0}
    wall = sum(times.values()) + 8
    metric = METRICS.get(simulator["name"], "ctr")
    return Record(
        path=Path("runs"),
        experiment={
            "study": study, "label": label, "simulator": simulator, "memory": memory,
            "agent": {"name": agent, "discount": 0.99}, "users": 10, "sessions": sessions,
            "horizon": horizon, "batch_size": 128, "capacity": capacity, "seed": seed,
            "metric": metric, "intervention": intervention,
        },
        meta={
            "status": status,
            "versions": {"lser": "0.1.0", "numpy": "2.4.0"},
            "git_commit": "0123456789abcdef0123456789abcdef01234567",
            "machine": {"cpu": "an example", "cores": 2},
            "command": f"lser study {study} --seeds 5 --scale medium",
            "started": "2026-01-01T10:00:00+00:00",
            "finished": "2026-01-01T10:05:00+00:00",
            "error": "Traceback (most recent call last):\nValueError: <made up> & broken"
            if status == "failed" else None,
        },
        curve=curve,
        final={**line(sessions, top), "times": {**times, "wall": wall, "cpu": wall * 0.97}}
        if status == "done" else None,
    )  # fmt: skip


def line(sessions: int, score: float) -> dict[str, float]:
    """One evaluation."""
    return {
        "sessions": sessions, "steps": sessions * 8, "updates": sessions * 8 - 128,
        "metric": score, "metric_se": 0.01, "reward": 12 * score, "reward_se": 0.2,
        "length": 7.7, "length_se": 0.1, "wall_s": sessions / 50,
    }  # fmt: skip


def comparison(seeds: int = 5) -> list[Record]:
    """Every memory on every simulator of the paper; LSER leads on the first only."""
    memories = [name for name in LEVELS if name not in ("lser-p", "lser-s")]
    names = ("virtual-taobao", "long-term-satisfaction", "interest-evolution", "recogym")
    return [
        record(
            "comparison", memory, seed, simulator={"name": name},
            level=LEVELS[memory] if name == "virtual-taobao" else 0.55,
            sessions=15_000 if name == "virtual-taobao" else 1_000,
        )
        for name in names for memory in memories for seed in range(seeds)
    ]  # fmt: skip


def small_studies(seeds: int = 5) -> list[Record]:
    """The epsilon, ablation, hyperplane, horizon, agent and map studies."""
    found = []
    epsilon = {0.0: 0.7, 0.9: 0.9, 0.99: 0.87, 1.0: 0.46}
    bits = {2: 0.8, 4: 0.86, 6: 0.88, 8: 0.9, 10: 0.91, 14: 0.82, 18: 0.7, 24: 0.6}
    for seed in range(seeds):
        for greedy, level in epsilon.items():
            memory = {"name": "lser", "greedy": greedy}
            found.append(record("epsilon", f"greedy {greedy}", seed, level=level, memory=memory))
        memory = {"name": "lser", "greedy": 0.9}
        found.append(record("epsilon", "greedy 0.9, T_r 0.95", seed, level=0.91, memory=memory,
                            intervention=0.95))  # fmt: skip
        for count, level in bits.items():
            memory = {"name": "lser", "bits": count}
            found.append(record("hyperplanes", f"{count} bits", seed, level=level, memory=memory))
        for memory_name in ("lser", "lser-p", "lser-s"):
            for capacity in (10_000, 100_000, 1_000_000):
                label = f"{memory_name} @ 1e{round(math.log10(capacity))}"
                level = LEVELS[memory_name]
                found.append(record("ablation", label, seed, level=level, capacity=capacity,
                                    memory={"name": memory_name}))  # fmt: skip
        for memory_name in ("lser", "uniform", "reward-top"):
            found += _pairs(memory_name, seed)
    return found


def _pairs(name: str, seed: int) -> list[Record]:
    gain = {"lser": 0.2, "reward-top": 0.1}.get(name, 0.0)
    found = [
        record("horizon", f"{name} @ {horizon}", seed, level=0.1 + gain, memory={"name": name},
               horizon=horizon)
        for horizon in ("continuing", "session")
    ]  # fmt: skip
    found += [
        record("agents", f"{name} @ {agent}", seed, level=0.6 + gain, memory={"name": name},
               agent=agent)
        for agent in ("ddpg", "td3", "sac")
    ]  # fmt: skip
    for sparsity in (0.02, 0.1, 0.3):
        for dependence in (0.0, 0.5, 1.0):
            simulator = {"name": "bazaar", "sparsity": sparsity, "state_dependence": dependence}
            level = 0.5 + gain * (dependence - 0.3)
            found.append(record("bazaar-map", f"{name}, sparsity {sparsity}", seed, level=level,
                                simulator=simulator, memory={"name": name}))  # fmt: skip
    return found


def demo(seeds: int = 4) -> list[Record]:
    """LSER and uniform on Bazaar, as ``lser demo`` leaves them."""
    simulator = {"name": "bazaar", "sparsity": 0.05, "state_dependence": 0.5}
    return [
        record("demo", memory, seed, level=level, simulator=simulator, sessions=2000)
        for memory, level in (("lser", 0.6), ("uniform", 0.4))
        for seed in range(seeds)
    ]
