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

# Eight users at a time visit a shop of 1,000 items; an action ranks them for one user's page.
env = gym.make_vec("lser/Bazaar-v0", num_envs=8)
observation_dim, actions = env.single_observation_space.shape[0], env.single_action_space
agent = lser.DDPG(observation_dim, actions, noise_scale=0.3, seed=0)

# Any other memory fits in the same place; which one wins depends on the task and takes many seeds
# to tell: `lser study` compares them with intervals.
replay = lser.LocalityReplay(100_000, observation_dim, actions.shape[0], bits=10, greedy=0.9)

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
