"""Small environments and buffers for the tests of Tianshou's adapter."""

from functools import partial

import numpy as np
from counting import WIDTH, Counting
from tianshou.algorithm import DDPG
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch
from tianshou.env import DummyVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousCritic

from lser.adapters.tianshou import MemoryReplayBuffer
from lser.catalogue import MEMORIES

WITH_ROWS = {"aer", "der", "der-uniform", "her"}


OFFERED = [*sorted(set(MEMORIES) - WITH_ROWS), "toy_memory:NewestReplay"]


def steps(n=1, seed=0):
    """One transition of each of `n` environments."""
    rng = np.random.default_rng(seed)
    terminated, truncated = rng.random((2, n)) < 0.2
    return Batch(
        obs=rng.normal(size=(n, WIDTH)).astype(np.float32),
        act=rng.uniform(-1, 1, (n, 2)).astype(np.float32),
        rew=rng.normal(size=n).astype(np.float32).astype(float),
        obs_next=rng.normal(size=(n, WIDTH)).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        info=Batch(note=rng.integers(1000, size=n)),
    )


def filled(memory="lser", n=2, blocks=30, size=1000, **knobs):
    knobs = {"bits": 4, **knobs} if memory == "lser" else knobs
    buffer = MemoryReplayBuffer(memory, size, n, **knobs)
    for seed in range(blocks):
        buffer.add(steps(n, seed))
    return buffer


def algorithm(env, **options):
    seen, action = env.observation_space.shape, env.action_space.shape
    actor = ContinuousActorDeterministic(
        preprocess_net=Net(state_shape=seen, hidden_sizes=[32]),
        action_shape=action,
        hidden_sizes=[32],
    )
    both = Net(state_shape=seen, action_shape=action, hidden_sizes=[32], concat=True)
    policy = ContinuousDeterministicPolicy(
        actor=actor, action_space=env.action_space, exploration_noise=GaussianNoise(sigma=0.3)
    )
    return DDPG(
        policy=policy,
        policy_optim=AdamOptimizerFactory(lr=1e-3),
        critic=ContinuousCritic(preprocess_net=both, hidden_sizes=[32]),
        critic_optim=AdamOptimizerFactory(lr=1e-3),
        **{"gamma": 0.9, "tau": 0.01, **options},
    )


def counting(*bases, **ends):
    return DummyVectorEnv([partial(Counting, base=base, **ends) for base in bases])
