"""A memory in shards: as LSER within a shard, and as one memory from outside."""

import numpy as np
import pytest
from scipy import stats
from shard_parts import Here, block, subject_of

from lser.ray.codes import Codes, even_salt, owners
from lser.ray.rooms import HereRooms
from lser.replay import E2LSH, LocalityReplay, SimHash
from lser.replay.index.reference import ReferenceLSER, jaccard
from lser.testing import CHECKS
from lser.testing.traffic import Snapshot, same_batch

pytestmark = pytest.mark.usefixtures("time_limit")


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check, shards):
    tested = subject_of(Here, shards)
    if check.__name__ in tested.exceptions:
        pytest.skip(tested.exceptions[check.__name__])
    try:
        check(tested)
    except Exception as error:
        if type(error).__name__ != "NotForThis":
            raise
        assert check.__name__ == "chooses_alike_without_rows"


@pytest.mark.parametrize("knobs", [{}, {"greedy": 0.5, "greedy_per": "item"}, {"greedy": 0.0}])
def test_one_shard_is_a_locality_replay(knobs):
    """Same ids and same draws, also where a query has no bucket and where the memory is full."""
    knobs = {"bits": 5, **knobs}
    rng = np.random.default_rng(0)
    one, plain = (
        Here(200, 6, 2, shards=1, seed=7, **knobs),
        LocalityReplay(200, 6, 2, seed=7, **knobs),
    )
    for _ in range(60):
        added = block(rng, 9)
        assert one.extend(*added).tolist() == plain.extend(*added).tolist()
        query = rng.normal(size=6).astype(np.float32)
        assert same_batch(one.sample(12, query), plain.sample(12, query))
    numbers, others = one.stats(), plain.stats()
    assert numbers["fallbacks"] == others["fallbacks"] > 0
    assert numbers["dropped"] == others["dropped"] > 0


class ShardedReference:
    """LSER in plain Python, one per shard; a query looks at the buckets of all."""

    def __init__(self, capacity, shards):
        share, rest = divmod(capacity, shards)
        self.shards = [ReferenceLSER(share + (k < rest)) for k in range(shards)]

    def whose(self, code):
        return int(owners(np.array([code], np.uint32), len(self.shards))[0])

    def extend(self, codes, rewards):
        ids = []
        for code, reward in zip(codes, rewards, strict=True):
            shard = self.whose(code)
            (local,) = self.shards[shard].extend([(code, reward, False, 0)])
            ids.append(-1 if local < 0 else local * len(self.shards) + shard)
        return ids

    def top(self, code, count):
        buckets = {c: b for shard in self.shards for c, b in shard.buckets.items()}
        near = (
            [code]
            if code in buckets
            else sorted(
                buckets,
                key=lambda c: (-jaccard(c, code), (c ^ code).bit_count(), -len(buckets[c]), c),
            )[:2]
        )
        shares = [count] if len(near) == 1 else [count - count // 2, count // 2]
        ids = []
        for c, share in zip(near, shares, strict=True):
            best, shard = buckets[c][::-1], self.whose(c)
            capacity = self.shards[shard].capacity
            local = [best[k % len(best)] for k in range(share)]
            ids += [(h.write * capacity + h.slot) * len(self.shards) + shard for h in local]
        return ids


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("bits", [3, 7])
def test_shards_do_what_the_plain_reference_does_in_shards(shards, bits):
    rng = np.random.default_rng(shards)
    memory = Here(150, 6, 2, shards=shards, bits=bits, greedy=1.0, seed=1)
    reference = ShardedReference(150, shards)
    crossed = 0
    for _ in range(60):
        added = block(rng, 7)
        codes = memory.encoder.encode(added[0]).tolist()
        assert memory.extend(*added).tolist() == reference.extend(codes, added[2].tolist())
        query = rng.normal(size=6).astype(np.float32) * np.float32(0.5)
        code = int(memory.encoder.encode(query[None])[0])
        drawn = memory.sample(5, query).ids.tolist()
        assert drawn == reference.top(code, 5)
        crossed += len({i % shards for i in drawn}) > 1
    assert len(memory) == sum(r.size for r in reference.shards)
    if shards > 1 and bits == 7:
        assert crossed > 3


def two_buckets(**knobs):
    """Two codes, in different shards, and a query of a third."""
    codes = np.arange(64, dtype=np.uint32)
    whose = owners(codes, 2)
    rng = np.random.default_rng(3)
    memory = Here(400, 6, 2, shards=2, bits=6, **knobs)
    points = rng.normal(size=(4000, 6)).astype(np.float32)
    found = memory.encoder.encode(points)
    one, other = codes[whose == 0], codes[whose == 1]
    first = points[found == np.intersect1d(one, found)[0]][:20]
    second = points[found == np.intersect1d(other, found)[0]][:20]
    for points_of in (first, second):
        n = len(points_of)
        nothing = np.zeros(n, bool)
        memory.extend(points_of, np.zeros((n, 2)), np.arange(n), points_of, nothing, nothing)
    held = set(memory.encoder.encode(np.concatenate((first, second))).tolist())
    query = next(p for p, code in zip(points, found.tolist(), strict=True) if code not in held)
    return memory, query


def test_two_shards_follow_one_coin():
    memory, query = two_buckets(greedy=0.7)
    greedy = 0
    for _ in range(600):
        batch = memory.sample(8, query)
        halves = batch.reward[:4], batch.reward[4:]
        shards = batch.ids % 2
        assert len(set(shards[:4].tolist())) == len(set(shards[4:].tolist())) == 1
        assert shards[0] != shards[-1]
        tops = [half.tolist() == [19, 18, 17, 16] for half in halves]
        assert tops[0] == tops[1]
        greedy += tops[0]
    assert stats.binomtest(greedy, 600, 0.7).pvalue > 1e-3


def test_items_have_coins_of_their_own():
    memory, query = two_buckets(greedy=0.5, greedy_per="item")
    counts = []
    for _ in range(800):
        rewards = memory.sample(8, query).reward
        for half in (rewards[:4], rewards[4:]):
            top = 0
            while top < 4 and half[top] == 19 - top:
                top += 1
            counts.append(top)
    # at least k of 4 are reward-driven; a random one is next in order once in twenty
    share = np.mean(np.array(counts) >= 1)
    assert share == pytest.approx(1 - 0.5**4 * 19 / 20, abs=0.03)


def test_random_draws_are_uniform_over_both_buckets():
    memory, query = two_buckets(greedy=0.0)
    seen = np.concatenate([memory.sample(8, query).ids for _ in range(1500)])
    _, counts = np.unique(seen, return_counts=True)
    assert len(counts) == 40
    for half in (seen % 2 == 0, seen % 2 == 1):
        _, counts = np.unique(seen[half], return_counts=True)
        # four of twenty without replacement: less spread than independent draws
        assert stats.chisquare(counts).pvalue > 1e-3


def test_the_client_knows_the_codes_and_sizes_of_all_shards():
    rng = np.random.default_rng(5)
    memory = Here(120, 6, 2, shards=3, bits=6)
    for _ in range(30):
        memory.push(*block(rng, 8))
    for shard in range(3):
        codes, sizes = memory._hall.get(shard, "codes")
        assert memory._hall.codes.filled[shard] == sizes.sum()
        assert (owners(codes, 3) == shard).all()
        for code, size in zip(codes.tolist(), sizes.tolist(), strict=True):
            assert memory._hall.codes._sizes[memory._hall.codes._place[code]] == size
    assert len(memory._hall.codes) == memory.stats()["occupied_codes"]
    assert memory.stats()["dropped"] > 0


def test_the_two_nearest_follow_every_tie_rule():
    rng = np.random.default_rng(0)
    for bits in (3, 8, 32):
        for _ in range(30):
            held = rng.integers(2**bits, size=int(rng.integers(1, 300)), dtype=np.uint32)
            codes = Codes(np.array([1000]))
            codes.store(0, held)
            sizes = dict(zip(*np.unique(held, return_counts=True), strict=True))
            for query in rng.integers(2**bits, size=5).tolist():
                if query in codes:
                    continue
                key = lambda c: (-jaccard(c, query), (c ^ query).bit_count(), -sizes[c], c)  # noqa: B023, E731
                assert codes.nearest(query) == sorted(map(int, sizes), key=key)[:2]


def test_the_mix_spreads_codes_that_share_a_prefix():
    codes = (np.arange(4096) << 12).astype(np.uint32)
    assert stats.chisquare(np.bincount(owners(codes, 8), minlength=8)).pvalue > 1e-3
    assert set(owners(codes, 8).tolist()) == set(range(8))


def test_a_salt_can_be_chosen_that_spreads_some_traffic_evenly():
    rng = np.random.default_rng(4)
    share = rng.pareto(1.0, 300)
    codes = rng.choice(300, 40_000, p=share / share.sum()).astype(np.uint32)
    salt = even_salt(codes[:20_000], 4)
    loads = [
        np.bincount(owners(codes[20_000:], 4, s), minlength=4).max() for s in (*range(20), salt)
    ]
    assert loads[-1] <= min(loads[:-1]) * 1.02
    memory = Here(400, 6, 2, shards=4, salt=salt)
    memory.extend(*block(rng, 100))
    assert Here.from_state(memory.state()).salt == salt
    assert memory._hall.owner(7) == owners(np.array([7], np.uint32), 4, salt)[0]


def test_draws_ahead_are_those_of_one_query_after_the_other():
    rng = np.random.default_rng(2)
    memories = [Here(300, 6, 2, shards=3, bits=6, greedy=1.0) for _ in range(2)]
    for _ in range(20):
        added = block(rng, 20)
        for memory in memories:
            memory.extend(*added)
    queries = rng.normal(size=(37, 6)).astype(np.float32)
    many = list(memories[0].sample_many(9, queries, together=5, ahead=2))
    assert len(many) == 37
    for ours, query in zip(many, queries, strict=True):
        assert same_batch(ours, memories[1].sample(9, query))
    with pytest.raises(ValueError, match="queries"):
        next(memories[0].sample_many(9, [np.zeros(5)]))


def test_pushed_rows_are_stored_as_added_ones():
    rng = np.random.default_rng(2)
    pushed, added = (Here(100, 6, 2, shards=3, bits=5) for _ in range(2))
    for _ in range(30):
        rows = block(rng, 11)
        pushed.push(*rows)
        added.extend(*rows)
    pushed.flush()
    assert Snapshot(pushed) == Snapshot(added)


@pytest.mark.parametrize(
    "knobs",
    [
        {"unseen": "evict"},
        {"random_from": "memory"},
        {"fill": "uniform"},
        {"sampling": "uniform"},
        {"store": "fifo"},
        {"order": "return"},
        {"codes": "constant"},
        {"codes": "random"},
        {"codes": "shuffled"},
        {"features": "standardised"},
        {"newest": 1},
    ],
    ids=str,
)
def test_what_touches_all_shards_is_refused_with_its_reason(knobs):
    (name,) = knobs
    with pytest.raises(ValueError, match=f"{name}=.* needs"):
        Here(100, 6, 2, **knobs)


def test_standardised_features_come_with_an_encoder_that_has_seen_some_traffic():
    rng = np.random.default_rng(0)
    encoder = SimHash(6, bits=6, seed=1, features="standardised", warmup=200)
    with pytest.raises(ValueError, match="must be a frozen"):
        Here(100, 6, 2, encoder=encoder)
    far = block(rng, 200)[0] + 50
    encoder.observe(far)
    memory = Here(1000, 6, 2, encoder=encoder)
    seen, *others = block(rng, 200)
    memory.extend(seen + 50, *others)
    assert memory.stats()["occupied_codes"] > 20
    assert memory.stats()["busiest_shard"] < 1.5
    assert len(Here(1000, 6, 2, encoder=E2LSH(6, functions=2))) == 0
    with pytest.raises(ValueError, match="encoder is for 7 numbers"):
        Here(1000, 6, 2, encoder=SimHash(7))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Here(3, 6, 2, shards=4), "capacity=3 is less than one transition per shard, 4"),
        (lambda: Here(3, 6, 2, shards=0, rooms=HereRooms(1)), "shards must be >= 1"),
        (lambda: Here(9, 6, 2).sample(2), "empty"),
        (lambda: next(Here(9, 6, 2).sample_many(2, [])), "empty"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
