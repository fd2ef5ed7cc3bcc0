"""Algorithm 1 written literally, with dicts and sorted lists, to compare `LocalityReplay` with."""

from bisect import insort
from dataclasses import dataclass, field

import numpy as np

LARGEST = float(np.finfo(np.float32).max)


@dataclass(order=True)
class Held:
    """A stored transition; compares by key, then by age: newer is better."""

    key: float
    id: int
    content: tuple[float, ...] = field(compare=False)


def code_of(hyperplanes: np.ndarray, observation: np.ndarray) -> int:
    """Bit i is 1 iff <p_i, s> > 0."""
    code = 0
    for bit, plane in enumerate(hyperplanes.tolist()):
        total = 0.0
        for p, s in zip(plane, observation.tolist(), strict=True):
            total += p * s
        code |= (total > 0) << bit
    return code


def jaccard(a: int, b: int) -> float:
    """Similarity of two bit strings as sets."""
    return (a & b).bit_count() / (a | b).bit_count() if a | b else 1.0


class Twin:
    """The store rule and the reward-driven draw of the specification."""

    def __init__(self, capacity, *, unseen="drop", order="reward", discount=0.99, store="reward"):
        self.capacity = capacity
        self.unseen, self.order, self.discount, self.store = unseen, order, discount, store
        self.buckets: dict[int, list[Held]] = {}
        self.size = self.written = self.dropped = 0
        self.sessions: dict[int, list[tuple[Held | None, float]]] = {}

    def __len__(self):
        return self.size

    def extend(self, codes, rewards, ended, contents, streams):
        """Store a block in order; sessions that ended in it get their returns afterwards."""
        stored = [
            self.add(int(code), float(reward), content)
            for code, reward, content in zip(codes, rewards, contents, strict=True)
        ]
        for held, reward, end, stream in zip(stored, rewards, ended, streams, strict=True):
            session = self.sessions.setdefault(int(stream), [])
            session.append((held, float(reward)))
            if end:
                del self.sessions[int(stream)]
                if self.order == "return":
                    self.end(session)
        return [-1 if held is None else held.id for held in stored]

    def add(self, code, reward, content):
        """The store rule for one transition."""
        bucket = self.buckets.get(code)
        if len(self) == self.capacity:
            if self.store == "fifo":
                victim = min((h for b in self.buckets.values() for h in b), key=lambda h: h.id)
                self.remove(victim)
            elif bucket is not None:
                if reward < bucket[0].key:
                    self.dropped += 1
                    return None
                bucket.pop(0)
                self.size -= 1
            elif self.unseen == "evict":
                largest = min(self.buckets, key=lambda c: (-len(self.buckets[c]), c))
                self.remove(self.buckets[largest][0])
            else:
                self.dropped += 1
                return None
        held = Held(reward, self.written, content)
        self.written += 1
        self.size += 1
        insort(self.buckets.setdefault(code, []), held)
        return held

    def remove(self, victim):
        self.size -= 1
        for code, bucket in list(self.buckets.items()):
            bucket[:] = [held for held in bucket if held is not victim]
            if not bucket:
                del self.buckets[code]

    def end(self, session):
        """Order the transitions of an ended session by their discounted returns."""
        total = 0.0
        for held, reward in reversed(session):
            total = reward + self.discount * total
            if held is not None:
                held.key = float(np.float32(min(max(total, -LARGEST), LARGEST)))
        for bucket in self.buckets.values():
            bucket.sort()

    def pools(self, code):
        """The query's bucket, or the two most similar ones, with the share each gives."""
        if code in self.buckets:
            return [(self.buckets[code], 1)]
        nearest = sorted(
            self.buckets,
            key=lambda c: (
                -jaccard(c, code),
                (c ^ code).bit_count(),
                -len(self.buckets[c]),
                c,
            ),
        )[:2]
        return [(self.buckets[c], len(nearest)) for c in nearest]

    def greedy(self, code, count):
        """The ids of a reward-driven draw with fill="repeat"."""
        ids = []
        for bucket, share in self.pools(code):
            wanted = count - len(ids) if ids else -(-count // share)
            best = [held.id for held in reversed(bucket)]
            ids += [best[k % len(best)] for k in range(wanted)]
        return ids

    def contents(self):
        """What is held: by code, ids with their transitions in order."""
        return {
            code: [(held.id, held.content) for held in bucket]
            for code, bucket in self.buckets.items()
        }
