"""DDPG's update: equal to the autograd twin, masked, weighted."""

import numpy as np
import torch
from references import ReferenceDDPG, module_twin, random_batch

from lser.agents import DDPG

LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])


def agent(**knobs: float) -> DDPG:
    return DDPG(6, LOW, HIGH, hidden=(32, 24), seed=4, **knobs)  # type: ignore[arg-type]


def assert_same_network(ours: object, theirs: torch.nn.Module) -> None:
    twin = module_twin(ours)  # type: ignore[arg-type]
    for a, b in zip(twin.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-5)


def test_fifty_updates_equal_the_autograd_twin() -> None:
    fast = agent()
    twin = ReferenceDDPG(fast.actor, fast.critics[0], LOW, HIGH)
    for seed in range(50):
        batch = random_batch(32, 6, 3, seed=seed)
        learned = fast.learn(batch)
        errors = twin.learn(batch).numpy()
        np.testing.assert_allclose(learned.td_errors, errors, rtol=1e-3, atol=1e-4)
    assert_same_network(fast.actor, twin.actor)
    assert_same_network(fast.critics[0], twin.critic)
    assert_same_network(fast.target_actor, twin.target_actor)
    assert_same_network(fast.target_critics[0], twin.target_critic)
