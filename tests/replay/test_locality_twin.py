"""Random traffic through `LocalityReplay` and its literal twin gives the same memory and draws."""

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from traffic import contents_of
from twin import Twin, code_of

from lser.replay import LocalityReplay, SimHash

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
def test_contents_and_greedy_batches_are_the_twins(case):
    dim, bits, options, steps = case
    capacity, rest = options["capacity"], {k: v for k, v in options.items() if k != "capacity"}
    replay = LocalityReplay(capacity, dim, 1, bits=bits, greedy=1, seed=3, **rest)
    twin = Twin(capacity, **rest)
    planes = SimHash(dim, bits=bits, seed=3).hyperplanes
    for rows, query, count, by_row in steps:
        arrays = block(rows, dim)
        streams = np.arange(len(rows)) if by_row else np.array([r[4] for r in rows], np.int64)
        contents = [tuple(r) for r in replay._store.pack(*arrays).tolist()]
        codes = [code_of(planes, s) for s in arrays[0]]
        expected = twin.extend(codes, arrays[2], arrays[4] | arrays[5], contents, streams)
        given_streams = {} if by_row else {"streams": streams}
        assert replay.extend(*arrays, **given_streams).tolist() == expected
        replay.check()
        assert (len(replay), replay.dropped) == (len(twin), twin.dropped)
        if len(twin):
            batch = replay.sample(count, np.array(query, np.float32))
            code = code_of(planes, np.array(query, np.float32))
            assert batch.ids.tolist() == twin.greedy(code, count)
    assert contents_of(replay) == twin.contents()
