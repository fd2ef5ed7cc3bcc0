"""LSER in plain Python: what `LocalityReplay` does, without anything that makes it fast.

Read this first. Buckets are sorted lists in a dictionary, a code is an int, and every rule stands
where it applies. Tests send the same random traffic through this and through the compiled index and
compare what is held and what is drawn. Only the draws that need no random number are here.
"""

import struct
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

LARGEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]  # of float32, which keys are rounded to


@dataclass(order=True)
class Held:
    """A stored transition. The order of a bucket: by reward, of equal ones the newer is better."""

    key: float  # its reward, or the return of its session from this step on once that is known
    write: int  # how many transitions had been stored before it
    slot: int  # where its row lies: that of what it replaced, if it replaced anything


def code_of(hyperplanes: Sequence[Sequence[float]], observation: Sequence[float]) -> int:
    """The code of an observation: bit i is 1 if it lies on the positive side of hyperplane i."""
    code = 0
    for bit, normal in enumerate(hyperplanes):
        product = 0.0
        for a, b in zip(normal, observation, strict=True):
            product += a * b  # in this order: another rounds differently
        code |= (product > 0) << bit
    return code


def jaccard(a: int, b: int) -> float:
    """How similar two codes are: bits set in both, over bits set in either; 1 where none is."""
    return (a & b).bit_count() / (a | b).bit_count() if a | b else 1.0


class ReferenceLSER:
    """Buckets of transitions, each in order, worst first; the arguments are `LocalityReplay`'s."""

    def __init__(
        self,
        capacity: int,
        store: str = "reward",
        unseen: str = "drop",
        order: str = "reward",
        discount: float = 0.99,
    ) -> None:
        self.capacity, self.discount = capacity, discount
        self.store, self.unseen, self.order = store, unseen, order
        self.buckets: dict[int, list[Held]] = {}  # by code; an empty bucket does not exist
        self.sessions: dict[int, list[tuple[Held | None, float]]] = {}  # open ones, by stream
        self.size = self.written = self.dropped = 0

    def extend(self, block: Sequence[tuple[int, float, bool, int]]) -> list[int]:
        """Store transitions (code, reward, whether its session ends, stream) in turn.

        Returns ids, -1 where one was dropped. Returns are known when the whole block is in.
        """
        stored = [self.add(code, reward) for code, reward, _, _ in block]
        for held, (_, reward, end, stream) in zip(stored, block, strict=True):
            self.sessions.setdefault(stream, []).append((held, reward))
            if end:
                self.end_session(self.sessions.pop(stream))
        return [-1 if h is None else h.write * self.capacity + h.slot for h in stored]

    def add(self, code: int, reward: float) -> Held | None:
        """Store one transition, or drop it."""
        slot = self.size
        if self.size < self.capacity:
            self.size += 1
        else:
            victim = self.whoever_makes_room(code, reward)
            if victim is None:
                self.dropped += 1
                return None
            self.remove(victim)
            slot = victim.slot
        held = Held(reward, self.written, slot)
        insort(self.buckets.setdefault(code, []), held)
        self.written += 1
        return held

    def whoever_makes_room(self, code: int, reward: float) -> Held | None:
        """At capacity, whose place a newcomer takes; None: it is dropped."""
        if self.store == "fifo":
            return min((h for b in self.buckets.values() for h in b), key=lambda held: held.write)
        if code in self.buckets:
            # The oldest of the lowest reward in its own bucket, if it does not earn more: with a
            # strict comparison, a bucket full of the top reward would never change again.
            worst = self.buckets[code][0]
            return worst if reward >= worst.key else None
        if self.unseen == "evict":
            # The worst of the largest bucket; of equally large ones, that of the smaller code.
            largest = min(self.buckets, key=lambda c: (-len(self.buckets[c]), c))
            return self.buckets[largest][0]
        return None

    def remove(self, victim: Held) -> None:
        """Take a transition out of its bucket."""
        code = next(c for c, bucket in self.buckets.items() if victim in bucket)
        self.buckets[code].remove(victim)
        if not self.buckets[code]:
            del self.buckets[code]

    def end_session(self, session: list[tuple[Held | None, float]]) -> None:
        """A step counts with the discounted rewards from there to the end, of dropped steps too."""
        if self.order != "return":
            return
        total = 0.0
        for held, reward in reversed(session):
            total = reward + self.discount * total
            if held is not None:
                held.key = as_float32(total)
        for bucket in self.buckets.values():
            bucket.sort()

    def top(self, code: int, count: int) -> list[Held]:
        """A reward-driven draw: the best of the query's bucket, best first.

        A query without a bucket takes one half (the larger) from the most similar code and the
        rest from the next. A pool that is too small is gone through again from its start.
        """
        pools = [self.buckets[c][::-1] for c in self.nearest(code)]
        shares = [count] if len(pools) == 1 else [count - count // 2, count // 2]
        drawn = zip(pools, shares, strict=True)
        return [best[k % len(best)] for best, share in drawn for k in range(share)]

    def nearest(self, code: int) -> list[int]:
        """The code itself if it has a bucket; otherwise the two occupied codes most like it.

        Ties go to the smaller Hamming distance, then the larger bucket, then the smaller code.
        """
        if code in self.buckets:
            return [code]
        return sorted(
            self.buckets,
            key=lambda c: (-jaccard(c, code), (c ^ code).bit_count(), -len(self.buckets[c]), c),
        )[:2]


def as_float32(value: float) -> float:
    """The nearest float32, or the largest where it is beyond."""
    rounded: float = struct.unpack("<f", struct.pack("<f", min(max(value, -LARGEST), LARGEST)))[0]
    return rounded
