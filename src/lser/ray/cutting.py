"""How a memory is cut into shards: which settings can be, and what each shard gets."""

from typing import Any

import numpy as np

from lser.replay.index.encoders import SimHash
from lser.replay.memories.codes import ENCODERS
from lser.replay.memories.params import LocalityParams
from lser.types import Int64

# options that a shard cannot follow by itself, with what each would need of the others
_REFUSED = {
    "unseen": ("drop", "the largest bucket of all shards"),
    "random_from": ("bucket", "draws from all shards"),
    "fill": ("repeat", "draws from all shards"),
    "sampling": ("locality", "draws from all shards"),
    "store": ("reward", "the oldest transition of all shards"),
    "order": ("reward", "whole sessions, whose steps lie in many shards"),
    "codes": ("simhash", "codes that spread over the shards"),
    "newest": (0, "the newest transitions of all shards"),
}


def check_can_be_cut(params: LocalityParams) -> None:
    """Refuse settings that a shard cannot follow by itself."""
    for name, (allowed, needs) in _REFUSED.items():
        value = getattr(params, name)
        if value != allowed:
            raise ValueError(f"{name}={value!r} needs {needs}: shards have {name}={allowed!r}")


def shared_encoder(encoder: Any, params: LocalityParams, observation_dim: int, seed: int) -> Any:
    """The encoder that all shards share: the one given, or that of the settings."""
    if encoder is None:
        if params.features != "raw":
            raise ValueError(
                f"features={params.features!r} needs statistics that all shards share: "
                "let a SimHash observe() some observations and pass it as encoder="
            )
        encoder = SimHash(observation_dim, bits=params.bits, seed=seed)
    if encoder.KIND not in ENCODERS or encoder.blind or not encoder.frozen:
        raise ValueError(f"encoder={encoder!r} must be a frozen SimHash or E2LSH")
    if encoder.observation_dim != observation_dim:
        raise ValueError(
            f"encoder is for {encoder.observation_dim} numbers, observation_dim={observation_dim}"
        )
    return encoder


def shares(capacity: int, shards: int) -> Int64:
    """The capacities of the shards, (shards,)."""
    share, rest = divmod(capacity, shards)
    return np.array([share + (shard < rest) for shard in range(shards)])


def seeds(seed: int, shards: int) -> list[int]:
    """The seeds of the shards, the first the memory's own."""
    others = [np.random.default_rng((seed, 4, shard)) for shard in range(1, shards)]
    return [seed, *(int(rng.integers(2**31)) for rng in others)]
