"""RLlib's SAC with LSER beside RLlib's own buffers: processor time of an environment step.

``python benchmarks/rllib.py`` prints a table and writes JSON. In one process on one thread the
algorithms take turns on Bazaar, an update at each step, alike but for the buffer; the ratio is the
median over turns, and at least 1.15 of EpisodeReplayBuffer is asked for.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import gymnasium as gym
import ray
import torch
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

import lser  # noqa: F401  registers the simulators
from lser.adapters.rllib import TESTED, LserSACConfig

ROOT = Path(__file__).resolve().parents[1]
TARGET = 1.15
CAPACITY, BATCH, HIDDEN = 100_000, 128, [128, 128]
OWN = ("EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer")


def algorithm(buffer: str) -> Any:
    """SAC with a buffer of RLlib's, or with LSER."""
    config: Any = LserSACConfig() if buffer == "LSER" else SACConfig()
    if buffer == "LSER":
        config = config.replay("lser", capacity=CAPACITY)
    else:
        more = {"alpha": 0.6, "beta": 0.4} if buffer.startswith("Prior") else {}
        chosen = {"type": buffer, "capacity": CAPACITY, **more}
        config = config.training(replay_buffer_config=chosen)
    config = (
        config.environment("bazaar")
        .env_runners(num_env_runners=0, rollout_fragment_length=1)
        .training(
            train_batch_size_per_learner=BATCH, num_steps_sampled_before_learning_starts=BATCH
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=HIDDEN, head_fcnet_hiddens=[]))
        .debugging(seed=0, log_level="ERROR")
    )
    return config.build_algo()


def measure(steps: int, turns: int, warm_up: int) -> dict[str, list[float]]:
    """Processor milliseconds of a step, by buffer and turn."""
    trained = {buffer: algorithm(buffer) for buffer in (*OWN, "LSER")}
    for each in trained.values():
        for _ in range(warm_up):
            each.training_step()
    found: dict[str, list[float]] = {buffer: [] for buffer in trained}
    for turn in range(turns):
        order = list(trained.items())
        for buffer, each in order if turn % 2 else order[::-1]:
            begin = time.process_time()
            for _ in range(steps):
                each.training_step()
            found[buffer].append(1000 * (time.process_time() - begin) / steps)
    return found


def main() -> int:
    """Measure, print, write; the exit code says whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="environment steps of one turn")
    parser.add_argument("--turns", type=int, default=11, help="the buffers alternate so often")
    parser.add_argument("--warm-up", type=int, default=400, help="steps of each before its first")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_rllib.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    register_env("bazaar", lambda dials: gym.make("lser/Bazaar-v0", **dials))
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    took = measure(options.steps, options.turns, options.warm_up)
    ray.shutdown()
    lines = [
        "| buffer of RLlib's SAC | CPU ms a step | speed beside EpisodeReplayBuffer |",
        "|---|---|---|",
    ]
    rows: dict[str, Any] = {}
    for buffer, mine in took.items():
        pairs = zip(took[OWN[0]], mine, strict=True)
        ratio = statistics.median(theirs / ours for theirs, ours in pairs)
        rows[buffer] = {"milliseconds": mine, "ratio": ratio}
        lines.append(f"| {buffer} | {statistics.median(mine):.1f} | {ratio:.2f} |")
    met = rows["LSER"]["ratio"] >= TARGET
    lines.append(f"\nLSER at least {TARGET}: {'met' if met else 'MISSED'}")
    sys.stdout.write("\n".join(lines) + "\n")
    saved = {"ray": TESTED, "target": TARGET, "met": met, "buffers": rows}
    options.output.write_text(json.dumps(saved, indent=1) + "\n")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
