"""What the settings of LSER stand for: an encoder, and the rules of the index."""

from typing import Any

from lser.replay.index.controls import ConstantCode, RandomCode, ShuffledCode
from lser.replay.index.encoders import E2LSH, Encoder, SimHash
from lser.replay.index.index import Rules
from lser.replay.memories.params import LocalityParams

ENCODERS: dict[str, Any] = {
    e.KIND: e for e in (SimHash, E2LSH, ConstantCode, RandomCode, ShuffledCode)
}


def encoder_for(p: LocalityParams, observation_dim: int, seed: int) -> Encoder:
    """The encoder that `codes`, `bits` and `features` describe."""
    match p.codes:
        case "constant":
            return ConstantCode()
        case "random":
            return RandomCode(bits=p.bits, seed=seed)
    hashed = SimHash(observation_dim, bits=p.bits, seed=seed, features=p.features, warmup=p.warmup)
    return ShuffledCode(hashed, seed=seed) if p.codes == "shuffled" else hashed


def check_encoder(encoder: Any, observation_dim: int) -> None:
    """Refuse what is no encoder, or one of other observations: it would read beyond the rows."""
    parts = ("blind", "frozen", "encode_rows", "observe", "state")
    if isinstance(encoder, type) or not all(hasattr(encoder, part) for part in parts):
        raise ValueError(f"encoder must be an Encoder such as SimHash(...), got {encoder!r}")
    reads = getattr(getattr(encoder, "hashed", encoder), "observation_dim", observation_dim)
    if reads != observation_dim:
        raise ValueError(
            f"encoder has observation_dim={reads}, the memory has observation_dim={observation_dim}"
        )


def rules_for(p: LocalityParams) -> Rules:
    """What the index reads of the settings."""
    return Rules(
        fifo=p.store == "fifo",
        evict=p.unseen == "evict",
        rekeyed=p.order == "return",
        per_item=p.greedy_per == "item",
        from_memory=p.random_from == "memory",
        repeat=p.fill == "repeat",
        uniform=p.sampling == "uniform",
    )
