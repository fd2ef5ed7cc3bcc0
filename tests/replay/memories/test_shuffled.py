"""The matched control: buckets as large as LSER's, with somebody else's transitions in them."""

import numpy as np
import pytest

from lser.replay import LocalityReplay, load_replay

WIDE = 6


def filled(codes, rows=4_000, seed=0, **knobs):
    rng = np.random.default_rng(seed)
    replay = LocalityReplay(10_000, WIDE, 2, bits=6, codes=codes, seed=3, **knobs)
    centre = np.array([2, 1, 0, 0, 0, 0])
    observation = rng.normal(centre, size=(rows, WIDE)).astype(np.float32)
    for part in np.split(np.arange(rows), rows // 8):
        block = observation[part]
        flags = np.zeros(len(part), bool)
        action = np.zeros((len(part), 2), np.float32)
        replay.extend(block, action, rng.random(len(part)), block, flags, flags)
    return replay, observation


def sizes(replay):
    arrays = replay.index.arrays()
    return dict(zip(arrays["codes"].tolist(), arrays["sizes"].tolist(), strict=True))


def test_buckets_have_lser_s_sizes_and_not_those_of_random_codes():
    lser, shuffled, random = (filled(c)[0] for c in ("simhash", "shuffled", "random"))
    ours, theirs = sizes(lser), sizes(shuffled)
    large = [code for code, size in ours.items() if size > 100]
    assert len(large) > 5
    assert all(abs(theirs[code] / ours[code] - 1) < 0.35 for code in large)
    assert max(sizes(random).values()) < max(ours.values()) / 3


def test_a_bucket_says_nothing_of_the_observation():
    lser, shuffled = filled("simhash")[0], filled("shuffled")[0]
    query = np.array([3, -2, 1, 1, 1, 1], np.float32)

    def likeness(replay):
        drawn = np.concatenate([replay.sample(16, query).observation for _ in range(50)])
        return float((drawn @ query / np.linalg.norm(drawn, axis=1)).mean())

    everybody = filled("simhash")[1]
    usual = float((everybody @ query / np.linalg.norm(everybody, axis=1)).mean())
    assert likeness(lser) > usual + 1
    assert abs(likeness(shuffled) - usual) < 0.5


@pytest.mark.parametrize("features", ["raw", "centred"])
def test_it_goes_on_exactly_from_a_file(features, tmp_path):
    replay, observation = filled("shuffled", 1_000, features=features, warmup=600)
    replay.check()
    replay.save(tmp_path / "memory")
    other = load_replay(tmp_path / "memory")
    for query in observation[:20]:
        one, two = replay.sample(8, query), other.sample(8, query)
        assert (one.ids == two.ids).all()
        flags = np.zeros(1, bool)
        block = (query[None], np.zeros((1, 2)), np.ones(1), query[None], flags, flags)
        assert replay.extend(*block) == other.extend(*block)
    assert sizes(replay) == sizes(other)


def test_a_query_is_needed_as_it_is_for_lser():
    replay, _ = filled("shuffled", 80)
    with pytest.raises(ValueError, match="query"):
        replay.sample(4)
