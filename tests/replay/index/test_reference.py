"""Random traffic leaves `LocalityReplay` and the plain reference with the same memory and draws."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from traffic import contents_of

from lser.replay import LocalityReplay
from lser.replay.index.blocks import WIDE
from lser.replay.index.reference import ReferenceLSER, code_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking takes minutes
VALUES = st.sampled_from([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 1e-30, -3e38, 3e38])
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
REWARDS = st.one_of(VALUES, st.sampled_from([0.0, 1.0]), FINITE)


@st.composite
def traffic(draw):
    """Settings of a memory, and blocks and queries for it."""
    dim = draw(st.integers(1, 3))
    options = {
        "capacity": draw(st.one_of(st.integers(1, 4), st.integers(1, 40))),
        "unseen": draw(st.sampled_from(["drop", "evict"])),
        "order": draw(st.sampled_from(["reward", "return"])),
        "store": draw(st.sampled_from(["reward", "reward", "fifo"])),
    }
    bits = draw(st.sampled_from([1, 2, 3, 5, 10, 32]))
    vector = st.lists(VALUES, min_size=dim, max_size=dim)
    row = st.tuples(vector, REWARDS, st.booleans(), st.booleans(), st.integers(0, 3))
    step = st.tuples(st.lists(row, max_size=12), vector, st.integers(1, 9), st.booleans())
    return dim, bits, options, draw(st.lists(step, max_size=14))


def block(rows, dim):
    """Rows drawn by hypothesis as the arguments of `extend`; the action marks the row."""
    n = len(rows)
    observation = np.array([r[0] for r in rows], np.float32).reshape(n, dim)
    reward = np.array([r[1] for r in rows], np.float32)
    ends = np.array([r[2] and r[3] for r in rows], bool)
    cut = np.array([r[2] and not r[3] for r in rows], bool)
    return observation, np.arange(n, dtype=np.float32)[:, None], reward, observation + 1, ends, cut


@settings(max_examples=250, deadline=None, phases=PHASES)
@given(traffic())
def test_contents_and_greedy_batches_are_those_of_the_reference(case):
    dim, bits, options, steps = case
    capacity, rest = options["capacity"], {k: v for k, v in options.items() if k != "capacity"}
    replay = LocalityReplay(capacity, dim, 1, bits=bits, greedy=1, seed=3, **rest)
    follow(replay, ReferenceLSER(capacity, **rest), steps)


def follow(replay, reference, steps):
    """Both memories through all steps, compared after each; then their contents."""
    dim, planes = replay.store.observation_dim, replay.encoder.hyperplanes.tolist()
    rows_by_id = {}
    for rows, query, count, by_row in steps:
        arrays = block(rows, dim)
        streams = np.arange(len(rows)) if by_row else np.array([r[4] for r in rows], np.int64)
        codes = [code_of(planes, s) for s in arrays[0].tolist()]
        ended = (arrays[4] | arrays[5]).tolist()
        expected = reference.extend(
            list(zip(codes, arrays[2].tolist(), ended, streams.tolist(), strict=True))
        )
        given_streams = {} if by_row else {"streams": streams}
        assert replay.extend(*arrays, **given_streams).tolist() == expected
        rows_by_id |= zip(expected, map(tuple, replay.store.pack(arrays).tolist()), strict=True)
        replay.check()
        assert (len(replay), replay.dropped) == (reference.size, reference.dropped)
        if reference.size:
            asked = np.array(query, np.float32)
            drawn = reference.top(code_of(planes, asked.tolist()), count)
            assert replay.sample(count, asked).ids.tolist() == [id_of(replay, h) for h in drawn]
    held = {
        code: [(id_of(replay, h), rows_by_id[id_of(replay, h)]) for h in bucket]
        for code, bucket in reference.buckets.items()
    }
    assert contents_of(replay) == held


def id_of(replay, held):
    return held.write * replay.capacity + held.slot


@pytest.mark.parametrize("unseen", ["drop", "evict"])
@pytest.mark.parametrize("order", ["reward", "return"])
@pytest.mark.parametrize("store", ["reward", "fifo"])
@pytest.mark.parametrize("rewards", ["ties", "any", "rising", "falling"])
def test_buckets_of_many_blocks_are_those_of_the_reference(unseen, order, store, rewards):
    rng, dim = np.random.default_rng(len(unseen + order + store)), 3
    options = {"unseen": unseen, "order": order, "store": store}
    largest = (3, 1800) if store == "reward" else (2, 900)  # in plain Python ages take longer
    for bits, capacity in ((1, 500), largest):
        replay = LocalityReplay(capacity, dim, 1, bits=bits, greedy=1, seed=3, **options)
        steps = []
        for step in range(capacity // 32):  # 2.5 times what it holds
            reward = {
                "ties": rng.integers(0, 4, 80),
                "any": rng.standard_normal(80),
                "rising": np.arange(80) + 80 * step,
                "falling": -np.arange(80) - 80 * step,
            }[rewards].astype(np.float32)
            seen = rng.standard_normal((80, dim))
            flags = rng.random((2, 80)) < 0.3
            rows = list(zip(seen, reward, *flags, rng.integers(0, 4, 80), strict=True))
            steps.append((rows, seen[0], int(rng.integers(1, 200)), bool(step % 2)))
        follow(replay, ReferenceLSER(capacity, **options), steps)
        assert max(replay.index.sizes()) > 3 * WIDE
