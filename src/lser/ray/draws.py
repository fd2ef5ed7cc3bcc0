"""Draws from many shards: whom a query asks for what, and one batch of the answers."""

from typing import Any, NamedTuple

import numpy as np

from lser.ray.codes import Ask
from lser.ray.hall import Hall
from lser.replay.store import Store
from lser.types import Batch, Float32, Int64


class Sent(NamedTuple):
    """Draws that are under way: what was asked for each, and the calls, by shard."""

    codes: list[int]
    size: int
    asks: list[list[Ask]]  # in the order of a batch
    calls: dict[int, Any]


class Draws:
    """The rule of the draw of LSER, over shards."""

    def __init__(
        self, hall: Hall, form: Store, greedy: float, per_item: bool, rng: np.random.Generator
    ) -> None:
        self.hall, self.form = hall, form
        self.greedy, self.per_item, self.rng = greedy, per_item, rng
        self.draws = self.fallbacks = 0

    def begin(self, codes: list[int], size: int) -> Sent:
        """Begin draws for queries of these codes."""
        asks = [self.plan(code, size) for code in codes]
        return Sent(codes, size, asks, self.hall.ask([ask for draw in asks for ask in draw]))

    def plan(self, code: int, size: int) -> list[Ask]:
        """Whom a query of this code asks for what.

        One shard flips its own coin. Two follow one coin, which is flipped here, unless every item
        has its own.
        """
        hall = self.hall
        self.draws += 1
        if code in hall.codes:
            return [Ask(hall.owner(code), code, size, self.greedy)]
        self.fallbacks += 1
        near = hall.codes.nearest(code)
        first, last = hall.owner(near[0]), hall.owner(near[-1])
        half = (size + 1) // 2
        if first == last or half == size:  # the two nearest of all are the two nearest there
            return [Ask(first, code, size, self.greedy)]
        coin = self.greedy
        if not self.per_item:
            coin = float(self.rng.random() < self.greedy)
        return [Ask(first, near[0], half, coin), Ask(last, near[1], size - half, coin)]

    def finish(self, sent: Sent) -> list[Batch]:
        """Wait for draws; where a room was lost, all of them are made again."""
        rows = self.hall.drawn(sent.calls)
        if rows is None:
            return self.finish(self.begin(sent.codes, sent.size))
        begin = dict.fromkeys(rows, 0)
        batches = []
        for draw in sent.asks:
            parts, names = [], []
            for ask in draw:
                packed, ids = rows[ask.shard]
                at = np.s_[begin[ask.shard] : begin[ask.shard] + ask.size]
                begin[ask.shard] += ask.size
                parts.append(packed[at])
                names.append(ids[at] * self.hall.count + ask.shard)
            batches.append(self._batch(parts, names))
        return batches

    def _batch(self, parts: list[Float32], names: list[Int64]) -> Batch:
        packed = np.array(parts[0]) if len(parts) == 1 else np.concatenate(parts)
        at = self.form.layout
        flags = np.stack([packed[:, at.terminated] != 0, packed[:, at.truncated] != 0])
        return self.form.wrap(packed, flags, np.concatenate(names))
