"""Hindsight experience replay: transitions come back with goals that their sessions reached.

Andrychowicz et al. (2017), "Hindsight Experience Replay", https://arxiv.org/abs/1707.01495.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.checks import check_fraction, check_number
from lser.compiled import kernel, prefetch
from lser.params import MemoryParams
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.sessions import Tails
from lser.replay.store import Store, gather
from lser.types import Batch, Bool, Float32, Float64, Int64

GOALS = tuple(float(goal) for goal in range(1, 11))


@dataclass(frozen=True, kw_only=True)
class HindsightParams(MemoryParams):
    """Settings of hindsight replay."""

    goals: tuple[float, ...] | None = None
    """Rewards to reach, rising; the simulator's in a run, else 1 to 10."""
    goal_scale: float | None = None
    """What a goal is multiplied with in the observation; by default one over the largest."""
    ratio: float = 0.8
    """Share of a batch that takes a goal which its session went on to reach."""
    balanced: bool = False
    """No goals: half of a batch has reward above zero, half has not."""

    def __post_init__(self) -> None:
        check_goals(GOALS if self.goals is None else self.goals)
        if self.goals is not None:
            object.__setattr__(self, "goals", tuple(float(goal) for goal in self.goals))
        if self.goal_scale is not None:
            check_number("goal_scale", self.goal_scale, low=0.0, above=True)
        check_fraction("ratio", self.ratio)

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run: the simulator's goals."""
        return self if self.goals is not None else replace(self, goals=goals)


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
        self._links = new_links(1 if p.balanced else self.capacity)
        self._tails = Tails(self.capacity)
        self._classes = new_classes(self.capacity if p.balanced else 1)

    def insert(self, block: Block) -> Int64:
        """Over the oldest; each step is linked to the one before it in its session."""
        if not self.params.balanced:
            self._check_shown(block.observation[:, -1])
        ids, write = self.store.appending(block.rows)
        ran = np.zeros(1, np.int64)
        if self.params.balanced:
            slots, positive = ids % self.capacity, block.reward > 0
            kept = np.s_[-self.capacity :]
            self.commit(write, partial(classify, self._classes, slots[kept], positive[kept], ran))
            return ids
        writes = ids // self.capacity
        previous, change = self._tails.following(block.streams, writes, block.ended)
        self.commit(write, partial(link, self._links, writes, previous, ran), change)
        return ids

    def _check_shown(self, shown: Float32) -> None:
        near = np.abs(shown[:, None] - self.shown).min(axis=1, initial=np.inf)
        wrong = near > 1e-3 * np.abs(self.shown).max()
        if wrong.any():
            raise ValueError(
                f"observation's last component must be a goal times goal_scale, one of "
                f"{self.shown.tolist()}, got {shown[wrong][0]}"
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
        if not self.params.balanced:
            self.rewind()  # it draws twice
        slots, _ = self.combined(size, query)
        if self.params.balanced:
            return self.store.batch(slots)
        points = self.rng.random(2 * size)
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


def check_goals(goals: Sequence[float]) -> tuple[float, ...]:
    """Goals that rise, or ValueError."""
    values = tuple(check_number("goals", goal) for goal in goals)
    rising = all(low < high for low, high in pairwise(values))
    if not values or not rising or not any(values):
        raise ValueError(f"goals must rise from one to the next and not be only 0, got {goals!r}")
    return values


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


HELD, RECORD, STEP, FOLLOWING = range(4)


class Links(NamedTuple):
    """Who follows whom: the steps in all slots, by the number of their write, and their sessions.

    A session has a record while at least one of its steps is stored, so there are never more
    records than slots.
    """

    steps: Int64  # (capacity, 4): write or -1, record, step, write of the next step or -1
    length: Int64  # (capacity,) per record: steps so far
    alive: Int64  # (capacity,) per record: steps still stored
    free: Int64  # (capacity,) a stack of unused records
    unused: Int64  # (1,) the height of that stack


def new_links(capacity: int) -> Links:
    """Links of an empty ring."""
    return Links(
        steps=np.full((capacity, 4), -1, dtype=np.int64),
        length=np.zeros(capacity, dtype=np.int64),
        alive=np.zeros(capacity, dtype=np.int64),
        free=np.arange(capacity)[::-1].copy(),
        unused=np.array([capacity]),
    )


@kernel
def link(links: Links, ids: Int64, previous: Int64, ran: Int64) -> None:
    """Enter writes (N,), each after the step `previous` (N,) of its session, or -1 at its start.

    `ran` (1,) is 0; it becomes 1, and a second call does nothing.
    """
    steps, length, alive, free, unused = links
    if ran[0]:
        return
    ran[0] = 1
    capacity = len(steps)
    for i in range(len(ids)):
        slot = ids[i] % capacity
        if steps[slot, HELD] >= 0:
            old = steps[slot, RECORD]
            alive[old] -= 1
            if alive[old] == 0:
                free[unused[0]] = old
                unused[0] += 1
        before = previous[i] % capacity
        steps[slot, HELD] = ids[i]
        if previous[i] >= 0 and steps[before, HELD] == previous[i]:
            record = steps[before, RECORD]
            steps[before, FOLLOWING] = ids[i]
        else:
            unused[0] -= 1
            record = free[unused[0]]
            length[record] = 0
        steps[slot, RECORD] = record
        steps[slot, STEP] = length[record]
        steps[slot, FOLLOWING] = -1
        length[record] += 1
        alive[record] += 1


@kernel
def later(steps: Int64, length: Int64, slots: Int64, points: Float64, out: Int64) -> None:
    """For each slot (b,) one of its and the later steps' slots, by uniform points of [0, 1).

    A step k places on is usually k equal strides of writes away (blocks of one size); that guess is
    checked, and where it fails the steps are walked one by one.
    """
    capacity = len(steps)
    for i in range(len(slots)):
        prefetch(steps, slots[i] * 4)
    for i in range(len(slots)):
        prefetch(length, steps[slots[i], RECORD])
    for i in range(len(slots)):
        held, record, step, following = steps[slots[i]]
        ahead = int(points[i] * (length[record] - step))
        out[i] = (held + ahead * (following - held)) % capacity if ahead else slots[i]
        prefetch(steps, out[i] * 4)
    for i in range(len(slots)):
        held, record, step, following = steps[slots[i]]
        ahead = int(points[i] * (length[record] - step))
        guess = steps[out[i]]
        right = guess[HELD] == held + ahead * (following - held) and guess[RECORD] == record
        if ahead and not (right and guess[STEP] == step + ahead):
            out[i] = slots[i]
            for _ in range(ahead):
                out[i] = steps[out[i], FOLLOWING] % capacity


class RewardClasses(NamedTuple):
    """The members of both classes, and where each slot stands in its own."""

    members: Int64  # (2, capacity) slots, class 1 with reward above zero
    where: Int64  # (capacity,)
    kind: NDArray[np.int8]  # (capacity,) 0 or 1, -1 in empty slots
    counts: Int64  # (2,)


def new_classes(capacity: int) -> RewardClasses:
    """Both classes empty."""
    return RewardClasses(
        members=np.zeros((2, capacity), dtype=np.int64),
        where=np.zeros(capacity, dtype=np.int64),
        kind=np.full(capacity, -1, dtype=np.int8),
        counts=np.zeros(2, dtype=np.int64),
    )


@kernel
def classify(classes: RewardClasses, slots: Int64, positive: Bool, ran: Int64) -> None:
    """Put slots (N,) in the class of what they hold now; `ran` (1,) lets it happen once."""
    members, where, kind, counts = classes
    if ran[0]:
        return
    ran[0] = 1
    for i in range(len(slots)):
        slot = slots[i]
        old = kind[slot]
        if old >= 0:  # the last member takes the place of the one that leaves
            counts[old] -= 1
            last = members[old, counts[old]]
            members[old, where[slot]] = last
            where[last] = where[slot]
        new = 1 if positive[i] else 0
        kind[slot] = new
        where[slot] = counts[new]
        members[new, counts[new]] = slot
        counts[new] += 1


@kernel
def relabel(
    kept: Float32,
    held: Int64,
    steps: Int64,
    length: Int64,
    goals: Float32,
    shown: Float32,
    slots: Int64,
    points: Float64,
    ratio: float,
    observation_dim: int,
    at_reward: int,
    rows: Float32,
    flags: Bool,
    ids: Int64,
) -> None:
    """Gather `slots` (b,) and relabel the copies; `points` (2 b,) decide which, and by what step.

    `at_reward` is the column of the reward.
    """
    count, width = len(slots), kept.shape[1]
    ahead = np.empty(count, np.int64)
    later(steps, length, slots, points[count:], ahead)
    for i in range(count):
        prefetch(kept, ahead[i] * width + at_reward)
    gather(kept, held, slots, rows, flags, ids)
    for i in range(count):
        goal = -1
        if points[i] < ratio:
            achieved = kept[ahead[i], at_reward]
            for j in range(len(goals)):
                goal += goals[j] <= achieved
        if goal < 0:
            own, goal = rows[i, observation_dim - 1], 0
            for j in range(1, len(shown)):
                if abs(own - shown[j]) < abs(own - shown[goal]):
                    goal = j
        rows[i, observation_dim - 1] = rows[i, at_reward + observation_dim] = shown[goal]
        rows[i, at_reward] = (
            np.float32(1.0) if rows[i, at_reward] >= goals[goal] else np.float32(0.0)
        )
