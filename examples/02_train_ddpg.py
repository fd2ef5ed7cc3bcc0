"""Train an online recommender with DDPG and LSER, watching its click rate as it learns.

python examples/02_train_ddpg.py [steps]
"""

import sys
import time

import gymnasium as gym
import torch

import lser

torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

# Eight users at a time visit a shop of 1,000 items; an action ranks them for one user's page. The
# preset has the settings that work there: noise that explores, codes that fill in that time.
shop = lser.build(lser.preset("bazaar", "lser", "ddpg"))

# Any other memory fits in the same place; which one wins depends on the task and takes many seeds
# to tell: `lser compare lser uniform --on bazaar` does, with intervals.
env, agent, replay = shop.env, shop.agent, shop.replay

visitors = gym.make_vec("lser/Bazaar-v0", num_envs=100)  # never trained on
report, start = 0, time.perf_counter()

# `train` is a generator: it yields after every page shown, and the loop around it is yours.
for step in lser.train(env, agent, replay, updates_per_step=0.25, seed=0):
    if step.steps >= report:
        score = lser.evaluate(agent, visitors, sessions=300, seed=1_000)
        seconds = time.perf_counter() - start
        print(
            f"{step.steps:7,} pages, {step.sessions:6,} sessions, {seconds:4.0f} s: "
            f"CTR {score.metric:.3f} ± {score.metric_se:.3f}, "
            f"{score.length:.1f} pages a session"
        )
        report += max(1, steps // 8)
    if step.steps >= steps:
        break
