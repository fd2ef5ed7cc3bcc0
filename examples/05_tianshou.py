"""LSER inside Tianshou: another buffer in your collector, the trainer as it was.

pip install -e '.[tianshou]'; python examples/05_tianshou.py [steps]
"""

import sys
from functools import partial

import gymnasium as gym
import torch
from tianshou.algorithm.modelfree.ddpg import DDPG, ContinuousDeterministicPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector
from tianshou.env import DummyVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousCritic

import lser  # noqa: F401  registers the simulators
from lser.adapters.tianshou import MemoryReplayBuffer, QueryCollector

torch.set_num_threads(1)
torch.manual_seed(0)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
dials = {"items": 200, "slate": 5, "features": 4, "demographics": (2, 4), "sparsity": 0.05}
make = partial(gym.make, "lser/Bazaar-v0", **dials)
space, seen = make().action_space, make().observation_space.shape
net, adam = partial(Net, state_shape=seen, hidden_sizes=[64, 64]), AdamOptimizerFactory(lr=1e-3)
actor = ContinuousActorDeterministic(preprocess_net=net(), action_shape=space.shape)
critic = ContinuousCritic(preprocess_net=net(action_shape=space.shape, concat=True))
noise = GaussianNoise(sigma=0.3)
policy = ContinuousDeterministicPolicy(actor=actor, action_space=space, exploration_noise=noise)
ddpg = DDPG(policy=policy, policy_optim=adam, critic=critic, critic_optim=adam, gamma=0.9, tau=0.01)

users = DummyVectorEnv([make] * 4)
buffer = MemoryReplayBuffer("lser-steady", 100_000, buffer_num=4, bits=6, greedy=0.5)
collector = QueryCollector(ddpg, users, buffer, exploration_noise=True)  # asks for whom we serve
collector.reset()
collector.collect(n_step=100, random=True)
plan = {"max_epochs": 1, "epoch_num_steps": steps, "collection_step_num_env_steps": 4}
quiet = {"verbose": False, "show_progress": False}
ddpg.run_training(OffPolicyTrainerParams(training_collector=collector, **plan, **quiet))
test = Collector(ddpg, DummyVectorEnv([make] * 4))
test.reset()
print(f"clicks per session after {steps:,} pages: {test.collect(n_episode=100).returns.mean():.2f}")
