"""What HER keeps beside the rows: who follows whom in a session, and classes of reward."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.compiled import kernel, prefetch
from lser.replay.rows import gather
from lser.types import Bool, Float32, Float64, Int64

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
def first_without_goal(rows: Float32, column: int, shown: Float32, near: float) -> int:
    """The first row whose number in a column is not `near` one of `shown`, or -1."""
    for i in range(len(rows)):
        least = np.inf
        for j in range(len(shown)):
            least = min(least, abs(rows[i, column] - shown[j]))
        if least > near:
            return i
    return -1


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
        out[i] = (held + ahead * (following - held)) % capacity
        prefetch(steps, out[i] * 4)
    for i in range(len(slots)):
        held, record, step, following = steps[slots[i]]
        ahead = int(points[i] * (length[record] - step))
        guess = steps[out[i]]
        right = guess[HELD] == held + ahead * (following - held) and guess[RECORD] == record
        if not (right and guess[STEP] == step + ahead):
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
