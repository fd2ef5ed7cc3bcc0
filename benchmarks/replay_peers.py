"""The memories that `benchmarks/replay.py` compares, behind one small interface.

A contender is built for a capacity, takes blocks of transitions as NumPy arrays, and draws 128 in
whatever form its library returns. Peers that cannot be imported are left out and said so.
"""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

OBSERVATION, ACTION, BATCH = 91, 27, 128
Block = tuple[np.ndarray, ...]


class PackedRing:
    """A NumPy ring with one packed row per transition; a draw returns views of one gather."""

    def __init__(self, capacity: int, observation: int = OBSERVATION, action: int = ACTION):
        self.o, self.a, self.size, self.at = observation, action, capacity, 0
        self.rows = np.zeros((capacity, 2 * observation + action + 3), np.float32)
        self.rng = np.random.default_rng(0)

    def push(self, block: Block) -> None:
        """Store a block."""
        s, a, r, t, ends, cut = block
        n, o, d = len(r), self.o, self.o + self.a
        if self.at + n > self.size:
            self.at = 0
        rows = self.rows[self.at : self.at + n]
        rows[:, :o], rows[:, o:d], rows[:, d] = s, a, r
        rows[:, d + 1 : -2], rows[:, -2], rows[:, -1] = t, ends, cut
        self.at += n

    def sample(self) -> Any:
        """Draw 128."""
        rows = self.rows[self.rng.integers(0, self.size, BATCH)]
        d = self.o + self.a
        views = rows[:, : self.o], rows[:, self.o : d], rows[:, d], rows[:, d + 1 : -2]
        return *views, rows[:, -2], rows[:, -1]

    def save(self, path: Path) -> None:
        """Write a file."""
        np.save(path, self.rows)

    def load(self, path: Path) -> Any:
        """Read it back."""
        return np.load(f"{path}.npy")


class ArrayRing:
    """A NumPy ring with an array per field."""

    def __init__(self, capacity: int):
        shapes = ((OBSERVATION,), (ACTION,), (), (OBSERVATION,))
        self.fields = [np.zeros((capacity, *s), np.float32) for s in shapes]
        self.fields += [np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)]
        self.size, self.at, self.rng = capacity, 0, np.random.default_rng(0)

    def push(self, block: Block) -> None:
        """Store a block."""
        n = len(block[0])
        if self.at + n > self.size:
            self.at = 0
        for field, values in zip(self.fields, block, strict=True):
            field[self.at : self.at + n] = values
        self.at += n

    def sample(self) -> Any:
        """Draw 128."""
        picks = self.rng.integers(0, self.size, BATCH)
        return [field[picks] for field in self.fields]


class Ours:
    """One of this library's memories."""

    def __init__(self, replay: Any, queries: np.ndarray, update: bool = False):
        self.replay, self.queries, self.turn, self.update = replay, queries, 0, update
        self.errors = np.random.default_rng(0).standard_normal(BATCH)

    def push(self, block: Block) -> None:
        """Store a block."""
        self.replay.extend(*block)

    def sample(self) -> Any:
        """Draw 128."""
        self.turn = (self.turn + 1) % len(self.queries)
        batch = self.replay.sample(BATCH, self.queries[self.turn])
        if self.update:
            self.replay.update(batch.ids, self.errors)
        return batch

    def save(self, path: Path) -> None:
        """Write a file."""
        self.replay.save(path)

    def load(self, path: Path) -> Any:
        """Read it back."""
        from lser.replay import load_replay

        return load_replay(path)


class Aiming(Ours):
    """Hindsight replay: observations end in the goal, here always the highest."""

    def push(self, block: Block) -> None:
        """Store a block, aimed at the highest goal."""
        observation, following = block[0].copy(), block[3].copy()
        observation[:, -1] = following[:, -1] = 1.0
        self.replay.extend(observation, *block[1:3], following, *block[4:])


class StableBaselines3:
    """Its buffer writes one transition of each of n_envs, so a block needs a buffer of its own."""

    def __init__(self, capacity: int, envs: int = 1):
        from gymnasium.spaces import Box
        from stable_baselines3.common.buffers import ReplayBuffer

        spaces = (Box(-9, 9, (OBSERVATION,)), Box(-9, 9, (ACTION,)))
        self.buffer = ReplayBuffer(capacity, *spaces, device="cpu", n_envs=envs)
        self.infos: list[dict[str, Any]] = [{} for _ in range(envs)]

    def push(self, block: Block) -> None:
        """Store a block."""
        s, a, r, t, ends, _ = block
        self.buffer.add(s, t, a, r, ends, self.infos)

    def sample(self) -> Any:
        """Draw 128."""
        return self.buffer.sample(BATCH)

    def save(self, path: Path) -> None:
        """Write a file."""
        from stable_baselines3.common.save_util import save_to_pkl

        save_to_pkl(path, self.buffer)

    def load(self, path: Path) -> Any:
        """Read it back."""
        from stable_baselines3.common.save_util import load_from_pkl

        return load_from_pkl(path)


class TorchRL:
    """TensorDictReplayBuffer on tensors in memory."""

    def __init__(self, capacity: int):
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

        self.buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=BATCH)

    def push(self, block: Block) -> None:
        """Store a block."""
        import torch
        from tensordict import TensorDict

        names = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
        fields = {n: torch.from_numpy(f) for n, f in zip(names, block, strict=True)}
        self.buffer.extend(TensorDict(fields, batch_size=[len(block[0])]))

    def sample(self) -> Any:
        """Draw 128."""
        return self.buffer.sample()


class Tianshou:
    """Its buffer adds one transition at a time."""

    def __init__(self, capacity: int, prioritized: bool = False):
        from tianshou.data import PrioritizedReplayBuffer, ReplayBuffer

        self.prioritized = prioritized
        self.buffer = (
            PrioritizedReplayBuffer(capacity, alpha=0.6, beta=0.4)
            if prioritized
            else ReplayBuffer(capacity)
        )
        self.errors = np.random.default_rng(0).standard_normal(BATCH)

    def push(self, block: Block) -> None:
        """Store a block."""
        from tianshou.data import Batch

        names = ("obs", "act", "rew", "obs_next", "terminated", "truncated")
        for k in range(len(block[0])):
            row = {name: field[k] for name, field in zip(names, block, strict=True)}
            self.buffer.add(Batch(**row, info={}))

    def sample(self) -> Any:
        """Draw 128."""
        batch, picks = self.buffer.sample(BATCH)
        if self.prioritized:
            self.buffer.update_weight(picks, self.errors)
        return batch


class Cpprb:
    """C++ ring, with or without priorities."""

    def __init__(self, capacity: int, prioritized: bool = False):
        import cpprb

        fields = {
            "obs": {"shape": OBSERVATION},
            "act": {"shape": ACTION},
            "rew": {},
            "next_obs": {"shape": OBSERVATION},
            "done": {},
            "cut": {},
        }
        kind = cpprb.PrioritizedReplayBuffer if prioritized else cpprb.ReplayBuffer
        self.buffer, self.prioritized = kind(capacity, fields), prioritized
        self.errors = np.abs(np.random.default_rng(0).standard_normal(BATCH))

    def push(self, block: Block) -> None:
        """Store a block."""
        s, a, r, t, ends, cut = block
        self.buffer.add(obs=s, act=a, rew=r, next_obs=t, done=ends, cut=cut)

    def sample(self) -> Any:
        """Draw 128."""
        batch = self.buffer.sample(BATCH)
        if self.prioritized:
            self.buffer.update_priorities(batch["indexes"], self.errors)
        return batch


def contenders(capacity: int, queries: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Builders by name; those of this library's memories included."""
    from lser.catalogue import MEMORIES
    from lser.replay import LocalityReplay

    def make(kind: str, **knobs: Any) -> Any:
        return MEMORIES[kind].load()(capacity, OBSERVATION, ACTION, **knobs)

    def ours(kind: str) -> Ours:
        return Ours(make(kind), queries, update=kind == "per")

    def attentive(candidates: float) -> Ours:  # an annealing so slow that the number stays
        return Ours(make("aer", candidates=candidates, anneal=10**12), queries)

    def lser(**knobs: Any) -> Ours:
        return Ours(LocalityReplay(capacity, OBSERVATION, ACTION, **knobs), queries)

    builders: dict[str, Callable[[], Any]] = {
        "LSER greedy": lambda: lser(greedy=1),
        "LSER random": lambda: lser(greedy=0),
        "LSER 20 bits": lambda: lser(greedy=1, bits=20),
        "packed ring": lambda: PackedRing(capacity),
        "five arrays": lambda: ArrayRing(capacity),
        "SB3": lambda: StableBaselines3(capacity),
        "SB3 x64": lambda: StableBaselines3(min(capacity, 131_072), 64),
        "SB3 x1024": lambda: StableBaselines3(min(capacity, 131_072), 1024),
        "TorchRL": lambda: TorchRL(capacity),
        "Tianshou": lambda: Tianshou(capacity),
        "Tianshou PER": lambda: Tianshou(capacity, True),
        "cpprb": lambda: Cpprb(capacity),
        "cpprb PER": lambda: Cpprb(capacity, True),
    }
    for kind in ("uniform", "per", "der", "ser"):
        builders[f"lser {kind}"] = lambda kind=kind: ours(kind)
    builders["lser aer"] = lambda: attentive(4.0)
    builders["lser aer, 2.5 candidates"] = lambda: attentive(2.5)
    builders["lser her"] = lambda: Aiming(make("her"), queries)
    return builders


def versions() -> dict[str, str]:
    """Installed versions of the peers."""
    found = {}
    for name in ("numpy", "numba", "stable-baselines3", "torchrl", "tianshou", "cpprb", "torch"):
        try:
            found[name] = version(name)
        except ImportError:
            found[name] = "not installed"
    return found
