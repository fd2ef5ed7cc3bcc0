"""End-to-end training speed on VirtualTaobao, beside Stable-Baselines3's DDPG and bare updates.

``python benchmarks/training.py`` prints a table and writes JSON. One update per environment step,
DDPG with [128, 128] and batches of 128 on both sides (ours with LSER and the paper's LayerNorm,
theirs with its uniform buffer), one process, one thread. Ours, theirs and `learn` alone on batches
drawn beforehand take turns, timed by processor time; ratios are medians over the turns. Asked for:
at least 2x Stable-Baselines3, and at most 1.2x the time of the bare updates.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import torch
from stable_baselines3 import DDPG
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv

from lser.experiments.build import Built, build
from lser.experiments.experiment import Experiment
from lser.simulators.virtual_taobao import Params as VirtualTaobao
from lser.simulators.virtual_taobao.weights import WeightsError
from lser.training import Progress, train

ROOT = Path(__file__).resolve().parents[1]
SPEED_TARGET, OVERHEAD_TARGET = 2.0, 1.2
CAPACITY, BATCH, HIDDEN = 100_000, 128, (128, 128)
WARM_UP = 1_000  # steps before the first turn: the memory fills, kernels compile

Runner = Callable[[int], None]  # does as many environment steps, or bare updates, more


def simulator() -> VirtualTaobao:
    """The released shoppers where their weights can be had, networks of the same shape else."""
    try:
        build(Experiment(simulator=VirtualTaobao(), users=1, capacity=1))
    except WeightsError:
        return VirtualTaobao(generated=True)
    return VirtualTaobao()


def ours(parts: Built, progress: Progress) -> Runner:
    """`lser.train` with LSER."""
    loop = train(parts.env, parts.agent, parts.replay, batch_size=BATCH, progress=progress)

    def run(steps: int) -> None:
        for _ in islice(loop, steps // parts.env.num_envs):
            pass

    return run


def theirs(params: VirtualTaobao, users: int) -> Runner:
    """Stable-Baselines3's DDPG with its own buffer on the same simulator."""
    env = DummyVecEnv([lambda: gym.make("lser/VirtualTaobao-v0", params=params)] * users)
    size = env.action_space.shape
    assert size is not None
    mean, sigma = torch.zeros(size).numpy(), torch.full(size, 0.02).numpy()
    model = DDPG(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        buffer_size=CAPACITY,
        learning_starts=BATCH,
        batch_size=BATCH,
        tau=0.001,
        train_freq=1,
        gradient_steps=users,
        action_noise=OrnsteinUhlenbeckActionNoise(mean, sigma),
        policy_kwargs={"net_arch": list(HIDDEN)},
        device="cpu",
        seed=0,
    )

    def run(steps: int) -> None:
        model.learn(steps, reset_num_timesteps=False)

    return run


def bare(parts: Built) -> Runner:
    """`learn` and nothing else."""
    queries, _ = parts.env.reset(seed=1)
    batches = cycle([parts.replay.sample(BATCH, query=queries[0]) for _ in range(32)])

    def run(steps: int) -> None:
        for batch in islice(batches, steps):
            parts.agent.learn(batch)

    return run


def measure(params: VirtualTaobao, users: int, steps: int, turns: int) -> dict[str, Any]:
    """Steps per second of all three with `users` side by side, and the two ratios."""
    experiment = Experiment(simulator=params, users=users, capacity=CAPACITY)
    parts, spare, progress = build(experiment), build(experiment), Progress()
    runners = {"ours": ours(parts, progress), "sb3": theirs(params, users)}
    ours(spare, Progress())(WARM_UP)  # something to learn from, with an agent of its own
    for runner in runners.values():
        runner(WARM_UP)
    runners["bare"] = bare(spare)
    before = dict(progress.times)
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(turns):
        for name in list(runners)[:: 1 if turn % 2 else -1]:
            start = time.process_time()
            runners[name](steps)
            seconds[name].append(time.process_time() - start)
    return summary(users, steps, seconds) | {
        "split": {part: progress.times[part] - before[part] for part in ("env", "replay", "learn")}
    }


def summary(users: int, steps: int, seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Rates, ratios and verdicts."""
    pairs = list(zip(seconds["ours"], seconds["sb3"], seconds["bare"], strict=True))
    speed = statistics.median(other / own for own, other, _ in pairs)
    overhead = statistics.median(own / updates for own, _, updates in pairs)
    return {
        "users": users,
        "steps_per_second": {
            name: steps / statistics.median(values) for name, values in seconds.items()
        },
        "speed": speed,
        "speed_met": speed >= SPEED_TARGET,
        "overhead": overhead,
        "overhead_met": overhead <= OVERHEAD_TARGET,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        "| users | lser, steps/s | SB3 | >= 2x | bare updates/s | time over bare, <= 1.2x |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate = row["steps_per_second"]
        met = {key: "met" if row[f"{key}_met"] else "MISSED" for key in ("speed", "overhead")}
        lines.append(
            f"| {row['users']} | {rate['ours']:,.0f} | {rate['sb3']:,.0f} "
            f"| {row['speed']:.2f}x {met['speed']} | {rate['bare']:,.0f} "
            f"| {row['overhead']:.2f}x {met['overhead']} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write; the exit code says whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=160, help="environment steps of one turn")
    parser.add_argument("--turns", type=int, default=25, help="the three alternate so often")
    parser.add_argument("--users", type=int, nargs="+", default=[8], help="served side by side")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_training.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    params = simulator()
    rows = [measure(params, users, options.steps, options.turns) for users in options.users]
    sys.stdout.write(table(rows) + "\n")
    weights = "generated" if params.generated else "released"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"weights": weights, "rows": rows}, indent=1) + "\n")
    return int(not all(row["speed_met"] and row["overhead_met"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
