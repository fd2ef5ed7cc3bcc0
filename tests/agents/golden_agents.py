"""Numbers of single agents frozen before the agents were rewritten for stacks.

``python tests/agents/golden_agents.py`` writes them anew: only when numbers are meant to move.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from agent_references import random_batch
from numpy.typing import NDArray

from lser.agents import DDPG, SAC, TD3

FILE = Path(__file__).with_name("golden_agents.npz")
LOW, HIGH = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, -1.0])
SMALL = (6, LOW, HIGH), {"hidden": (32, 24), "seed": 4}, 32
PAPER = (91, -np.ones(27), np.ones(27)), {"seed": 7}, 128
NORMALISED = (6, LOW, HIGH), {"hidden": (16,), "seed": 5, "normalise": True}, 16
UPDATES = 30


def course(make: Any, arguments: Any, knobs: Any, rows: int) -> dict[str, NDArray[Any]]:
    """What an agent does and becomes over UPDATES rounds of acting and learning."""
    agent = make(*arguments, **knobs)
    observations, actions = arguments[0], len(arguments[1])
    rng = np.random.default_rng(11)
    acted, errors, losses = [], [], []
    for seed in range(UPDATES):
        seen = rng.standard_normal((3, observations)).astype(np.float32)
        acted.append(agent.act(seen, explore=True))
        agent.end_sessions(np.arange(3) == seed % 3)
        learned = agent.learn(random_batch(rows, observations, actions, seed=seed))
        errors.append(learned.td_errors[::8])
        losses.append([learned.losses[name] for name in ("critic", "actor")])
    state = agent.state_dict()
    step = 1 if len(state["parameters"]) < 10_000 else 41
    return {
        "acted": np.stack(acted),
        "errors": np.stack(errors),
        "losses": np.array(losses),
        "parameters": np.asarray(state["parameters"])[::step],
        "targets": np.asarray(state["targets"])[::step],
    }


def courses() -> dict[str, NDArray[Any]]:
    """The courses of every agent and size, by name."""
    torch.set_num_threads(1)
    cases = {"small": SMALL, "paper": PAPER, "normalised": NORMALISED}
    return {
        f"{make.__name__}/{case}/{name}": values
        for make in (DDPG, TD3, SAC)
        for case, setting in cases.items()
        for name, values in course(make, *setting).items()
    }


if __name__ == "__main__":
    np.savez_compressed(FILE, **courses())
