"""Locality-Sensitive Experience Replay: replay what happened to similar observations, best first.

Chen, Yao, Wang and McAuley, "Locality-Sensitive Experience Replay for Online Recommendation"
(Algorithm 1), with its gaps closed.
"""

from pathlib import Path
from threading import Lock
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lser.replay.base import (
    State,
    as_floats,
    check_choice,
    check_count,
    check_fraction,
    check_sample,
)
from lser.replay.buckets import Buckets, Rules
from lser.replay.controls import ConstantCode, RandomCode
from lser.replay.draw import ANY_CODE
from lser.replay.hashing import E2LSH, Encoder, Features, SimHash
from lser.replay.persistence import save
from lser.replay.returns import Returns
from lser.replay.store import Storage, Store
from lser.types import Batch, Int64

ENCODERS = {e.KIND: e for e in (SimHash, E2LSH, ConstantCode, RandomCode)}


class LocalityReplay:
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
    (independent draws from the whole memory). Controls: ``encoder=ConstantCode()`` and
    ``RandomCode()``. `bits` and `features` describe the default encoder, a `SimHash` with the
    memory's seed, and are not used with another `encoder`.

    One thread may write while another samples: a lock makes each call wait for the other.
    """

    KIND = "locality"

    def __init__(
        self,
        capacity: int,
        observation_dim: int,
        action_dim: int,
        *,
        bits: int = 10,
        greedy: float = 0.9,
        seed: int = 0,
        unseen: Literal["drop", "evict"] = "drop",
        order: Literal["reward", "return"] = "reward",
        discount: float = 0.99,
        greedy_per: Literal["batch", "item"] = "batch",
        random_from: Literal["bucket", "memory"] = "bucket",
        fill: Literal["repeat", "uniform"] = "repeat",
        features: Features = "raw",
        warmup: int = 10_000,
        encoder: Encoder | None = None,
        store: Literal["reward", "fifo"] = "reward",
        sampling: Literal["locality", "uniform"] = "locality",
        storage: Storage = "memory",
        path: str | Path | None = None,
    ) -> None:
        self.greedy = check_fraction("greedy", greedy)
        rng = np.random.default_rng(check_count("seed", seed, low=0))
        simhash = SimHash(observation_dim, bits=bits, seed=seed, features=features, warmup=warmup)
        self.encoder: Encoder = simhash if encoder is None else encoder
        rules = Rules(
            fifo=check_choice("store", store, ("reward", "fifo")) == "fifo",
            evict=check_choice("unseen", unseen, ("drop", "evict")) == "evict",
            rekeyed=check_choice("order", order, ("reward", "return")) == "return",
            per_item=check_choice("greedy_per", greedy_per, ("batch", "item")) == "item",
            from_memory=check_choice("random_from", random_from, ("bucket", "memory")) == "memory",
            repeat=check_choice("fill", fill, ("repeat", "uniform")) == "repeat",
            uniform=check_choice("sampling", sampling, ("locality", "uniform")) == "uniform",
        )
        returns = Returns(discount)
        self._returns = returns if rules.rekeyed else None
        self._store = Store(capacity, observation_dim, action_dim, storage=storage, path=path)
        self._buckets = Buckets(self._store, rules)
        self._buckets.rng = int(rng.integers(-(2**63), 2**63))
        self._lock = Lock()
        self._connect()

    def _connect(self) -> None:
        """Let the index hash by itself where it can, and take blocks nobody else needs to see."""
        self._hashed = isinstance(self.encoder, SimHash) and self.encoder.frozen
        self._direct = self._hashed and self._returns is None
        self._answers = self._hashed and not self._buckets.rules.uniform
        self._insert = self._buckets.insert_plain
        if isinstance(self.encoder, SimHash) and self._hashed:
            self._buckets.attach(self.encoder)

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self._store.capacity

    @property
    def dropped(self) -> int:
        """How many newcomers the rule of the store has refused."""
        return self._buckets.counters["dropped"]

    def __len__(self) -> int:
        return len(self._buckets)

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
        """Add a block of N transitions, in order; returns their ids, -1 where one was dropped."""
        if self._direct:
            with self._lock:
                done = self._insert(
                    observation, action, reward, next_observation, terminated, truncated
                )
            if done is not None:
                return done
        rows = self._store.pack(
            observation, action, reward, next_observation, terminated, truncated
        )
        if self._returns is not None:
            labels = self._returns.labels(streams, len(rows))
        with self._lock:
            ids, slots = self._buckets.insert(rows, self.encoder.encode_rows(rows))
            if self._returns is not None:
                ended = (rows[:, self._store.layout.terminated :] != 0).max(axis=1)
                reward = rows[:, self._store.layout.reward]
                self._buckets.rekey(*self._returns.follow(labels, ids, slots, reward, ended))
            if not self.encoder.frozen and self.encoder.observe(
                rows[:, self._store.layout.observation]
            ):
                held = self.encoder.encode_rows(self._store.rows[: len(self)])
                self._buckets = self._buckets.refiled(held)
                self._connect()
        return ids

    def sample(self, batch_size: int, query: ArrayLike | None = None) -> Batch:
        """Draw `batch_size` transitions for `query`, the current observation, (O,).

        Query before storing the transition that begins at the query, and with a different
        observation for every update: the top of a bucket is the same until it changes.
        """
        if self._answers and type(batch_size) is int and batch_size > 0:
            with self._lock:
                batch = self._buckets.replay(query, batch_size, self.greedy)
            if batch is not None:
                return batch
        uniform = self._buckets.rules.uniform
        if not uniform:
            if query is None:
                raise ValueError("query=None: this memory needs the current observation")
            observation = as_floats("query", query, (self._store.observation_dim,))[None]
        with self._lock:
            size = check_sample(batch_size, len(self._buckets))
            code = ANY_CODE
            if not uniform and not self.encoder.blind:
                code = int(self.encoder.encode_rows(observation)[0])
            return self._store.batch(self._buckets.pick(code, size, self.greedy))

    def update(self, ids: ArrayLike, td_errors: ArrayLike) -> None:
        """Nothing: draws do not depend on TD errors."""

    def stop_exploring(self) -> None:
        """Make every further draw reward-driven: greedy becomes 1."""
        self.greedy = 1.0

    def stats(self) -> dict[str, float]:
        """Contents (codes, bucket sizes) and draws so far (shares of items, and of draws)."""
        with self._lock:
            count, sizes = self._buckets.counters, self._buckets.sizes()
            written = self._buckets.written
        items, draws = max(count["items"], 1), max(count["draws"], 1)
        quantiles = np.quantile(sizes, (0, 0.5, 0.9, 1)) if len(sizes) else np.zeros(4)
        low, median, high, top = quantiles.tolist()
        return {
            "size": float(len(self)),
            "capacity": float(self.capacity),
            "written": float(written),
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
        with self._lock:
            self._buckets.check()
            arrays = self._buckets.arrays()
            rows = self._store.rows[arrays["slots"]]
            at = self._store.layout
            if self._returns is None and not np.array_equal(arrays["keys"], rows[:, at.reward]):
                raise ValueError("the bucket index is damaged: a key is not its row's reward")
            codes = np.repeat(arrays["codes"], arrays["sizes"])
            blind = self.encoder.blind
            if not blind and not np.array_equal(self.encoder.encode_rows(rows), codes):
                raise ValueError("the bucket index is damaged: a code is not its observation's")

    def state(self) -> State:
        """Everything needed to continue exactly where it stands, the rng included."""
        self._buckets.sync()
        store, encoder = self._store.state(), self.encoder.state()
        config: dict[str, object] = {
            "store": store.config,
            "encoder": encoder.config,
            "rules": self._buckets.rules._asdict(),
            "greedy": self.greedy,
            "discount": None if self._returns is None else self._returns.discount,
            "counters": self._buckets.counters,
            "rng": self._buckets.rng,
        }
        arrays = {**store.arrays, **encoder.arrays, **self._buckets.arrays()}
        if self._returns is not None:
            arrays |= self._returns.arrays()
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a memory from `state()`."""
        config, encoder = state.config, state.part("encoder")
        kind = check_choice("encoder", encoder.config["kind"], tuple(ENCODERS))
        replay = cls.__new__(cls)
        replay.greedy = check_fraction("greedy", config["greedy"])
        replay.encoder = ENCODERS[kind].from_state(encoder)
        rules = Rules(**state.part("rules").config)  # type: ignore[arg-type]  # filed by `state`
        discount = config["discount"]
        replay._returns = Returns.from_arrays(discount, state.arrays) if rules.rekeyed else None
        replay._store = Store.from_state(state.part("store"))
        replay._buckets = Buckets.from_arrays(replay._store, rules, state.arrays)
        replay._buckets.counters = state.part("counters").config  # type: ignore[assignment]  # checked
        replay._buckets.rng = config["rng"]
        replay._lock = Lock()
        replay._connect()
        return replay

    def save(self, path: str | Path) -> None:
        """Write one file that `load_replay` reads back."""
        with self._lock:
            save(path, self.KIND, self.state())
