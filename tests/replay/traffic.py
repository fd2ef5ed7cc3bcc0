"""Blocks of transitions for tests, and a look at what a locality memory holds."""

import numpy as np


def block_of(rng, n, observation_dim=3, action_dim=2, rewards=None):
    """Random transitions: observations and rewards from few values, so that codes and ties meet."""
    reward = rng.integers(-1, 3, n) / 2 if rewards is None else np.asarray(rewards)
    return (
        rng.integers(-2, 3, (n, observation_dim)).astype(np.float32),
        rng.normal(size=(n, action_dim)).astype(np.float32),
        reward.astype(np.float32),
        rng.normal(size=(n, observation_dim)).astype(np.float32),
        rng.random(n) < 0.1,
        rng.random(n) < 0.1,
    )


def contents_of(replay):
    """What a `LocalityReplay` holds: by code, ids with their packed rows in order."""
    arrays = replay.state().arrays
    rows, ids = arrays["rows"], arrays["ids"]
    held, at = {}, 0
    for code, size in zip(arrays["codes"].tolist(), arrays["sizes"].tolist(), strict=True):
        slots, keys = arrays["slots"][at : at + size], arrays["keys"][at : at + size]
        order = np.lexsort((ids[slots], keys))
        held[code] = [(int(ids[s]), tuple(rows[s].tolist())) for s in slots[order]]
        at += size
    return held


def same_batch(a, b):
    """Whether two batches are equal in every field."""
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
