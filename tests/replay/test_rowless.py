"""A rule without rows: what it refuses, and that it is saved in whatever state it is."""

import numpy as np
import pytest
from traffic import block_of

from lser.replay import (
    AttentiveReplay,
    LocalityReplay,
    PrioritizedReplay,
    UniformReplay,
    load_replay,
)

RNG = np.random.default_rng(0)


def placed(rule, count=20):
    observation, _, reward, _, terminated, truncated = block_of(RNG, count)
    return rule.place(observation, reward, terminated | truncated), observation


def test_slots_that_newcomers_take_from_each_other_are_said_once():
    rule = UniformReplay(4, 3, 2, storage="none")
    slots, _ = placed(rule, 6)
    assert slots.tolist() == [-1, -1, 2, 3, 0, 1]
    assert len(rule) == 4


def test_a_memory_with_rows_has_no_places_to_give():
    with pytest.raises(ValueError, match="place is for a memory with storage='none'"):
        placed(UniformReplay(4, 3, 2))


def test_a_rule_that_looks_at_rows_needs_them():
    with pytest.raises(ValueError, match="storage='none': AttentiveReplay needs rows of its own"):
        AttentiveReplay(4, 3, 2, storage="none")


@pytest.mark.parametrize(
    ("which", "value", "words"),
    [
        (0, np.zeros((2, 4)), "observation has shape"),
        (1, [np.nan, 0.0], r"reward\[0\] = nan"),
        (2, [0.5, 0.0], "ended must hold booleans"),
    ],
)
def test_bad_newcomers_are_refused_and_take_nothing(which, value, words):
    rule = PrioritizedReplay(4, 3, 2, storage="none")
    given = [np.zeros((2, 3)), [0.0, 0.0], [False, False]]
    given[which] = value
    with pytest.raises(ValueError, match=words):
        rule.place(*given)
    assert (len(rule), rule.store.written) == (0, 0)


def test_feedback_on_empty_slots_and_on_slots_outside_is_skipped():
    rule = PrioritizedReplay(10, 3, 2, storage="none")
    placed(rule, 4)
    before = rule.tree.priorities.copy()
    rule.report([7, -1, 10, 10**9], [5.0] * 4)
    assert rule.tree.priorities.tolist() == before.tolist()
    rule.report([2], [5.0])
    assert rule.tree.priorities[2] != before[2]


def test_a_rule_saved_while_its_codes_wait_to_be_refiled_still_waits(tmp_path):
    rule = LocalityReplay(50, 3, 2, features="standardised", warmup=20, storage="none")
    _, observation = placed(rule, 30)
    assert rule.stale
    rule.save(tmp_path / "rule")
    loaded = load_replay(tmp_path / "rule")
    assert loaded.stale
    for each in (rule, loaded):
        each.refile(observation)
        assert not each.stale
    for query in observation[:5]:
        assert rule.pick(8, query)[0].tolist() == loaded.pick(8, query)[0].tolist()
