"""Hindsight experience replay: a step that missed its goal still reached some other goal.

Andrychowicz et al. (2017), https://arxiv.org/abs/1707.01495, with reward thresholds as goals.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import State, check_count, check_fraction, check_sample
from lser.replay.checks import Float64, check_number
from lser.replay.compiled import kernel, prefetch
from lser.replay.links import Links, Tails, later, link, new_links
from lser.replay.packing import gather
from lser.replay.persistence import rng_from_state, rng_state, save
from lser.replay.reward_classes import RewardClasses, classify, new_classes
from lser.replay.sessions import stream_labels
from lser.replay.store import Store
from lser.types import Batch, Bool, Float32, Int64


class HindsightReplay:
    """A FIFO memory whose sampled copies get goals that their sessions went on to reach.

    A goal is a reward to reach in one step. Observations carry it as their last component, as
    goal times `goal_scale` (default: one over the largest goal). A sampled copy's reward is 1 where
    the stored reward reaches its goal, else 0. With probability `ratio` the copy first takes the
    largest goal reached by a random later step (or this one) of its session; a step that reached
    none leaves the copy's own goal. Stored data never changes.

    With ``balanced=True`` there are no goals: half of a batch has reward above zero, half has not.
    """

    KIND = "her"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        goals: Sequence[float] = tuple(range(1, 11)),
        goal_scale: float | None = None,
        ratio: float = 0.8,
        balanced: bool = False,
    ) -> None:
        self.goals = _check_goals(goals)
        if goal_scale is None:
            goal_scale = 1.0 / max(abs(goal) for goal in self.goals)
        self.goal_scale = check_number("goal_scale", goal_scale, low=0.0, above=True)
        self.ratio = check_fraction("ratio", ratio)
        self.balanced = balanced
        self._goals = np.array(self.goals, dtype=np.float32)
        self._shown = (np.array(self.goals) * self.goal_scale).astype(np.float32)
        self._store = Store(capacity, observation_dim, action_dim)
        self._links = new_links(1 if balanced else capacity)
        self._tails = Tails()
        self._classes = new_classes(capacity if balanced else 1)
        self._rng = np.random.default_rng(check_count("seed", seed, low=0))

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self._store.capacity

    def __len__(self) -> int:
        return len(self._store)

    def extend(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        streams: ArrayLike | None = None,
    ) -> Int64:
        """Add a block of N transitions over the oldest; returns their ids."""
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        labels = stream_labels(streams, len(rows))
        at = self._store.layout
        if not self.balanced:
            self._check_shown(rows[:, at.observation][:, -1])
        ids = self._store.append(rows)
        if self.balanced:
            slots = self._store.slots(ids)
            held = slots >= 0
            classify(self._classes, slots[held], rows[held, at.reward] > 0)
        else:
            ended = (rows[:, at.terminated] + rows[:, at.truncated]) > 0
            link(self._links, ids, self._tails.follow(labels, ids, ended))
        return ids

    def _check_shown(self, shown: Float32) -> None:
        near = np.abs(shown[:, None] - self._shown).min(axis=1, initial=np.inf)
        wrong = near > 1e-3 * np.abs(self._shown).max()
        if wrong.any():
            raise ValueError(
                f"observation's last component must be a goal times goal_scale, one of "
                f"{self._shown.tolist()}, got {shown[wrong][0]}"
            )

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions, relabelled (or balanced)."""
        size = check_sample(batch_size, len(self))
        if self.balanced:
            return self._store.batch(self._draw_balanced(size))
        slots = self._rng.integers(len(self), size=size)
        points = self._rng.random(2 * size)
        rows, flags, ids = self._store.blank(size)
        _replay(
            self._store.rows, self._store.ids, self._links.steps, self._links.length,
            self._goals, self._shown, slots, points, self.ratio,
            self._store.observation_dim, self._store.layout.reward, rows, flags, ids,
        )  # fmt: skip
        return self._store.wrap(rows, flags, ids)

    def _draw_balanced(self, size: int) -> Int64:
        without, above = self._classes.counts.tolist()
        hits = size // 2 if without and above else size if above else 0
        points = self._rng.random(size)
        slots = np.empty(size, dtype=np.int64)
        slots[:hits] = self._classes.members[1, (points[:hits] * above).astype(np.int64)]
        slots[hits:] = self._classes.members[0, (points[hits:] * without).astype(np.int64)]
        return slots

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: draws do not depend on TD errors."""

    def stop_exploring(self) -> None:
        """Nothing: no draw is reward-driven."""

    def stats(self) -> dict[str, float]:
        """How full it is, and how many sessions (or rewarded transitions) it holds."""
        own = {"sessions": float(self._links.free.size - self._links.unused[0])}
        if self.balanced:
            own = {"rewarded": float(self._classes.counts[1])}
        return {"size": float(len(self)), **own}

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        store = self._store.state()
        config: dict[str, object] = {
            "knobs": {
                "goals": list(self.goals),
                "goal_scale": self.goal_scale,
                "ratio": self.ratio,
                "balanced": self.balanced,
            },
            "store": store.config,
            "rng": rng_state(self._rng),
        }
        links = {f"links_{name}": array for name, array in self._links._asdict().items()}
        classes = {f"classes_{name}": array for name, array in self._classes._asdict().items()}
        return State(config, {**store.arrays, **links, **classes, "tails": self._tails.array()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config: Any = state.config
        arrays: Any = state.arrays
        store = Store.from_state(State(config["store"], arrays))
        replay = cls(store.capacity, store.observation_dim, store.action_dim, **config["knobs"])
        replay._store = store
        replay._links = Links(*(arrays[f"links_{name}"].copy() for name in Links._fields))
        classes = (arrays[f"classes_{name}"].copy() for name in RewardClasses._fields)
        replay._classes = RewardClasses(*classes)
        replay._tails.restore(arrays["tails"])
        replay._rng = rng_from_state(config["rng"])
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        save(path, self.KIND, self.state())


def _check_goals(goals: Sequence[float]) -> tuple[float, ...]:
    values = tuple(check_number("goals", goal) for goal in goals)
    rising = all(low < high for low, high in pairwise(values))
    if not values or not rising or not any(values):
        raise ValueError(f"goals must rise from one to the next and not be only 0, got {goals!r}")
    return values


@kernel
def _replay(
    kept: Float32,
    held: Int64,
    steps: Int64,
    length: Int64,
    goals: Float32,
    shown: Float32,
    slots: Int64,
    points: Float64,
    ratio: float,
    dim: int,
    gain: int,
    rows: Float32,
    flags: Bool,
    ids: Int64,
) -> None:
    """Gather `slots` (b,) and relabel the copies; `points` (2 b,) decide which, and by what step.

    `dim` is the width of an observation, `gain` the column of the reward.
    """
    count, width = len(slots), kept.shape[1]
    ahead = np.empty(count, np.int64)
    later(steps, length, slots, points[count:], ahead)
    for i in range(count):
        prefetch(kept, ahead[i] * width + gain)
    gather(kept, held, slots, rows, flags, ids)
    for i in range(count):
        goal = -1
        if points[i] < ratio:
            achieved = kept[ahead[i], gain]
            for j in range(len(goals)):
                goal += goals[j] <= achieved
        if goal < 0:
            own, goal = rows[i, dim - 1], 0
            for j in range(1, len(shown)):
                if abs(own - shown[j]) < abs(own - shown[goal]):
                    goal = j
        rows[i, dim - 1] = rows[i, gain + dim] = shown[goal]
        rows[i, gain] = np.float32(1.0) if rows[i, gain] >= goals[goal] else np.float32(0.0)
