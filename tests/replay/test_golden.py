"""Batches of every memory and variant, frozen: a redesign must not move a single draw.

`python tests/replay/test_golden.py` writes the data anew, which only a deliberate change of a
memory's rule justifies. A transition is known by its serial number, its first action component.
"""

from pathlib import Path

import numpy as np
import pytest

from lser.replay import (
    E2LSH,
    AttentiveReplay,
    ConstantCode,
    DynamicReplay,
    HindsightReplay,
    LocalityReplay,
    PrioritizedReplay,
    RandomCode,
    SelectiveReplay,
    UniformReplay,
    load_replay,
)

DATA = Path(__file__).parents[1] / "golden" / "batches.npz"
OBSERVATION, ACTION, CAPACITY, ROUNDS, BATCH = 5, 2, 150, 120, 12

MEMORIES = {
    "uniform": (UniformReplay, {}),
    "per": (PrioritizedReplay, {"anneal": 60}),
    "der": (DynamicReplay, {"period": 3}),
    "der-uniform": (DynamicReplay, {"period": 3, "prioritized": False, "fragment": 4}),
    "aer": (AttentiveReplay, {"anneal": 80}),
    "aer-raw": (AttentiveReplay, {"features": "raw"}),
    "ser": (SelectiveReplay, {}),
    "ser-surprise": (SelectiveReplay, {"strategy": "surprise"}),
    "ser-reward": (SelectiveReplay, {"strategy": "reward"}),
    "ser-coverage": (SelectiveReplay, {"strategy": "coverage", "probes": 4}),
    "her": (HindsightReplay, {}),
    "her-balanced": (HindsightReplay, {"balanced": True}),
    "lser": (LocalityReplay, {"bits": 4}),
    "lser-bits-12": (LocalityReplay, {"bits": 12, "unseen": "evict"}),
    "lser-greedy-0": (LocalityReplay, {"bits": 3, "greedy": 0.0}),
    "lser-item": (LocalityReplay, {"bits": 3, "greedy": 0.5, "greedy_per": "item"}),
    "lser-memory": (LocalityReplay, {"bits": 3, "greedy": 0.5, "random_from": "memory"}),
    "lser-fill": (LocalityReplay, {"bits": 6, "greedy": 0.5, "fill": "uniform"}),
    "lser-return": (LocalityReplay, {"bits": 3, "order": "return", "discount": 0.9}),
    "lser-centred": (LocalityReplay, {"bits": 4, "features": "centred", "warmup": 100}),
    "lser-standardised": (LocalityReplay, {"bits": 4, "features": "standardised", "warmup": 100}),
    "lser-e2lsh": (LocalityReplay, {"encoder": lambda: E2LSH(OBSERVATION, functions=2, seed=3)}),
    "lser-p": (LocalityReplay, {"bits": 3, "store": "fifo"}),
    "lser-p-return": (LocalityReplay, {"bits": 3, "store": "fifo", "order": "return"}),
    "lser-s": (LocalityReplay, {"bits": 3, "sampling": "uniform"}),
    "reward-top": (LocalityReplay, {"encoder": ConstantCode}),
    "random-code": (LocalityReplay, {"encoder": lambda: RandomCode(bits=3, seed=1)}),
}


def build(name):
    kind, knobs = MEMORIES[name]
    made = {k: v() if callable(v) else v for k, v in knobs.items()}
    return kind(CAPACITY, OBSERVATION, ACTION, seed=7, **made)


def traffic(rng, first, size):
    """A block for any memory: the last component of an observation is a goal."""
    observation, following = rng.normal(0.3, 1.0, size=(2, size, OBSERVATION)).astype(np.float32)
    observation[:, -1] = rng.integers(1, 11, size) / 10
    following[:, -1] = rng.integers(1, 11, size) / 10
    action = rng.normal(size=(size, ACTION)).astype(np.float32)
    action[:, 0] = first + np.arange(size)
    reward = rng.integers(0, 11, size).astype(np.float32)
    return observation, action, reward, following, rng.random(size) < 0.1, rng.random(size) < 0.05


def life(name, tmp_path=None):
    """What a memory answers over a few hundred operations, saved and loaded half-way."""
    rng = np.random.default_rng(5)
    replay, serial = build(name), 0
    refused, drawn, weights, rewards, goals = [], [], [], [], []
    for turn in range(ROUNDS):
        block = traffic(rng, serial, int(rng.choice([1, 1, 3, 8, 20])))
        serial += len(block[2])
        refused.append(replay.extend(*block) < 0)
        for query in block[0][:2]:
            batch = replay.sample(BATCH, query)
            drawn.append(batch.action[:, 0].astype(np.int32))
            weights.append(batch.weights)
            rewards.append(batch.reward)
            goals.append(batch.observation[:, -1])
            replay.update(batch.ids, np.abs(rng.normal(size=BATCH)))
        if turn == ROUNDS // 2 and tmp_path is not None:
            replay.save(tmp_path / "memory")
            replay = load_replay(tmp_path / "memory")
        if turn == ROUNDS * 3 // 4:
            replay.stop_exploring()
    parts = {"refused": np.concatenate(refused), "drawn": np.stack(drawn)}
    parts["weights"] = np.stack(weights).astype(np.float32)
    parts["reward"] = np.stack(rewards).astype(np.float16)  # small whole numbers
    parts["goal"] = np.stack(goals).astype(np.float32)
    return parts


@pytest.mark.parametrize("name", MEMORIES)
def test_draws_are_those_of_the_frozen_data(name, tmp_path):
    golden = np.load(DATA)
    for part, found in life(name, tmp_path).items():
        expected = golden[f"{name}.{part}"]
        if part == "weights":
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=part)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=part)


if __name__ == "__main__":
    DATA.parent.mkdir(exist_ok=True)
    everything = {f"{m}.{part}": values for m in MEMORIES for part, values in life(m).items()}
    np.savez_compressed(DATA, **everything)
