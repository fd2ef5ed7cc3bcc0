"""LSER's rules on worked examples, and its random draws against closed forms."""

import numpy as np
import pytest
from scipy import stats
from traffic import block_of, contents_of

from lser.replay import LocalityReplay, State

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
    ids = replay.extend(observation, action, reward, observation, ended, false)
    return (ids // replay.capacity).tolist()  # the numbers of the writes, -1 where dropped


def query(code):
    return np.array([code, 0, 0], np.float32)


def drawn(replay, count, code):
    """What a query of this code replays, by the numbers of their writes."""
    return (replay.sample(count, query(code)).ids // replay.capacity).tolist()


def held(replay):
    """The writes in every bucket, worst first."""
    return {
        code: [identity // replay.capacity for identity, _ in entries]
        for code, entries in contents_of(replay).items()
    }


def frequencies(replay, code, count, draws):
    writes = [write for _ in range(draws) for write in drawn(replay, count, code)]
    return np.bincount(writes, minlength=replay.store.written)


def test_a_greedy_draw_is_the_top_of_the_bucket_best_and_newest_first():
    replay = memory()
    store(replay, [5, 5, 5, 5, 6], [1, 3, 3, 2, 9])
    assert drawn(replay, 3, 5) == [2, 1, 3]


def test_at_capacity_the_oldest_of_the_lowest_reward_makes_room():
    replay = memory(4)
    store(replay, [5, 5, 5, 6], [1, 1, 2, 0])
    assert store(replay, [5], [1]) == [4]
    assert held(replay)[5] == [1, 4, 2]
    assert store(replay, [5, 7], [0.5, 9]) == [-1, -1]
    assert replay.dropped == 2
    assert store(replay, [6], [0]) == [5]


def test_an_unseen_code_can_evict_from_the_largest_bucket():
    replay = memory(4, unseen="evict")
    store(replay, [5, 5, 6, 6], [1, 0, 2, 2])
    assert store(replay, [7], [-9]) == [4]
    assert held(replay) == {5: [0], 6: [2, 3], 7: [4]}
    store(replay, [8, 9], [0, 0])
    assert sorted(held(replay)) == [6, 7, 8, 9]


def test_a_query_without_bucket_takes_half_from_each_of_the_two_most_similar_codes():
    replay = memory()
    store(replay, [0b0111] * 3 + [0b1011] * 4 + [0b1000] * 9, [1] * 3 + [2] * 4 + [3] * 9)
    # to 0b1111: two codes of similarity 3/4 and distance 1, of which the larger bucket is first
    assert drawn(replay, 5, 0b1111) == [6, 5, 4, 2, 1]
    # to 0: all similarities are 0; distances 1, 3, 3
    assert drawn(replay, 4, 0) == [15, 14, 6, 5]
    assert replay.stats()["fallbacks"] == 2


def test_a_single_bucket_serves_every_query():
    replay = memory()
    store(replay, [3, 3], [1, 2])
    assert drawn(replay, 2, 4) == [1, 0]


def test_a_small_pool_is_repeated_in_order():
    replay = memory(fill="repeat")
    store(replay, [3, 3, 3, 4], [1, 2, 3, 4])
    assert drawn(replay, 8, 3) == [2, 1, 0, 2, 1, 0, 2, 1]
    assert replay.stats()["fill_share"] == 5 / 8


def test_a_small_pool_is_topped_up_from_the_whole_memory():
    replay = memory(fill="uniform")
    store(replay, [3, 3, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
    batches = [drawn(replay, 10, 3) for _ in range(700)]
    assert all(batch[:3] == [2, 1, 0] for batch in batches)
    counts = np.bincount([write for batch in batches for write in batch[3:]], minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_random_draw_is_uniform_without_replacement_from_the_bucket():
    replay = memory(greedy=0)
    store(replay, [3] * 9 + [4] * 5, np.arange(14))
    pairs = [tuple(sorted(drawn(replay, 2, 3))) for _ in range(3600)]
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
        assert len(set(drawn(replay, 10, code))) == 10


def test_batches_are_greedy_with_the_given_probability():
    replay = memory(greedy=0.7, fill="repeat")
    store(replay, [3] * 300, np.arange(300))
    top = list(range(299, 295, -1))
    hits = sum(drawn(replay, 4, 3) == top for _ in range(2000))
    assert stats.binomtest(hits, 2000, 0.7).pvalue > 1e-3
    assert replay.stats()["greedy_share"] == hits / 2000


def test_items_are_greedy_with_the_given_probability_one_by_one():
    replay = memory(1000, greedy=0.3, greedy_per="item")
    store(replay, [3] * 1000, np.arange(1000))
    k = []
    for _ in range(1500):
        ids = drawn(replay, 5, 3)
        k.append(next((j for j in range(5) if ids[j] != 999 - j), 5))
    expected = stats.binom.pmf(np.arange(6), 5, 0.3) * 1500
    counts = np.bincount(k, minlength=6)
    merged = [*counts[:3], counts[3:].sum()], [*expected[:3], expected[3:].sum()]
    assert stats.chisquare(*merged, sum_check=False).pvalue > 1e-3


def test_fallback_halves_are_random_within_their_buckets():
    replay = memory(greedy=0)
    store(replay, [0b0111] * 4 + [0b1011] * 5, np.zeros(9))
    for _ in range(20):
        ids = np.array(drawn(replay, 5, 0b1111))
        assert (ids[:3] >= 4).all()
        assert (ids[3:] < 4).all()
        assert len(set(ids.tolist())) == 5


def test_order_by_return_waits_for_the_end_of_the_session():
    replay = memory(order="return", discount=0.5)
    store(replay, [5], [0])
    store(replay, [5], [1])
    assert drawn(replay, 2, 5) == [1, 0]
    store(replay, [5], [8], terminated=np.array([True]))  # returns 0 + .5 + 2, 1 + 4, 8
    store(replay, [5], [3])
    assert drawn(replay, 4, 5) == [2, 1, 3, 0]


def test_streams_are_followed_apart():
    replay = memory(order="return", discount=1.0)
    store(replay, [5, 5], [0, 1])
    store(replay, [5, 5], [5, 0], terminated=np.array([True, False]))
    assert drawn(replay, 4, 5) == [2, 0, 1, 3]


def test_sampling_uniformly_ignores_buckets_and_needs_no_query():
    replay = memory(sampling="uniform")
    store(replay, [3] * 2 + [4] * 8, np.arange(10))
    slots = np.concatenate([replay.sample(10).ids % replay.capacity for _ in range(500)])
    assert stats.chisquare(np.bincount(slots)).pvalue > 1e-3


def test_one_bucket_for_all_is_reward_order_alone():
    replay = memory(encoder=None, codes="constant")
    store(replay, [1, 2, 3, 4], [1, 4, 2, 3])
    assert drawn(replay, 3, 9) == [1, 3, 2]


def test_random_codes_send_a_query_to_any_occupied_bucket():
    replay = memory(encoder=None, codes="random", bits=2, seed=1)
    store(replay, [0] * 40, np.arange(40))
    tops = {entries[-1] for entries in held(replay).values()}
    found = [drawn(replay, 1, 0)[0] for _ in range(2000)]
    assert set(found) == tops
    assert stats.chisquare([found.count(top) for top in tops]).pvalue > 1e-3


@pytest.mark.parametrize("features", ["centred", "standardised"])
def test_the_end_of_the_warm_up_files_everything_anew(features):
    replay = LocalityReplay(200, 3, 2, bits=6, features=features, warmup=50, greedy=1)
    for _ in range(12):
        block = block_of(RNG, 7)
        replay.extend(block[0] + 40, *block[1:])
        replay.check()
    assert len(held(replay)) > 8  # raw, all observations point the same way
    assert len(replay) == 84


def test_stop_exploring_makes_every_draw_greedy():
    replay = memory(greedy=0)
    store(replay, [3] * 50, np.arange(50))
    replay.stop_exploring()
    assert drawn(replay, 2, 3) == [49, 48]


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
