"""Hindsight experience replay: transitions come back with goals that their sessions reached.

Andrychowicz et al. (2017), "Hindsight Experience Replay", https://arxiv.org/abs/1707.01495.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.replay.generator import NO_INTEGERS, address_of, draw_numbers
from lser.replay.memories.links import (
    FOLLOWING,
    HELD,
    RECORD,
    STEP,
    Links,
    RewardClasses,
    classify,
    first_without_goal,
    link,
    new_classes,
    new_links,
    relabel,
)
from lser.replay.memories.params import GOALS, HindsightParams
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.newest import NONE
from lser.replay.sessions import Tails
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64


class HindsightReplay(Memory):
    """A FIFO memory whose sampled copies get goals that their sessions went on to reach.

    A goal is a reward to reach in one step. Observations carry it as their last component, as
    goal times `goal_scale` (default: one over the largest goal). A sampled copy's reward is 1 where
    the stored reward reaches its goal, else 0. With probability `ratio` the copy first takes the
    largest goal reached by a random later step (or this one) of its session; a step that reached
    none leaves the copy's own goal. Stored data never changes.

    With ``balanced=True`` there are no goals: half of a batch has reward above zero, half has not.
    """

    KIND = "her"
    Params = HindsightParams
    params: HindsightParams
    follows_sessions = True

    def _set_up(self, store: Store, rng: np.random.Generator) -> None:
        if store.storage == "none" and not self.params.balanced:
            raise ValueError("storage='none': goals need rows of their own, unless balanced=True")
        super()._set_up(store, rng)

    def begin(self) -> None:
        """No steps of any session, or no members of either class."""
        p = self.params
        goals = np.array(GOALS if p.goals is None else p.goals)
        scale = 1.0 / np.abs(goals).max() if p.goal_scale is None else p.goal_scale
        self.goals: Float32 = goals.astype(np.float32)
        self.shown: Float32 = (goals * scale).astype(np.float32)
        self._near = 1e-3 * float(np.abs(self.shown).max())
        self._links = new_links(1 if p.balanced else self.capacity)
        self._tails = Tails(self.capacity)
        self._classes = new_classes(self.capacity if p.balanced else 1)

    def insert(self, block: Block) -> Int64:
        """Over the oldest; each step is linked to the one before it in its session."""
        if not self.params.balanced:
            self._check_shown(block.rows)
        ids, slots, write = self.store.appending(block.rows)
        ran = np.zeros(1, np.int64)
        if self.params.balanced:
            positive = block.reward[-self.capacity :] > 0
            self.commit(write, partial(classify, self._classes, slots, positive, ran))
            return ids
        writes = ids // self.capacity
        previous, change = self._tails.following(block.streams, writes, block.ended)
        self.commit(write, partial(link, self._links, writes, previous, ran), change)
        return ids

    def _check_shown(self, rows: Float32) -> None:
        last = self.store.observation_dim - 1
        wrong = first_without_goal(rows, last, self.shown, self._near)
        if wrong >= 0:
            raise ValueError(
                f"observation's last component must be a goal times goal_scale, one of "
                f"{self.shown.tolist()}, got {rows[wrong, last]}"
            )

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """Uniform, or half from either class of rewards."""
        if not self.params.balanced:
            return self.rng.integers(len(self), size=size), None
        without, above = self._classes.counts.tolist()
        hits = size // 2 if without and above else size if above else 0
        points = self.rng.random(size)
        slots = np.empty(size, dtype=np.int64)
        slots[:hits] = self._classes.members[1, (points[:hits] * above).astype(np.int64)]
        slots[hits:] = self._classes.members[0, (points[hits:] * without).astype(np.int64)]
        return slots, None

    def replay(self, size: int, query: ArrayLike | None) -> Batch:
        """Copies of what was drawn, relabelled unless the memory is balanced."""
        if self.params.balanced:
            return super().replay(size, query)
        held = NONE if self.newest is None else self.newest.slots(size - 1)
        slots, points = np.empty(size - len(held), np.int64), np.empty(2 * size)
        draw_numbers(address_of(self.rng), len(self), slots, points, NO_INTEGERS)
        if len(held):
            slots = np.concatenate((slots, held))
        rows, flags, ids = self.store.blank(size)
        relabel(
            self.store.rows, self.store.ids, self._links.steps, self._links.length,
            self.goals, self.shown, slots, points, self.params.ratio,
            self.store.observation_dim, self.store.layout.reward, rows, flags, ids,
        )  # fmt: skip
        return self.store.wrap(rows, flags, ids)

    def own_stats(self) -> dict[str, float]:
        """How many sessions (or rewarded transitions) it holds."""
        if self.params.balanced:
            return {"rewarded": float(self._classes.counts[1])}
        return {"sessions": float(self._links.free.size - self._links.unused[0])}

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """Who follows whom, or the classes of rewards."""
        links = {f"links_{name}": array for name, array in self._links._asdict().items()}
        classes = {f"classes_{name}": array for name, array in self._classes._asdict().items()}
        return {}, {**links, **classes, "tails": self._tails.array()}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        links = [_like(arrays, "links", name, part) for name, part in self._links._asdict().items()]
        named = self._classes._asdict().items()
        classes = [_like(arrays, "classes", name, part) for name, part in named]
        self._links, self._classes = Links(*links), RewardClasses(*classes)
        _check_links(self._links, self.store, balanced=self.params.balanced)
        _check_classes(self._classes, len(self), balanced=self.params.balanced)
        self._tails.restore(arrays["tails"])


def _like(arrays: Arrays, prefix: str, name: str, model: NDArray[Any]) -> NDArray[Any]:
    """A part from a file, of the shape and type of the part of an empty memory."""
    found: NDArray[Any] = np.array(arrays[f"{prefix}_{name}"])
    if found.shape != model.shape or found.dtype != model.dtype:
        raise ValueError(f"{prefix}_{name} has shape {found.shape} of {found.dtype}")
    return found


def _check_links(links: "Links", store: Store, *, balanced: bool) -> None:
    """Refuse links from a file that lead outside of the memory."""
    if balanced:
        return
    capacity, held = store.capacity, store.ids >= 0
    steps, unused = links.steps, int(links.unused[0])
    if not np.array_equal(steps[held, HELD], store.ids[held] // capacity):
        raise ValueError("links_steps does not name the writes that are held")
    if (steps[~held, HELD] >= 0).any() or not 0 <= unused <= capacity:
        raise ValueError("links_steps names writes that are not held")
    record, step, following = steps[held, RECORD], steps[held, STEP], steps[held, FOLLOWING]
    if ((record < 0) | (record >= capacity) | (step < 0)).any():
        raise ValueError("links_steps names records outside of the memory")
    spare = links.free[:unused]
    if len(np.union1d(spare, record)) != capacity or len(np.intersect1d(spare, record)):
        raise ValueError("links_free does not name the records that are unused")
    if (np.bincount(record, minlength=capacity) != links.alive).any() and len(record):
        raise ValueError("links_alive does not count the steps that are held")
    last = step == links.length[record] - 1
    after = following[~last]
    next_slot = after % capacity
    followed = (after >= 0) & (steps[next_slot, HELD] == after)
    followed &= steps[next_slot, RECORD] == record[~last]
    followed &= steps[next_slot, STEP] == step[~last] + 1
    if not followed.all() or (step >= links.length[record]).any():
        raise ValueError("links_steps does not lead from each step to the next")


def _check_classes(classes: "RewardClasses", held: int, *, balanced: bool) -> None:
    """Refuse classes from a file that name other slots than those held."""
    if not balanced:
        return
    without, above = classes.counts.tolist()
    if min(without, above) < 0 or without + above != held:
        raise ValueError(f"classes_counts = {classes.counts} does not count {held} transitions")
    members = np.concatenate([classes.members[0, :without], classes.members[1, :above]])
    if not np.array_equal(np.sort(members), np.arange(held)):
        raise ValueError("classes_members does not name every slot once")
    kinds = np.repeat([0, 1], [without, above])
    places = np.concatenate([np.arange(without), np.arange(above)])
    right = (classes.kind[members] == kinds) & (classes.where[members] == places)
    if not right.all() or (classes.kind[held:] != -1).any():
        raise ValueError("classes_where does not lead back to the members")
