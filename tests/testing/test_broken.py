"""The contract finds memories that break it, and names the check."""

import time

import numpy as np
import pytest

from lser.replay import PrioritizedReplay, UniformReplay
from lser.testing import CHECKS, Broken, Subject
from lser.testing.__main__ import main

BY_NAME = {check.__name__: check for check in CHECKS}


class Forgetful(UniformReplay):
    """Its state lacks the generator's."""

    def restore(self, own, arrays):
        self.rng = np.random.default_rng(0)


class Short(UniformReplay):
    """Never more than eight at a time."""

    def draw(self, size, query):
        return super().draw(min(size, 8), query)


class Unseeded(UniformReplay):
    def begin(self):
        self.rng = np.random.default_rng()


class Hasty(UniformReplay):
    """Draws from the generator before it looks at the query."""

    def draw(self, size, query):
        slots = super().draw(size, query)
        if query is not None and np.shape(query) != (self.store.observation_dim,):
            raise ValueError("query has the wrong shape")
        return slots


class Silent(UniformReplay):
    """Repairs what it should refuse."""

    def extend(self, observation, *rest, **more):
        return super().extend(np.nan_to_num(observation), *rest, **more)


class Mixed(UniformReplay):
    """Gives transitions ids of others."""

    def replay(self, size, query):
        batch = super().replay(size, query)
        return batch._replace(ids=np.roll(batch.ids, 1))


class Deaf(PrioritizedReplay):
    """Keeps priorities and draws uniformly."""

    def draw(self, size, query):
        return self.rng.integers(len(self), size=size), None


class NoLock:
    """A lock that keeps nobody out."""

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Racing(UniformReplay):
    """Writes observations after everything else, without a lock."""

    def begin(self):
        self._lock = NoLock()

    def insert(self, block):
        observed = np.arange(block.rows.shape[1]) < self.store.observation_dim
        ids = self.store.append(np.where(observed, 0, block.rows))
        time.sleep(0.0005)
        self.store.rows[ids % self.capacity] = block.rows
        return ids


@pytest.mark.parametrize(
    ("kind", "check", "words"),
    [
        (Forgetful, "goes_on_after_a_file", "another state|other batches"),
        (Short, "gives_the_size_asked_for", "shapes"),
        (Unseeded, "follows_its_seed", "different batches"),
        (Hasty, "refuses_bad_queries", "changed the memory"),
        (Silent, "refuses_what_is_not_finite", "observation = nan is not refused"),
        (Mixed, "replays_what_it_holds", "another transition"),
        (Deaf, "uses_td_errors_as_it_says", "not a draw"),
        (Racing, "survives_two_threads", "half written"),
    ],
)
def test_a_broken_memory_is_found(kind, check, words):
    with pytest.raises(Broken, match=words):
        BY_NAME[check](Subject(kind.__name__, kind, {}, frozenset()))


def test_a_memory_that_says_it_needs_what_it_ignores_is_found():
    said = Subject("uniform", UniformReplay, {}, frozenset({"query", "sessions"}))
    for check in ("uses_the_query_as_it_says", "uses_sessions_as_it_says"):
        with pytest.raises(Broken, match="does not make use of"):
            BY_NAME[check](said)


def test_one_command_holds_a_memory_to_the_contract(capsys):
    assert main(["uniform"]) == 0
    out = capsys.readouterr().out
    assert "0 of 25 checks are broken" in out
    assert all(f"ok      {name}" in out for name in BY_NAME)
    assert main(["per", "--set", "alpha=0.0", "--skip", "fills_up"]) == 1
    out = capsys.readouterr().out
    assert "skipped fills_up" in out
    assert "broken  uses_td_errors_as_it_says" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["unifrm"], "did you mean uniform"),
        (["nowhere:Thing"], "no module 'nowhere'"),
        (["uniform", "--skip", "x"], "invalid choice"),
        (["uniform", "--set", "x"], "KNOB=VALUE"),
    ],
)
def test_a_wrong_command_says_why(words, reason, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert reason in capsys.readouterr().err
