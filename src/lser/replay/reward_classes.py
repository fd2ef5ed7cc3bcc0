"""Slots in two classes, reward above zero and not, each drawn from in O(1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.replay.compiled import kernel
from lser.types import Bool, Int64


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
def classify(classes: RewardClasses, slots: Int64, positive: Bool) -> None:
    """Put slots (N,) in the class of what they hold now."""
    members, where, kind, counts = classes
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
