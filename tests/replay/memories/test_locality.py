"""LSER's rules on worked examples, its random draws against closed forms, and its errors."""

import threading

import numpy as np
import pytest
from scipy import stats
from traffic import block_of, contents_of, same_batch

from lser.replay import E2LSH, ConstantCode, LocalityReplay, RandomCode, SimHash, State, load_replay

RNG = np.random.default_rng(0)


class Given:
    """An encoder for tests: the code is the first number of the observation."""

    KIND = "given"
    blind = False

    def encode_rows(self, rows):
        return rows[:, 0].astype(np.uint32)

    frozen = True

    def observe(self, observations):
        return False

    def state(self):
        return State({"kind": self.KIND}, {})


def memory(capacity=100, **settings):
    return LocalityReplay(capacity, 3, 2, **{"encoder": Given(), "greedy": 1, **settings})


def store(replay, codes, rewards, **ends):
    n = len(codes)
    observation = np.zeros((n, 3), np.float32)
    observation[:, 0] = codes
    false = np.zeros(n, bool)
    reward = np.asarray(rewards, np.float32)
    action = np.zeros((n, 2), np.float32)
    ended = ends.get("terminated", false)
    return replay.extend(observation, action, reward, observation, ended, false).tolist()


def query(code):
    return np.array([code, 0, 0], np.float32)


def frequencies(replay, code, count, draws):
    ids = np.concatenate([replay.sample(count, query(code)).ids for _ in range(draws)])
    return np.bincount(ids, minlength=replay._buckets.written)


def test_a_greedy_draw_is_the_top_of_the_bucket_best_and_newest_first():
    replay = memory()
    store(replay, [5, 5, 5, 5, 6], [1, 3, 3, 2, 9])
    assert replay.sample(3, query(5)).ids.tolist() == [2, 1, 3]


def test_at_capacity_the_oldest_of_the_lowest_reward_makes_room():
    replay = memory(4)
    store(replay, [5, 5, 5, 6], [1, 1, 2, 0])
    assert store(replay, [5], [1]) == [4]
    assert [i for i, _ in contents_of(replay)[5]] == [1, 4, 2]
    assert store(replay, [5, 7], [0.5, 9]) == [-1, -1]
    assert replay.dropped == 2
    assert store(replay, [6], [0]) == [5]


def test_an_unseen_code_can_evict_from_the_largest_bucket():
    replay = memory(4, unseen="evict")
    store(replay, [5, 5, 6, 6], [1, 0, 2, 2])
    assert store(replay, [7], [-9]) == [4]
    assert {c: [i for i, _ in h] for c, h in contents_of(replay).items()} == {
        5: [0],
        6: [2, 3],
        7: [4],
    }
    store(replay, [8, 9], [0, 0])
    assert sorted(contents_of(replay)) == [6, 7, 8, 9]


def test_a_query_without_bucket_takes_half_from_each_of_the_two_most_similar_codes():
    replay = memory()
    store(replay, [0b0111] * 3 + [0b1011] * 4 + [0b1000] * 9, [1] * 3 + [2] * 4 + [3] * 9)
    # to 0b1111: two codes of similarity 3/4 and distance 1, of which the larger bucket is first
    assert replay.sample(5, query(0b1111)).ids.tolist() == [6, 5, 4, 2, 1]
    # to 0: all similarities are 0; distances 1, 3, 3
    assert replay.sample(4, query(0)).ids.tolist() == [15, 14, 6, 5]
    assert replay.stats()["fallbacks"] == 2


def test_a_single_bucket_serves_every_query():
    replay = memory()
    store(replay, [3, 3], [1, 2])
    assert replay.sample(2, query(4)).ids.tolist() == [1, 0]


def test_a_small_pool_is_repeated_in_order():
    replay = memory(fill="repeat")
    store(replay, [3, 3, 3, 4], [1, 2, 3, 4])
    assert replay.sample(8, query(3)).ids.tolist() == [2, 1, 0, 2, 1, 0, 2, 1]
    assert replay.stats()["fill_share"] == 5 / 8


def test_a_small_pool_is_topped_up_from_the_whole_memory():
    replay = memory(fill="uniform")
    store(replay, [3, 3, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
    batches = [replay.sample(10, query(3)).ids for _ in range(700)]
    assert all(ids[:3].tolist() == [2, 1, 0] for ids in batches)
    counts = np.bincount(np.concatenate([ids[3:] for ids in batches]), minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_random_draw_is_uniform_without_replacement_from_the_bucket():
    replay = memory(greedy=0)
    store(replay, [3] * 9 + [4] * 5, np.arange(14))
    pairs = [tuple(sorted(replay.sample(2, query(3)).ids.tolist())) for _ in range(3600)]
    counts = np.zeros((9, 9))
    for a, b in pairs:
        counts[a, b] += 1
    assert stats.chisquare(counts[np.triu_indices(9, 1)]).pvalue > 1e-3
    assert counts.sum() == counts[np.triu_indices(9, 1)].sum()


def test_a_random_draw_larger_than_the_bucket_goes_through_it_evenly():
    replay = memory(greedy=0)
    store(replay, [3] * 3 + [4] * 5, np.arange(8))
    counts = frequencies(replay, 3, 5, 900)
    assert stats.chisquare(counts[:3]).pvalue > 1e-3
    assert counts[3:].sum() == 0
    assert counts.sum() == 4500


def test_random_draws_can_come_from_the_whole_memory():
    replay = memory(greedy=0, random_from="memory")
    store(replay, [3] * 3 + [4] * 7, np.arange(10))
    for code in (3, 99):
        counts = frequencies(replay, code, 4, 1500)
        assert stats.chisquare(counts).pvalue > 1e-3
        assert len(set(replay.sample(10, query(code)).ids.tolist())) == 10


def test_batches_are_greedy_with_the_given_probability():
    replay = memory(greedy=0.7, fill="repeat")
    store(replay, [3] * 300, np.arange(300))
    top = list(range(299, 295, -1))
    hits = sum(replay.sample(4, query(3)).ids.tolist() == top for _ in range(2000))
    assert stats.binomtest(hits, 2000, 0.7).pvalue > 1e-3
    assert replay.stats()["greedy_share"] == hits / 2000


def test_items_are_greedy_with_the_given_probability_one_by_one():
    replay = memory(1000, greedy=0.3, greedy_per="item")
    store(replay, [3] * 1000, np.arange(1000))
    k = []
    for _ in range(1500):
        ids = replay.sample(5, query(3)).ids.tolist()
        k.append(next((j for j in range(5) if ids[j] != 999 - j), 5))
    expected = stats.binom.pmf(np.arange(6), 5, 0.3) * 1500
    counts = np.bincount(k, minlength=6)
    merged = [*counts[:3], counts[3:].sum()], [*expected[:3], expected[3:].sum()]
    assert stats.chisquare(*merged, sum_check=False).pvalue > 1e-3


def test_fallback_halves_are_random_within_their_buckets():
    replay = memory(greedy=0)
    store(replay, [0b0111] * 4 + [0b1011] * 5, np.zeros(9))
    for _ in range(20):
        ids = replay.sample(5, query(0b1111)).ids
        assert (ids[:3] >= 4).all()
        assert (ids[3:] < 4).all()
        assert len(set(ids.tolist())) == 5


def test_order_by_return_waits_for_the_end_of_the_session():
    replay = memory(order="return", discount=0.5)
    store(replay, [5], [0])
    store(replay, [5], [1])
    assert replay.sample(2, query(5)).ids.tolist() == [1, 0]
    store(replay, [5], [8], terminated=np.array([True]))  # returns 0 + .5 + 2, 1 + 4, 8
    store(replay, [5], [3])
    assert replay.sample(4, query(5)).ids.tolist() == [2, 1, 3, 0]


def test_streams_are_followed_apart():
    replay = memory(order="return", discount=1.0)
    store(replay, [5, 5], [0, 1])
    store(replay, [5, 5], [5, 0], terminated=np.array([True, False]))
    assert replay.sample(4, query(5)).ids.tolist() == [2, 0, 1, 3]


def test_sampling_uniformly_ignores_buckets_and_needs_no_query():
    replay = memory(sampling="uniform")
    store(replay, [3] * 2 + [4] * 8, np.arange(10))
    ids = np.concatenate([replay.sample(10).ids for _ in range(500)])
    assert stats.chisquare(np.bincount(ids)).pvalue > 1e-3


def test_one_bucket_for_all_is_reward_order_alone():
    replay = memory(encoder=ConstantCode())
    store(replay, [1, 2, 3, 4], [1, 4, 2, 3])
    assert replay.sample(3, query(9)).ids.tolist() == [1, 3, 2]


def test_random_codes_send_a_query_to_any_occupied_bucket():
    replay = memory(encoder=RandomCode(bits=2, seed=1))
    store(replay, [0] * 40, np.arange(40))
    tops = {h[-1][0] for h in contents_of(replay).values()}
    drawn = [int(replay.sample(1, query(0)).ids[0]) for _ in range(2000)]
    assert set(drawn) == tops
    assert stats.chisquare([drawn.count(t) for t in tops]).pvalue > 1e-3


@pytest.mark.parametrize("features", ["centred", "standardised"])
def test_the_end_of_the_warm_up_files_everything_anew(features):
    replay = LocalityReplay(200, 3, 2, bits=6, features=features, warmup=50, greedy=1)
    for _ in range(12):
        block = block_of(RNG, 7)
        replay.extend(block[0] + 40, *block[1:])
        replay.check()
    assert len(contents_of(replay)) > 8  # raw, all observations point the same way
    assert len(replay) == 84


def test_stop_exploring_makes_every_draw_greedy():
    replay = memory(greedy=0)
    store(replay, [3] * 50, np.arange(50))
    replay.stop_exploring()
    assert replay.sample(2, query(3)).ids.tolist() == [49, 48]


def test_stats_count_what_happened():
    replay = memory(4)
    assert replay.stats()["bucket_size_max"] == 0
    store(replay, [3, 3, 3, 4, 9], [0, 1, 2, 3, 4])
    replay.sample(6, query(3))
    replay.sample(2, query(7))
    got = replay.stats()
    assert all(type(v) is float for v in got.values())
    want = {"size": 4, "written": 4, "dropped": 1, "occupied_codes": 2, "bucket_size_min": 1}
    want |= {"bucket_size_median": 2, "bucket_size_max": 3, "draws": 2, "fallbacks": 1}
    want |= {"greedy_share": 1, "fill_share": 3 / 8, "fallback_share": 0.5}
    assert {k: got[k] for k in want} == want


ENCODERS = {
    "simhash": lambda: SimHash(3, bits=5, seed=3, features="standardised", warmup=60),
    "e2lsh": lambda: E2LSH(3, functions=2, seed=1),
    "constant": ConstantCode,
    "random": lambda: RandomCode(bits=4, seed=2),
}
OPTIONS = (
    {},
    {"unseen": "evict", "greedy_per": "item"},
    {"store": "fifo", "random_from": "memory"},
    {"order": "return", "fill": "uniform"},
    {"order": "return", "store": "fifo", "sampling": "uniform"},
)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_memory_continues_exactly(tmp_path, encoder, options):
    replay = LocalityReplay(60, 3, 2, greedy=0.5, encoder=ENCODERS[encoder](), **options)
    for step in range(30):
        if step in (0, 2, 15, 29):
            replay.save(tmp_path / "memory")
            other = load_replay(tmp_path / "memory")
        block, asked = block_of(RNG, 5), RNG.standard_normal(3)
        assert other.extend(*block).tolist() == replay.extend(*block).tolist()
        other.check()
        assert same_batch(replay.sample(9, asked), other.sample(9, asked))
    assert contents_of(other) == contents_of(replay)
    assert other.stats() == replay.stats()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"capacity": 0}, "capacity must be >= 1, got 0"),
        ({"bits": 0}, "bits must be from 1 to 32, got 0"),
        ({"bits": 33}, "bits must be from 1 to 32, got 33"),
        ({"greedy": 1.5}, r"greedy must be in \[0, 1\], got 1.5"),
        ({"greedy": float("nan")}, "greedy"),
        ({"discount": -1}, r"discount must be in \[0, 1\], got -1"),
        ({"seed": -3}, "seed must be >= 0, got -3"),
        ({"unseen": "keep"}, "unseen must be one of 'drop', 'evict', got 'keep'"),
        ({"order": "age"}, "order must be one of"),
        ({"greedy_per": "day"}, "greedy_per must be one of"),
        ({"random_from": "x"}, "random_from must be one of"),
        ({"fill": None}, "fill must be one of"),
        ({"store": "lifo"}, "store must be one of"),
        ({"sampling": ""}, "sampling must be one of"),
        ({"features": "whitened"}, "features must be one of"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        LocalityReplay(**{"capacity": 9, "observation_dim": 3, "action_dim": 2, **settings})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, np.zeros(3)), "batch_size must be >= 1, got 0"),
        ((2.0, np.zeros(3)), "batch_size must be an integer, got 2.0"),
        ((2, None), "query=None"),
        ((2, np.zeros(2)), r"query has shape \(2,\), expected \(3\)"),
        ((2, np.zeros((1, 3))), r"query has shape \(1, 3\)"),
        ((2, np.array([0, np.nan, 0])), r"query\[1\] = nan"),
        ((2, "abc"), "query is not an array of numbers"),
    ],
)
def test_a_bad_draw_is_refused_and_changes_nothing(arguments, words):
    replay = LocalityReplay(9, 3, 2, greedy=0.5)
    replay.extend(*block_of(RNG, 6))
    before = replay.state().config
    with pytest.raises(ValueError, match=words):
        replay.sample(*arguments)
    assert replay.state().config == before


def test_an_empty_memory_cannot_be_sampled():
    with pytest.raises(ValueError, match="the memory is empty"):
        LocalityReplay(9, 3, 2).sample(3, np.zeros(3))


@pytest.mark.parametrize("index", range(6))
def test_a_bad_block_is_refused_and_changes_nothing(index):
    replay = LocalityReplay(9, 3, 2, order="return")
    replay.extend(*block_of(RNG, 6))
    held, config = contents_of(replay), replay.state().config
    block = list(block_of(RNG, 4))
    for bad in (np.full(np.shape(block[index]), np.nan), block[index][:3], "abc"):
        wrong = [*block[:index], bad, *block[index + 1 :]]
        with pytest.raises(ValueError):
            replay.extend(*wrong)
    with pytest.raises(ValueError, match="streams"):
        replay.extend(*block, streams=[1, 2])
    assert contents_of(replay) == held
    assert replay.state().config == config


def test_a_memmap_memory_is_the_same_memory(tmp_path):
    replay = LocalityReplay(50, 3, 2, storage="memmap", path=tmp_path / "rows")
    twin = LocalityReplay(50, 3, 2)
    for _ in range(20):
        block, asked = block_of(RNG, 6), RNG.standard_normal(3)
        assert replay.extend(*block).tolist() == twin.extend(*block).tolist()
        assert same_batch(replay.sample(4, asked), twin.sample(4, asked))
    replay.save(tmp_path / "memory")
    with pytest.raises(ValueError, match="exists; the rows need a new file"):
        load_replay(tmp_path / "memory")
    loaded = load_replay(tmp_path / "memory", rows_path=tmp_path / "other")
    assert contents_of(loaded) == contents_of(twin)
    twin.save(tmp_path / "plain")
    with pytest.raises(ValueError, match="not a memmap"):
        load_replay(tmp_path / "plain", rows_path=tmp_path / "third")


def test_one_thread_may_write_while_another_samples():
    replay = LocalityReplay(2000, 3, 2, bits=6)
    replay.extend(*block_of(RNG, 10))
    blocks = [block_of(RNG, 16) for _ in range(50)]
    errors = []

    def write():
        for k in range(1500):
            observation, action, *rest = blocks[k % 50]
            action[:] = observation[:, :2]  # a torn row would break this
            replay.extend(observation, action, *rest)

    def read():
        try:
            for k in range(3000):
                batch = replay.sample(32, blocks[k % 50][0][0])
                fresh = batch.ids >= 10
                if not np.array_equal(batch.action[fresh], batch.observation[fresh, :2]):
                    errors.append(batch)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    replay.check()


@pytest.mark.parametrize(
    "options",
    [{}, {"unseen": "evict", "bits": 14}, {"store": "fifo"}, {"greedy": 0.5, "fill": "uniform"}],
)
def test_a_quarter_of_a_million_operations_leave_the_index_sound(options):
    rng = np.random.default_rng(5)
    replay = LocalityReplay(5000, 6, 1, **{"bits": 8, **options})
    done = 0
    while done < 250_000:
        n = int(rng.integers(1, 400))
        observation = rng.standard_normal((n, 6), np.float32) + rng.standard_normal(6, np.float32)
        reward = (rng.integers(0, 4, n) + rng.random()).astype(np.float32)
        flags = np.zeros(n, bool)
        replay.extend(observation, observation[:, :1], reward, observation, flags, flags)
        for k in range(3):
            replay.sample(int(rng.integers(1, 200)), observation[k % n])
        done += n + 3
        if rng.random() < 0.05:
            replay.check()
    replay.check()
