"""What a client knows of a sharded memory without asking: whose a code is, and which there are."""

from typing import NamedTuple

import numpy as np

from lser.compiled import Num, UInt32, kernel
from lser.random import mix
from lser.replay.index.drawing import similarity
from lser.types import Int64

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = 64


@kernel
def mixed(codes: UInt32, shards: Num, salt: Num, found: Int64) -> None:
    """The shard of every code: by a mix of its bits, as prefixes are far from equally frequent."""
    begin = np.uint64(salt + 1) * _GAMMA
    for k in range(len(codes)):
        found[k] = np.int64(mix(np.uint64(codes[k]) + begin) % np.uint64(shards))


@kernel
def nearest_two(codes: UInt32, sizes: Int64, code: Num, found: Int64) -> None:
    """The places of the two codes nearest to one that is not among them, or -1.

    As `lser.replay.index.drawing`: by Jaccard similarity, then the smaller Hamming distance, the
    larger bucket, the smaller code.
    """
    wanted = np.uint32(code)
    first, second = np.int64(-1), np.int64(-1)
    best, next_best = np.float32(-1.0), np.float32(-1.0)
    for k in range(len(codes)):
        score = similarity(codes[k], wanted)
        if score < next_best:
            continue
        before = second < 0 or score > next_best
        if not before:
            before = sizes[k] > sizes[second]
            before = before or (sizes[k] == sizes[second] and codes[k] < codes[second])
        if not before:
            continue
        ahead = first < 0 or score > best
        if not ahead and score == best:
            ahead = sizes[k] > sizes[first]
            ahead = ahead or (sizes[k] == sizes[first] and codes[k] < codes[first])
        if ahead:
            second, next_best = first, best
            first, best = np.int64(k), score
        else:
            second, next_best = np.int64(k), score
    found[0], found[1] = first, second


def owners(codes: UInt32, shards: int, salt: int = 0) -> Int64:
    """The shard of every code, (N,)."""
    found = np.empty(len(codes), np.int64)
    mixed(codes, shards, salt, found)
    return found


def even_salt(codes: UInt32, shards: int, tries: int = 256) -> int:
    """The salt whose busiest shard gets least of these codes: some of the traffic to come."""
    known, counts = np.unique(codes, return_counts=True)
    loads = [np.bincount(owners(known, shards, salt), counts).max() for salt in range(tries)]
    return int(np.argmin(loads))


class Ask(NamedTuple):
    """What a shard is asked for: `size` of the bucket of `code`, or of those like it."""

    shard: int
    code: int
    size: int
    greedy: float


class Codes:
    """The occupied codes of all shards, and how many transitions each holds.

    It needs no answers: below its capacity a shard keeps every newcomer, and at capacity a newcomer
    takes a place of its own bucket or none.
    """

    def __init__(self, capacities: Int64, salt: int = 0) -> None:
        self.capacities, self.salt = capacities, salt  # (S,)
        self.filled = np.zeros_like(capacities)  # (S,)
        self._place: dict[int, int] = {}
        self._codes: UInt32 = np.empty(_FIRST, np.uint32)
        self._sizes: Int64 = np.empty(_FIRST, np.int64)

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, code: int) -> bool:
        return code in self._place

    def owners(self, codes: UInt32) -> Int64:
        """The shard of every code, (N,)."""
        return owners(codes, len(self.capacities), self.salt)

    def store(self, shard: int, codes: UInt32) -> None:
        """Count newcomers of a shard, in order."""
        kept = codes[: max(int(self.capacities[shard] - self.filled[shard]), 0)]
        if len(kept):
            self.filled[shard] += len(kept)
            self._add(*np.unique(kept, return_counts=True))

    def replace(self, shard: int, codes: UInt32, sizes: Int64) -> None:
        """Take what a shard holds now for what it held."""
        known = self._codes[: len(self)]
        others = self.owners(known) != shard
        kept, counts = known[others].copy(), self._sizes[: len(self)][others].copy()
        self._place.clear()
        self._add(kept, counts)
        self._add(codes, sizes)
        self.filled[shard] = sizes.sum()

    def _add(self, codes: UInt32, sizes: Int64) -> None:
        room = len(self) + len(codes)
        if room > len(self._codes):
            self._codes = np.resize(self._codes, 2 * room)
            self._sizes = np.resize(self._sizes, 2 * room)
        for code, size in zip(codes.tolist(), sizes.tolist(), strict=True):
            place = self._place.get(code)
            if place is None:
                place = self._place[code] = len(self._place)
                self._codes[place], self._sizes[place] = code, 0
            self._sizes[place] += size

    def nearest(self, code: int) -> list[int]:
        """The two occupied codes most like one that is not; one if there is no other."""
        found = np.empty(2, np.int64)
        nearest_two(self._codes[: len(self)], self._sizes[: len(self)], code, found)
        return [int(self._codes[place]) for place in found if place >= 0]
