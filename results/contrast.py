"""How much contrast LSER's batches have as its memory grows: ``python results/contrast.py``.

Trains on VirtualTaobao with a seed that no study reports, and writes ``results/contrast.json``: for
each stretch of sessions the share of batches in which all rewards are equal, and the CTR after it.
"""

import argparse
import json
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import lser
from lser.types import Batch

SEED = 1_000_000
USERS = 8


class Watched(lser.LocalityReplay):
    """Keeps, of every batch, whether its rewards are all equal."""

    def sample(self, batch_size: int, query: object = None) -> Batch:
        """Draw, and look."""
        batch = super().sample(batch_size, query)  # type: ignore[arg-type]
        self.single.append(bool(np.ptp(batch.reward) == 0))
        return batch


def main() -> None:
    """Train, and report at every stretch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=15_000)
    parser.add_argument("--every", type=int, default=1_500)
    options = parser.parse_args()
    env = gym.make_vec("lser/VirtualTaobao-v0", num_envs=USERS)
    judge = gym.make_vec("lser/VirtualTaobao-v0", num_envs=100)
    seen, actions = env.single_observation_space.shape[0], env.single_action_space
    agent = lser.DDPG(seen, actions, seed=SEED)
    replay = Watched(1_000_000, seen, actions.shape[0], seed=SEED)
    replay.single = []
    lines, due = [], options.every
    for step in lser.train(env, agent, replay, seed=SEED):
        if step.sessions < due:
            continue
        score = lser.evaluate(agent, judge, sessions=100, seed=SEED).metric
        share = float(np.mean(replay.single))
        lines.append({"sessions": step.sessions, "single_reward_share": share, "ctr": score})
        print(f"{step.sessions:,} sessions: {share:.2f} single, CTR {score:.3f}", file=sys.stderr)
        replay.single.clear()
        due += options.every
        if due > options.sessions:
            break
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps(lines, indent=1) + "\n")
    print(target)


if __name__ == "__main__":
    main()
