"""VirtualTaobao's numbers, from the torch stand-in with generated networks.

The released weights are not ours to copy into this repository; generated ones of the same shape
test the same arithmetic and the same draws.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lser.simulators.virtual_taobao.simulator import ACTION, FEATURES, USER
from lser.simulators.virtual_taobao.weights import generated_networks
from parity.golden.files import Array, save_arrays
from parity.virtual_taobao import Session, StandIn, ctr, sessions_of

USERS, SESSIONS, ROWS = 4_000, 300, 12
SEED = 0  # of the generated networks: the simulator's own default


def tensors(layers: Any) -> dict[str, torch.Tensor]:
    """A stack of layers as the release names its tensors."""
    found = {}
    for index, layer in enumerate(layers):
        found[f"{2 * index}.weight"] = torch.from_numpy(layer.weight.T.copy())
        found[f"{2 * index}.bias"] = torch.from_numpy(layer.bias)
    return found


def _rows(env: StandIn, rng: np.random.Generator) -> dict[str, Array]:
    """Inputs of the three networks and what torch makes of them."""
    noise = rng.random((ROWS, 128), np.float32)
    chosen = [[np.eye(size)[rng.integers(size)] for size in FEATURES] for _ in range(ROWS)]
    user = np.array([np.concatenate(row) for row in chosen], np.float32)
    page = rng.integers(20, size=ROWS).astype(np.float32)
    action = rng.uniform(-1, 1, (ROWS, ACTION)).astype(np.float32)
    inputs = (noise, user, np.concatenate((user, page[:, None], action), axis=1))
    outputs = [
        network(torch.from_numpy(rows)).detach()
        for network, rows in zip(env.networks, inputs, strict=True)
    ]
    clicks = torch.softmax(outputs[2][:, :11].double(), dim=1) @ torch.arange(11.0).double()
    return {
        "generator_input": noise,
        "user": user.astype(np.float32),
        "page": page,
        "action": action,
        "generator_logits": outputs[0].numpy(),
        "leave_logits": outputs[1].numpy(),
        "click_logits": outputs[2].numpy(),
        "expected_clicks": clicks.numpy(),
    }


def _arrivals(env: StandIn) -> dict[str, Array]:
    lengths, features = np.zeros(101), np.zeros(USER)
    for _ in range(USERS):
        env.reset()
        lengths[max(env.leave_page, 1)] += 1
        features += env.user
    return {
        "session_length_hist": lengths / USERS,
        "user_feature_mean": features / USERS,
        "users": np.array(USERS),
    }


def record(folder: Path) -> list[Path]:
    """Record the stand-in."""
    torch.manual_seed(14)
    torch.set_num_threads(1)
    rng = np.random.default_rng(15)
    env = StandIn([tensors(layers) for layers in generated_networks(SEED)])

    def score(act: Callable[[], Array]) -> tuple[float, float]:
        sessions: list[Session] = sessions_of(env, SESSIONS, act)
        return ctr(sessions)

    constant = rng.uniform(-1, 1, (2, ACTION)).astype(np.float32)
    with torch.no_grad():
        table = _rows(env, rng) | _arrivals(env)
        table["ctr_uniform_action"] = np.array(
            score(lambda: rng.uniform(-1, 1, ACTION).astype(np.float32))
        )
        table["ctr_zero_action"] = np.array(score(lambda: np.zeros(ACTION, np.float32)))
        table["constant_actions"] = constant
        table["ctr_constant_actions"] = np.array([score(action.copy) for action in constant])
    return [save_arrays(folder / "virtual_taobao.npz", table)]
