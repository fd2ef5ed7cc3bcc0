"""Locality-Sensitive Experience Replay: replay what happened to similar observations, best first.

Chen, Yao, Wang and McAuley, "Locality-Sensitive Experience Replay for Online Recommendation"
(Algorithm 1), with its gaps closed. `lser.replay.index.reference` is the same in plain Python.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import as_floats, check_choice, check_fraction
from lser.compiled import UInt32
from lser.files import State
from lser.replay.commit import Step
from lser.replay.index import calls
from lser.replay.index.controls import ConstantCode, RandomCode, ShuffledCode
from lser.replay.index.drawing import ANY_CODE
from lser.replay.index.encoders import Encoder, SimHash
from lser.replay.index.index import BucketIndex, Newcomers
from lser.replay.memories.codes import ENCODERS, check_encoder, encoder_for, rules_for
from lser.replay.memories.params import DISCOUNT, LocalityParams
from lser.replay.memory import Arrays, Block, Memory
from lser.replay.sessions import Returns, stream_labels
from lser.replay.store import Given, Storage
from lser.types import Batch, Bool, Float32, Int64

_INT64 = np.dtype(np.int64)
_NO_QUERY: Float32 = np.empty(0, np.float32)


class LocalityReplay(Memory):
    """Files transitions by the code of their observation and replays the query's bucket.

    The store, at capacity: a newcomer takes the place of the oldest of the lowest reward in its
    own bucket if its reward is at least that; otherwise it is dropped. A newcomer whose code has
    no bucket is dropped too (``unseen="drop"``), or the largest bucket makes room
    (``"evict"``: its lowest reward, oldest; of equally large buckets, the one of smaller code).

    A draw of b for a query: with probability `greedy`, one draw per batch, the top b of the
    query's bucket, best first (highest reward, ties newer first); otherwise b uniformly without
    replacement, from the bucket or from the whole memory (`random_from`). With
    ``greedy_per="item"`` each item is reward-driven with that probability: k of them are the top
    k and come first, the rest is drawn as before. A query without a bucket takes the first
    ceil(b/2) from the most Jaccard-similar occupied code and the rest from the next (all from
    the one, if there is only one); ties go to the smaller Hamming distance, then the larger
    bucket, then the smaller code. Where a pool is too small, ``fill="repeat"`` (the default: it
    did at least as well) goes through it again from its start, ``"uniform"`` draws the missing
    ones independently from the whole memory.

    ``order="return"`` orders by the discounted return of the session from that step. A
    transition counts with its reward until its session ends; a newcomer too, at capacity.

    Ablations: ``store="fifo"`` (always replace the oldest of all), ``sampling="uniform"``
    (independent draws from the whole memory). Controls: ``codes="constant"``, ``"random"`` and
    ``"shuffled"``, the last with the bucket sizes of SimHash.
    `bits` and `features` describe the default encoder, a `SimHash` with the memory's seed, and
    are not used with another `encoder`.
    """

    KIND = "lser"
    Params = LocalityParams
    params: LocalityParams
    greedy: float
    encoder: Encoder | None = None

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        seed: int = 0,
        params: LocalityParams | None = None,
        storage: Storage = "memory",
        path: str | Path | None = None,
        encoder: Encoder | None = None,
        **knobs: Any,
    ) -> None:
        self.encoder = encoder
        super().__init__(
            capacity,
            observation_dim,
            action_dim,
            seed=seed,
            params=params,
            storage=storage,
            path=path,
            **knobs,
        )

    @property
    def dropped(self) -> int:
        """How many newcomers the rule of the store has refused."""
        return self.index.counters["dropped"]

    def begin(self) -> None:
        """An empty index over the store's ids, and the encoder."""
        p = self.params
        self.greedy = float(p.greedy)
        if self.encoder is None:
            self.encoder = encoder_for(p, self.store.observation_dim, self.seed)
        discount = DISCOUNT if p.discount is None else p.discount
        self._returns = Returns(discount, self.capacity) if p.order == "return" else None
        self._written = self.store.written  # what a restored store says
        self._place: Int64 = np.zeros(2, np.int64)  # `Newcomers.places` of a block of one
        index = BucketIndex(self.store.ids, rules_for(p))
        index.generator = int(self.rng.integers(-(2**63), 2**63)) % 2**64
        self._use(index)

    def _use(self, index: BucketIndex) -> None:
        """Take an index, and let it hash by itself where it can."""
        assert self.encoder is not None
        check_encoder(self.encoder, self.store.observation_dim)
        self._hashed = isinstance(self.encoder, SimHash)
        self._direct = self._hashed and self.encoder.frozen and self._returns is None
        anybody = self.encoder.blind and not isinstance(self.encoder, ShuffledCode)
        blind = index.rules.uniform or anybody
        self._asks = not (blind or isinstance(self.encoder, ConstantCode))
        self._code = ANY_CODE if blind else calls.HASH
        self._answers = self._hashed and not blind
        projection = self.encoder.projection if isinstance(self.encoder, SimHash) else None
        index.attach(self.store.rows, projection, self.store.observation_dim)
        self.index, self._address = index, index.address
        self.store.counts = index.counts  # kernels count

    def take(self, block: Given, streams: ArrayLike | None) -> Int64:
        """Take a block in as it was handed over; returns ids, -1 where one was dropped."""
        if streams is not None and self._returns is None:
            stream_labels(streams, np.size(block[2]))  # not used, but checked
        ids = self._one(block) if self._direct and self._unfinished is None else None
        if ids is None:
            self.settle()
            ids = self._take_or_keep(block, streams)
        return ids

    def _take_or_keep(self, block: Given, streams: ArrayLike | None) -> Int64:
        """`_take`; a block that is cut is copied: its arrays are the caller's to change.

        Where not even that can be done, what was stored of it stays and the rest is left out.
        """
        try:
            return self._take(block, streams)
        except BaseException:
            rest = self._unfinished
            if self._direct and isinstance(rest, partial) and rest.func == self._resume:
                self._unfinished = None  # a second exception must not leave the caller's arrays
                cut, *others = rest.args
                self._unfinished = partial(self._resume, tuple(map(np.array, cut)), *others)
            raise

    def _one(self, block: Any) -> Int64 | None:
        """Store a block of one, whole or, with None, not at all: there is nothing to settle."""
        extend: Any = calls.extend
        s, a, r, t, ends, cut = block
        ids, place = np.empty(1, _INT64), self._place
        place[1] = 0
        try:
            if len(r) == 1 and extend(self._address, s, a, r, t, ends, cut, ids, place) == 1:
                return ids
        except TypeError:  # not all are arrays that a kernel takes as they are
            pass
        return None

    def _take(self, block: Any, streams: ArrayLike | None) -> Int64:
        if self._direct:
            try:
                return self._write(block, Newcomers.uncoded(len(block[2])), None)
            except TypeError:  # not all are arrays that a kernel takes as they are
                self._unfinished = None
        block = self.store.plain(block) if self._hashed else self.store.checked(block)
        if not self._direct:  # what follows storing reads it again, perhaps after an interruption
            block = tuple(map(np.array, block))
        labels = stream_labels(streams, len(block[2])) if self._returns is not None else None
        return self._write(block, self._newcomers(block[0]), labels)

    def _newcomers(self, observation: Float32) -> Newcomers:
        """The newcomers of a block, without codes where kernels hash."""
        if self._hashed:
            return Newcomers.uncoded(len(observation))
        self._rewind_codes()
        return Newcomers.of(self._encode(observation))

    def _rewind_codes(self) -> None:
        """From here on, an exception takes codes that are drawn at random back."""
        if not isinstance(self.encoder, RandomCode | ShuffledCode):
            return
        back, draws = self.encoder.rewind(), self.index.counters["draws"]

        def undo() -> None:
            if self.index.counters["draws"] == draws:  # else the draw was made
                back()

        self._unfinished = undo

    def _write(self, block: Any, newcomers: Newcomers, labels: Int64 | None) -> Int64:
        """Hash, place and copy a block, in one call where there is room; returns ids."""
        self._unfinished = partial(self._resume, block, newcomers, labels, self._unfinished)
        self._write_rest(block, newcomers, labels)
        self._unfinished = None
        return newcomers.ids

    def _write_rest(self, block: Any, newcomers: Newcomers, labels: Int64 | None) -> None:
        """Store the rest of a block, making room for it; refuse it where it is wrong."""
        extend: Any = calls.extend
        while (reached := extend(self._address, *block, *newcomers)) < len(newcomers.ids):
            if reached == calls.WRONG:
                self._unfinished = None
                self.store.refuse(block)
            self.index.make_room()
        if not self._direct:
            self._after_storing(newcomers.ids, block[0], block[2], block[4] | block[5], labels)

    def _resume(
        self, block: Any, newcomers: Newcomers, labels: Int64 | None, before: Step | None
    ) -> None:
        """Store the rest of a block that an exception has cut; one not yet begun is left out."""
        if newcomers.begun:
            self._write_rest(block, newcomers, labels)
        elif before is not None:
            before()

    def insert(self, block: Block) -> Int64:
        """File newcomers whose rows lie elsewhere; returns their ids."""
        self._rewind_codes()
        newcomers = Newcomers.of(self._encode(block.observation))
        seen, gains, labels = block.observation, block.reward, block.streams
        self.commit(
            partial(self.index.place_rest, gains, newcomers),
            lambda: self._after_storing(newcomers.ids, seen, gains, block.ended, labels),
        )
        return newcomers.ids

    def _encode(self, observation: Float32) -> UInt32:
        assert self.encoder is not None
        return self.encoder.encode_rows(observation)

    def _after_storing(
        self,
        ids: Int64,
        observation: Float32,
        reward: Float32,
        ended: Bool,
        labels: Int64 | None,
    ) -> None:
        """Move transitions whose returns are known now; learn what to centre on."""
        steps: list[Step] = []
        if self._returns is not None and labels is not None:
            late, follow = self._returns.following(labels, ids, reward, ended)
            steps += [follow, partial(self.index.rekey, *late)]
        if self.encoder is not None and not self.encoder.frozen:
            steps += self._learning(observation)
        if steps:
            self.commit(*steps)

    def _learning(self, observation: Float32) -> list[Step]:
        """The steps by which the encoder learns, and what is held gets the codes it then gives."""
        encoder, changed = self.encoder, [False]
        assert encoder is not None
        if isinstance(encoder, SimHash):
            learned = encoder.learning(observation)
            changed[0] = learned.frozen
            observe: Step = partial(encoder.take, learned)
        else:
            kept = np.array(observation)  # not the caller's: it may be read after an interruption

            def observe() -> None:
                changed[0] = encoder.observe(kept)

        def refile() -> None:
            if changed[0] and self.store.storage == "none":
                self.stale = True
            elif changed[0]:
                self._refile(self.store.rows[: len(self)])

        return [observe, refile]

    def refile(self, observations: ArrayLike) -> None:
        """Give the slots in use the codes of `observations`, theirs in order."""
        self._check_rowless("refile")
        held = as_floats("observations", observations, (len(self), self.store.observation_dim))
        with self._lock:
            self.settle()
            self.commit(partial(self._refile, held), partial(setattr, self, "stale", False))

    def _refile(self, rows: Float32) -> None:
        self._use(self.index.refiled(self._encode(rows)))

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions for `query`, the current observation, (O,).

        Query before storing the transition that begins at the query, and with a different
        observation for every update: the top of a bucket is the same until it changes.
        """
        with self._lock:
            self.settle()
            if self.newest is not None:
                return self.replay(self._size(batch_size), query)
            drawn = self._drawn(batch_size, query)
        return self.store.wrap(*drawn)

    def _drawn(self, batch_size: int, query: ArrayLike | None) -> tuple[Any, Any, Any]:
        """Rows, flags and ids of a batch."""
        replay: Any = calls.replay
        if self._answers and type(batch_size) is int and batch_size > 0:
            drawn = self.store.blank(batch_size)
            try:
                if replay(self._address, query, calls.HASH, self.greedy, *drawn) != calls.WRONG:
                    return drawn
            except TypeError:  # not an array that a kernel takes as it is
                pass
        drawn = self.store.blank(self._size(batch_size))
        self._replay(self._checked(query), drawn)
        return drawn

    def _replay(self, query: Float32, drawn: tuple[Any, Any, Any]) -> None:
        code = self._code
        if not self._hashed and code != ANY_CODE:
            self._rewind_codes()
            code = int(self._encode(query[None])[0])
        rows, flags, ids = drawn
        calls.replay(self._address, query, code, self.greedy, rows, flags, ids)
        self._unfinished = None

    def draw(self, size: int, query: ArrayLike | None) -> tuple[Int64, Float32 | None]:
        """The slots that a query replays."""
        code, asked = self._code, self._checked(query)
        if code != ANY_CODE:
            self._rewind_codes()
            code = int(self._encode(asked[None])[0])
        slots = self.index.pick(code, size, self.greedy)
        self._unfinished = None
        return slots, None

    def _checked(self, query: ArrayLike | None) -> Float32:
        if not self._asks:
            return _NO_QUERY
        if query is None:
            raise ValueError("query=None: this memory needs the current observation")
        return as_floats("query", query, (self.store.observation_dim,))

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven: greedy becomes 1."""
        self.greedy = 1.0

    def own_stats(self) -> dict[str, float]:
        """Contents (codes, bucket sizes) and draws so far (shares of items, and of draws)."""
        count, sizes = self.index.counters, self.index.sizes()
        items, draws = max(count["items"], 1), max(count["draws"], 1)
        quantiles = np.quantile(sizes, (0, 0.5, 0.9, 1)) if len(sizes) else np.zeros(4)
        low, median, high, top = quantiles.tolist()
        return {
            "dropped": float(count["dropped"]),
            "occupied_codes": float(len(sizes)),
            "bucket_size_min": low,
            "bucket_size_median": median,
            "bucket_size_p90": high,
            "bucket_size_max": top,
            "greedy": self.greedy,
            "draws": float(count["draws"]),
            "fallbacks": float(count["fallbacks"]),
            "fallback_share": count["fallbacks"] / draws,
            "greedy_share": count["greedy"] / items,
            "fill_share": count["filled"] / items,
        }

    def check(self) -> None:
        """Raise ValueError if any invariant of the index is broken; takes time with the size."""
        assert self.encoder is not None
        with self._lock:
            self.settle()
            self.index.check()
            arrays = self.index.arrays()
            rows = self.store.rows[arrays["slots"]]
            rewards = rows[:, self.store.layout.reward]
            if self._returns is None and not np.array_equal(arrays["keys"], rewards):
                raise ValueError("the bucket index is damaged: a key is not its row's reward")
            codes = np.repeat(arrays["codes"], arrays["sizes"])
            if not self.encoder.blind and not np.array_equal(self._encode(rows), codes):
                raise ValueError("the bucket index is damaged: a code is not its observation's")

    def own_state(self) -> tuple[dict[str, Any], Arrays]:
        """The encoder, the index and the open sessions."""
        assert self.encoder is not None
        encoder = self.encoder.state()
        own = {
            "encoder": encoder.config,
            "greedy": self.greedy,
            "stale": self.stale,
            "counters": self.index.counters,
            "generator": self.index.generator,
        }
        sessions = {} if self._returns is None else self._returns.arrays()
        return own, {**encoder.arrays, **self.index.arrays(), **sessions}

    def restore(self, own: dict[str, Any], arrays: Arrays) -> None:
        """Continue from `own_state()`."""
        kind = check_choice("encoder", own["encoder"]["kind"], tuple(ENCODERS))
        self.encoder = ENCODERS[kind].from_state(State(own["encoder"], arrays))
        self.greedy = check_fraction("greedy", own["greedy"])
        self.stale = bool(own["stale"])
        if self._returns is not None:
            self._returns = self._returns.restored(arrays)
        index = BucketIndex(self.store.ids, rules_for(self.params))
        index.load(arrays, self._written)
        index.counters, index.generator = own["counters"], own["generator"]
        self._use(index)
